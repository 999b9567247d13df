//! A path as it is written on a command line: `100mbit,40ms,1bdp`.

use knee_model::QueueLimit;
use knee_scenario::units::{
    NS_PER_S, RATE, TIME, UnitError, clip, parse_ppm, parse_queue, show_queue,
};
use std::fmt;

/// Size of all packets: queues are counted in them.
pub const PACKET_BYTES: u64 = 1500;
/// Fastest bottleneck, bit/s.
const RATE_MAX_BPS: u64 = 1_000_000_000_000;
/// Longest round-trip time.
const RTT_MAX_NS: u64 = 60 * NS_PER_S;
const EXAMPLE: &str = "write rate,RTT,queue, such as 100mbit,40ms,1bdp";

/// A bottleneck with a drop-tail queue, and the delay around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrittenPath {
    /// Rate of the bottleneck, bit/s, of whole packets: 1 to 10^12.
    pub rate_bps: u64,
    /// Round-trip time without queueing: up to 60 s.
    pub rtt_ns: u64,
    /// Limit of its queue; at least one packet.
    pub queue: QueueLimit,
    /// Probability that a data packet is lost at random, parts per million: below 1000000.
    pub loss_ppm: u64,
}

impl WrittenPath {
    /// Reads `rate,RTT,queue`, or `rate,RTT,queue,loss=P`. The rate is written as in scenarios
    /// (`100mbit`), also `100Mbit/s`. The queue is packets (`84p`), bytes (`100kB`), a time at the
    /// path's rate (`20ms`) or bandwidth-delay products (`1.5bdp`), the last two rounded down to
    /// packets of 1500 bytes.
    ///
    /// # Errors
    /// In words, with the correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let (rate, rtt, queue, loss) = match parts[..] {
            [rate, rtt, queue] => (rate, rtt, queue, None),
            [rate, rtt, queue, loss] => (rate, rtt, queue, Some(loss)),
            [_] => return Err(format!("the RTT and the queue are missing; {EXAMPLE}")),
            [_, _] => return Err(format!("the queue is missing; {EXAMPLE}")),
            _ => return Err(format!("there are {} parts; {EXAMPLE}", parts.len())),
        };
        let of = |part: &'static str| {
            move |e: UnitError| format!("{part}: {e}; {}", e.remedy.replace('"', ""))
        };
        let lower = rate.to_ascii_lowercase();
        let rate_bps =
            RATE.parse(lower.strip_suffix("/s").unwrap_or(&lower)).map_err(of("rate"))?;
        if !(1..=RATE_MAX_BPS).contains(&rate_bps) {
            let most = RATE.show(RATE_MAX_BPS);
            return Err(format!("rate: `{}` is out of range; write 1bit to {most}", clip(rate)));
        }
        let rtt_ns = TIME.parse(rtt).map_err(of("RTT"))?;
        if !(1..=RTT_MAX_NS).contains(&rtt_ns) {
            let most = TIME.show(RTT_MAX_NS);
            return Err(format!("RTT: `{}` is out of range; write 1ns to {most}", clip(rtt)));
        }
        let queue = read_queue(queue, rate_bps, rtt_ns)?;
        let loss_ppm = match loss.map(|l| (l, l.strip_prefix("loss="))) {
            None => 0,
            Some((given, None)) => {
                let what = format!("`{}` is not a loss probability", clip(given));
                return Err(format!("{what}; write loss=0.01 for 1 %, or leave it out"));
            }
            Some((_, Some(number))) => parse_ppm(number).map_err(of("loss"))?,
        };
        if loss_ppm >= 1_000_000 {
            return Err("loss: everything would be lost; write a number below 1".to_owned());
        }
        Ok(Self { rate_bps, rtt_ns, queue, loss_ppm })
    }

    /// Random loss as a probability.
    pub fn loss(&self) -> f64 {
        self.loss_ppm as f64 / 1e6
    }

    /// Time that the bottleneck needs for a full packet.
    pub fn packet_time_ns(&self) -> u64 {
        (PACKET_BYTES * 8 * NS_PER_S).div_ceil(self.rate_bps)
    }
}

/// Formats as [`WrittenPath::parse`] reads it, the queue as packets or bytes.
impl fmt::Display for WrittenPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, rtt) = (RATE.show(self.rate_bps), TIME.show(self.rtt_ns));
        write!(f, "{rate},{rtt},{}", show_queue(self.queue))?;
        if self.loss_ppm > 0 {
            write!(f, ",loss={}", self.loss())?;
        }
        Ok(())
    }
}

