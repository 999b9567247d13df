//! Time series for charts: at most two points per pixel column, its least and its largest value.

use knee_model::{FlowRecord, FlowSample, NS_PER_S, QueueBin, RunRecord, seconds};
use serde::Deserialize;
use std::ops::Range;

/// Request for series to draw.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub(crate) enum Want {
    /// Congestion window of a flow, packets.
    Cwnd { flow: usize },
    /// Slow start threshold of a flow, packets; nothing while it is infinite.
    Ssthresh { flow: usize },
    /// Payload that a flow delivered, Mbit/s, mean of the bins of the last `over_s` seconds.
    Goodput { flow: usize, over_s: f64 },
    /// Smoothed RTT of a flow, ms.
    Rtt { flow: usize },
    /// Packets of a flow that were dropped or lost: their number in the pixel column.
    Lost { flow: usize },
    /// Internal `value` of a flow's algorithm, as it gives it.
    Internal { flow: usize, value: usize },
    /// Mean queueing delay of the packets that left hop `hop`, ms.
    QueueDelay { hop: usize },
    /// Packets held by the queue of hop `hop` at the end of the bin.
    QueuePkts { hop: usize },
}

/// Number of bins of a run.
pub(crate) fn bins(record: &RunRecord) -> usize {
    match record.bin_ns {
        0 => 0,
        bin_ns => record.duration_ns.div_ceil(bin_ns) as usize,
    }
}

impl Want {
    /// The value of bin `bin`, if there is one.
    fn value(&self, record: &RunRecord, bin: usize) -> Option<f64> {
        Some(match *self {
            Self::Cwnd { flow } => alive(record, flow, bin)?.cwnd_pkts.into(),
            Self::Ssthresh { flow } => {
                let pkts = alive(record, flow, bin)?.ssthresh_pkts;
                Some(pkts).filter(|pkts| *pkts < knee_cc::SSTHRESH_INFINITE)?.into()
            }
            Self::Goodput { flow, .. } => {
                living(record, flow, bin)?.delivered_bytes as f64 * 8e3 / record.bin_ns as f64
            }
            Self::Rtt { flow } => {
                let us = alive(record, flow, bin)?.srtt_us;
                f64::from(Some(us).filter(|us| *us > 0)?) / 1e3
            }
            Self::Lost { flow } => living(record, flow, bin)?.lost_pkts.into(),
            Self::Internal { flow, value } => {
                (*alive(record, flow, bin)?.observed.get(value)?).into()
            }
            Self::QueueDelay { hop } => {
                let bin = queue_bin(record, hop, bin).filter(|b| b.departed_pkts > 0)?;
                bin.delay_sum_ns as f64 / f64::from(bin.departed_pkts) / 1e6
            }
            Self::QueuePkts { hop } => queue_bin(record, hop, bin)?.held_pkts.into(),
        })
    }

    /// The values of `bins`.
    fn values(&self, record: &RunRecord, bins: Range<usize>) -> Vec<f64> {
        let value = |bin| self.value(record, bin).unwrap_or(f64::NAN);
        let Self::Goodput { over_s, .. } = *self else { return bins.map(value).collect() };
        let over =
            (over_s * NS_PER_S as f64 / record.bin_ns.max(1) as f64).round().max(1.0) as usize;
        let first = bins.start.saturating_sub(over - 1);
        let all: Vec<f64> = (first..bins.end).map(value).collect();
        running_means(&all, over).split_off(bins.start - first)
    }
}

/// At each place the mean of the last `over` values, of those that are numbers; NaN where the value
/// itself is none.
fn running_means(values: &[f64], over: usize) -> Vec<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    let mut mean = |(i, value): (usize, &f64)| {
        if !value.is_nan() {
            sum += value;
            count += 1;
        }
        if let Some(gone) = i.checked_sub(over).map(|gone| values[gone]).filter(|v| !v.is_nan()) {
            sum -= gone;
            count -= 1;
        }
        // Rounding must not draw a negative rate.
        if value.is_nan() { f64::NAN } else { (sum / f64::from(count)).max(0.0) }
    };
    values.iter().enumerate().map(&mut mean).collect()
}

/// The row of a flow that has a window.
fn alive(record: &RunRecord, flow: usize, bin: usize) -> Option<&FlowSample> {
    record.flows.get(flow)?.sample(bin).filter(|sample| sample.cwnd_pkts > 0)
}

/// The row of a flow between its start and its stop.
fn living(record: &RunRecord, flow: usize, bin: usize) -> Option<&FlowSample> {
    let flow = record.flows.get(flow)?;
    life(flow, record.bin_ns).contains(&bin).then(|| flow.sample(bin))?
}

fn life(flow: &FlowRecord, bin_ns: u64) -> Range<usize> {
    (flow.start_ns / bin_ns) as usize..flow.stop_ns.div_ceil(bin_ns) as usize
}

fn queue_bin(record: &RunRecord, hop: usize, bin: usize) -> Option<&QueueBin> {
    record.queues.get(hop)?.bins.get(bin)
}

/// The bins of `from_s..to_s`, with one more on either side so that lines go on to the chart's edge.
fn shown(record: &RunRecord, from_s: f64, to_s: f64) -> Range<usize> {
    let per_s = NS_PER_S as f64 / record.bin_ns.max(1) as f64;
    let count = bins(record);
    let first = ((from_s * per_s).floor() - 1.0).clamp(0.0, count as f64) as usize;
    let end = ((to_s * per_s).ceil() + 1.0).clamp(first as f64, count as f64) as usize;
    first..end
}