fn read_queue(text: &str, rate_bps: u64, rtt_ns: u64) -> Result<QueueLimit, String> {
    let given = clip(text);
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..number_end], text[number_end..].trim_start());
    let packets = |bits: u128| {
        let pkts = bits / u128::from(PACKET_BYTES * 8);
        u32::try_from(pkts).map(QueueLimit::Packets).map_err(|_| {
            format!("queue: `{given}` is more packets than can be counted; write less")
        })
    };
    let per_s = u128::from(NS_PER_S);
    let limit = match unit.to_ascii_lowercase().as_str() {
        "bdp" => {
            let ppm = parse_ppm(number).map_err(|e| {
                format!("queue: {e}; write 1bdp or 0.5bdp (bandwidth-delay products)")
            })?;
            let bdp_bits = u128::from(rate_bps) * u128::from(rtt_ns);
            packets(bdp_bits.saturating_mul(u128::from(ppm)) / per_s / 1_000_000)?
        }
        "ns" | "us" | "ms" | "s" | "min" => {
            let ns = TIME.parse(text).map_err(|e| format!("queue: {e}; {}", e.remedy))?;
            packets(u128::from(rate_bps) * u128::from(ns) / per_s)?
        }
        _ => parse_queue(text).map_err(|e| {
            let remedy = "write 84p (packets), 100kB, 20ms or 1bdp";
            format!("queue: {e}; {remedy}")
        })?,
    };
    match limit {
        QueueLimit::Packets(0) | QueueLimit::Bytes(0..PACKET_BYTES) => Err(format!(
            "queue: `{given}` does not hold a packet of {PACKET_BYTES} bytes; write 1p or more"
        )),
        limit => Ok(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::units::NS_PER_MS;

    fn queue(text: &str) -> QueueLimit {
        WrittenPath::parse(&format!("100mbit,40ms,{text}")).unwrap().queue
    }

    #[test]
    fn queues_are_written_in_four_ways() {
        // 100 Mbit/s for 40 ms: 4 Mbit, 333.3 packets of 12 kbit.
        assert_eq!(queue("1bdp"), QueueLimit::Packets(333));
        assert_eq!(queue("0.5bdp"), QueueLimit::Packets(166));
        assert_eq!(queue("2.1BDP"), QueueLimit::Packets(700));
        assert_eq!(queue("84p"), QueueLimit::Packets(84));
        assert_eq!(queue("100kB"), QueueLimit::Bytes(100_000));
        // 12 ms: 1.2 Mbit.
        assert_eq!(queue("12ms"), QueueLimit::Packets(100));
        assert_eq!(queue("0.12 ms"), QueueLimit::Packets(1));
    }

    #[test]
    fn shown_as_it_is_read() {
        for (given, shown) in [
            ("100Mbit/s, 40ms, 1bdp", "100mbit,40ms,333p"),
            ("10mbit,0.5ms,84p,loss=0.01", "10mbit,500us,84p,loss=0.01"),
            ("1.544Mbit,1s,100kB,loss=0", "1.544mbit,1s,100kB"),
        ] {
            let path = WrittenPath::parse(given).unwrap();
            assert_eq!(path.to_string(), shown);
            assert_eq!(WrittenPath::parse(shown), Ok(path));
        }
        let path = WrittenPath::parse("100mbit,40ms,1bdp,loss=0.25").unwrap();
        assert_eq!((path.rate_bps, path.rtt_ns), (100_000_000, 40 * NS_PER_MS));
        assert_eq!((path.loss(), path.packet_time_ns()), (0.25, 120_000));
    }

    #[test]
    fn refused_with_a_remedy() {
        let said: Vec<String> = [
            "",
            "100mbit",
            "100mbit,40ms",
            "100mbit,40ms,1bdp,loss=0.1,x",
            "100,40ms,1bdp",
            "100MB/s,40ms,1bdp",
            "0mbit,40ms,1bdp",
            "2000gbit,40ms,1bdp",
            "100mbit,40,1bdp",
            "100mbit,0ms,1bdp",
            "100mbit,2min,1bdp",
            "100mbit,40ms,1",
            "100mbit,40ms,bdp",
            "100mbit,40ms,-1bdp",
            "100mbit,40ms,0.001bdp",
            "100mbit,40ms,0p",
            "100mbit,40ms,1kB",
            "100mbit,40ms,1000packets",
            "1000gbit,60s,1000000bdp",
            "100mbit,40ms,1bdp,0.01",
            "100mbit,40ms,1bdp,loss=1%",
            "100mbit,40ms,1bdp,loss=1",
        ]
        .into_iter()
        .map(|text| format!("{text}\n    {}", WrittenPath::parse(text).expect_err(text)))
        .collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