/// Columns for a chart: the times (s, ends of bins), then the values of each of `wants`. Where more
/// than two bins share one of `columns`, each series has its least and its largest value there, in the
/// order in which they came; of counts, their sum.
pub(crate) fn columns(
    record: &RunRecord,
    wants: &[Want],
    from_s: f64,
    to_s: f64,
    columns: usize,
) -> (usize, Vec<f64>) {
    let range = shown(record, from_s, to_s);
    let bin_s = seconds(record.bin_ns);
    let end_s = seconds(record.duration_ns);
    let time = |bin: usize| ((bin + 1) as f64 * bin_s).min(end_s);
    let columns = columns.clamp(1, 1 << 16);
    if range.len() <= 2 * columns {
        let times = range.clone().map(time);
        let values = wants.iter().flat_map(|want| want.values(record, range.clone()));
        return (range.len(), times.chain(values).collect());
    }
    let column = |k: usize| {
        let at = |k: usize| range.start + range.len() * k / columns;
        at(k)..at(k + 1)
    };
    let mut numbers = Vec::with_capacity(2 * columns * (1 + wants.len()));
    for k in 0..columns {
        let bins = column(k);
        numbers.extend([time(bins.start), time(bins.start + bins.len() / 2)]);
    }
    for want in wants {
        let values = want.values(record, range.clone());
        let is_count = matches!(want, Want::Lost { .. });
        for k in 0..columns {
            let part = column(k);
            let part = &values[part.start - range.start..part.end - range.start];
            let (first, second) = if is_count { total(part) } else { extremes(part) };
            numbers.extend([first, second]);
        }
    }
    (2 * columns, numbers)
}

/// The sum of the values, instead of the first; NaN of nothing.
fn total(values: &[f64]) -> (f64, f64) {
    let numbers = values.iter().filter(|value| !value.is_nan());
    (numbers.copied().reduce(|a, b| a + b).unwrap_or(f64::NAN), f64::NAN)
}

/// The least and the largest value, the one that came first before the other; NaN twice of nothing.
fn extremes(values: &[f64]) -> (f64, f64) {
    let (mut least, mut largest) = ((0, f64::NAN), (0, f64::NAN));
    for (i, &value) in values.iter().enumerate() {
        if value < least.1 || least.1.is_nan() {
            least = (i, value);
        }
        if value > largest.1 || largest.1.is_nan() {
            largest = (i, value);
        }
    }
    if least.0 <= largest.0 { (least.1, largest.1) } else { (largest.1, least.1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_model::QueueRecord;

    fn record(held: &[u32]) -> RunRecord {
        let bin = |held_pkts: &u32| QueueBin { held_pkts: *held_pkts, ..QueueBin::default() };
        RunRecord {
            duration_ns: held.len() as u64 * NS_PER_S,
            bin_ns: NS_PER_S,
            queues: vec![QueueRecord {
                bins: held.iter().map(bin).collect(),
                ..QueueRecord::default()
            }],
            ..RunRecord::default()
        }
    }

    #[test]
    fn few_bins_are_drawn_as_they_are() {
        let record = record(&[3, 1, 2]);
        let got = columns(&record, &[Want::QueuePkts { hop: 0 }], 0.0, 3.0, 10);
        assert_eq!(got, (3, vec![1.0, 2.0, 3.0, 3.0, 1.0, 2.0]));
    }

    #[test]
    fn a_column_keeps_its_extremes_in_order() {
        let held = [5, 9, 1, 2, 4, 4, 0, 7, 3, 3, 3, 3];
        let (count, numbers) = columns(&record(&held), &[Want::QueuePkts { hop: 0 }], 0.0, 12.0, 3);
        assert_eq!(count, 6);
        assert_eq!(numbers[..6], [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
        assert_eq!(numbers[6..], [9.0, 1.0, 0.0, 7.0, 3.0, 3.0]);
    }

    #[test]
    fn a_missing_value_is_not_an_extreme() {
        assert_eq!(extremes(&[f64::NAN, 2.0, f64::NAN, 1.0]), (2.0, 1.0));
        let (a, b) = extremes(&[f64::NAN, f64::NAN]);
        assert!(a.is_nan() && b.is_nan());
    }

    #[test]
    fn means_run_over_the_present_values() {
        let got = running_means(&[4.0, 2.0, 0.0, f64::NAN, 6.0, 2.0], 2);
        assert_eq!(got[..3], [4.0, 3.0, 1.0]);
        assert!(got[3].is_nan());
        assert_eq!(got[4..], [6.0, 4.0]);
    }

    #[test]
    fn counts_are_added() {
        assert_eq!(total(&[1.0, f64::NAN, 2.0]).0, 3.0);
        assert!(total(&[f64::NAN]).0.is_nan());
    }

    #[test]
    fn a_part_has_one_bin_more_on_either_side() {
        let held: Vec<u32> = (0..100).collect();
        let got = columns(&record(&held), &[Want::QueuePkts { hop: 0 }], 10.0, 12.0, 10);
        assert_eq!(got, (4, vec![10.0, 11.0, 12.0, 13.0, 9.0, 10.0, 11.0, 12.0]));
    }
}
