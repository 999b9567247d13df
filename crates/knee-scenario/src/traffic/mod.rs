//! Sources of many flows: the flows of a `[[flow]]` with `arrivals` or `web`, drawn again in each
//! repetition.
//!
//! Arrivals do not wait for the network (an open loop): the same seed gives the same starts and
//! sizes whatever the algorithm makes of them. Each source draws from streams of its own, starts and
//! sizes from different ones: a change of one leaves the others as they were.

mod law;

pub(crate) use law::SizeLaw;

use knee_model::{Drawn, FlowKind, FlowSpec, NS_PER_S, Ns, Random, TcpSpec, Workload, Write};
use law::{exponential, uniform};
use std::{ops::Range, sync::Arc};

/// A source of flows.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Common part of all its flows; its name is the source's.
    pub flow: FlowSpec,
    /// Number of its table in the scenario: the key of its random streams.
    pub table: u32,
    /// Time in which it is active.
    pub window: Range<Ns>,
    /// Its drawings.
    pub pattern: Pattern,
}

/// Drawings of a source.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// Connections with one transfer each, whose starts are a Poisson process.
    Arrivals {
        /// Connections per second, on average.
        per_s: f64,
        /// Their sizes.
        size: SizeLaw,
    },
    /// People who read web pages.
    Web {
        /// Number.
        users: u32,
        /// A connection for each object; else one for each user.
        parallel: bool,
        /// Mean time between two pages of a user.
        reading_ns: Ns,
    },
}

// The model of web pages of the NGMN white paper "Radio Access Performance Evaluation Methodology"
// (2008), which 3GPP and IEEE 802.16m use too: sizes are lognormal within bounds, given by mean and
// standard deviation before these; the number of embedded objects is Pareto's, cut off at its upper
// bound, less its start; reading and parsing are exponential.
/// Mean and standard deviation, lower and upper bound of a page's main object, bytes.
const MAIN_BYTES: [f64; 4] = [10_710.0, 25_032.0, 100.0, 2e6];
/// The same of an embedded object.
const EMBEDDED_BYTES: [f64; 4] = [7_758.0, 126_168.0, 50.0, 2e6];
/// Start, shape and upper bound of the number of embedded objects.
const EMBEDDED: [f64; 3] = [2.0, 1.1, 55.0];
/// Mean number of embedded objects that comes of it.
const EMBEDDED_MEAN: f64 = 5.64;
/// Mean time from a page's request to that of its embedded objects, seconds.
const PARSING_S: f64 = 0.13;
/// Mean time from a page's request to that of the next one.
pub(crate) const READING_NS: Ns = 30 * NS_PER_S;

/// An object of a web page: when it is written, and its size.
type Object = (Ns, u64);

impl Source {
    /// Flows that it has on average, in each repetition.
    pub(crate) fn expected_flows(&self) -> f64 {
        let window_ns = (self.window.end - self.window.start) as f64;
        match self.pattern {
            Pattern::Arrivals { per_s, .. } => per_s * window_ns / NS_PER_S as f64,
            Pattern::Web { users, parallel: false, .. } => f64::from(users),
            Pattern::Web { parallel: true, .. } => self.expected_transfers(),
        }
    }

    /// Transfers that it has on average, in each repetition.
    pub(crate) fn expected_transfers(&self) -> f64 {
        let window_ns = (self.window.end - self.window.start) as f64;
        match self.pattern {
            Pattern::Arrivals { .. } => self.expected_flows(),
            Pattern::Web { users, reading_ns, .. } => {
                f64::from(users) * window_ns / reading_ns as f64 * (1.0 + EMBEDDED_MEAN)
            }
        }
    }

    /// Its flows in the run of `seed`, by their starts.
    pub(crate) fn flows(&self, seed: u64) -> Vec<FlowSpec> {
        let one = |bytes| Workload::Transfers { size_bytes: bytes, every_ns: None };
        let mut all: Vec<(Ns, Workload)> = match &self.pattern {
            Pattern::Arrivals { per_s, size } => {
                let stream = |component| Random::stream(seed, component, self.table.into());
                let mut sizes = stream("sizes");
                let starts = self.starts(stream("arrivals"), NS_PER_S as f64 / per_s);
                starts.map(|start_ns| (start_ns, one(size.draw(&mut sizes)))).collect()
            }
            Pattern::Web { users, parallel, reading_ns } => {
                let objects = (0..*users).map(|user| self.objects(seed, user, *reading_ns));
                if *parallel {
                    objects.flatten().map(|(at_ns, bytes)| (at_ns, one(bytes))).collect()
                } else {
                    objects.filter_map(connection).collect()
                }
            }
        };
        all.sort_by_key(|(start_ns, _)| *start_ns);
        let source: Arc<str> = self.flow.name.as_str().into();
        let flow = |(number, (start_ns, workload)): (u64, (Ns, Workload))| {
            let mut flow = self.flow.clone();
            flow.name = format!("{source}#{}", number + 1);
            flow.start_ns = start_ns;
            let stream = ((u64::from(self.table) + 1) << 32) + number;
            flow.drawn = Some(Drawn { source: source.clone(), stream });
            if let FlowKind::Tcp(TcpSpec { workload: of_flow, .. }) = &mut flow.kind {
                *of_flow = workload;
            }
            flow
        };
        (0..).zip(all).map(flow).collect()
    }

    /// A Poisson process within the window.
    fn starts(&self, mut random: Random, mean_gap_ns: f64) -> impl Iterator<Item = Ns> {
        let Range { start, end } = self.window;
        let next = move |now_ns: &Ns| {
            let gap_ns = exponential(&mut random, mean_gap_ns).round() as Ns;
            Some(now_ns.saturating_add(gap_ns)).filter(|ns| *ns < end)
        };
        std::iter::successors(Some(start), next).skip(1)
    }

    /// Requests of user number `user` within the window, in order of time.
    fn objects(&self, seed: u64, user: u32, reading_ns: Ns) -> Vec<Object> {
        let [main, embedded] = [MAIN_BYTES, EMBEDDED_BYTES]
            .map(|[mean, sd, least, most]| SizeLaw::lognormal_before_bounds(mean, sd, least, most));
        let key = (u64::from(self.table) << 32) + u64::from(user);
        let mut random = Random::stream(seed, "pages", key);
        let mut objects = Vec::new();
        for page_ns in self.starts(Random::stream(seed, "reading", key), reading_ns as f64) {
            objects.push((page_ns, main.draw(&mut random)));
            let parsing_ns = exponential(&mut random, PARSING_S * NS_PER_S as f64).round() as Ns;
            let count = embedded_objects(uniform(&mut random));
            let sizes = (0..count).map(|_| embedded.draw(&mut random)).collect::<Vec<_>>();
            objects.extend(sizes.into_iter().map(|bytes| (page_ns + parsing_ns, bytes)));
        }
        objects.retain(|(at_ns, _)| *at_ns < self.window.end);
        // The next page may be requested before this one is parsed.
        objects.sort_by_key(|(at_ns, _)| *at_ns);
        objects
    }
}

/// Embedded objects of a page, from a uniform draw.
fn embedded_objects(uniform: f64) -> u32 {
    let [least, shape, most] = EMBEDDED;
    let objects = least * libm::exp(-libm::log(uniform) / shape);
    (objects.min(most) - least).round() as u32
}

/// Objects as transfers on one connection; none without objects.
fn connection(objects: Vec<Object>) -> Option<(Ns, Workload)> {
    let start_ns = objects.first()?.0;
    let writes = objects.into_iter();
    let writes = writes.map(|(at_ns, bytes)| Write { after_ns: at_ns - start_ns, bytes });
    Some((start_ns, Workload::Writes(writes.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_fixtures as testing;

    const S: Ns = NS_PER_S;

    fn source(table: u32, window: Range<Ns>, pattern: Pattern) -> Source {
        let record = testing::record(1.0, 1.0, vec![testing::flow("short", "newreno", &[])]);
        let flow = testing::spec(&record).flows.remove(0);
        Source { flow, table, window, pattern }
    }

    fn arrivals(table: u32, per_s: f64, size: SizeLaw) -> Source {
        source(table, 10 * S..1010 * S, Pattern::Arrivals { per_s, size })
    }

    fn transfer(flow: &FlowSpec) -> (Ns, u64) {
        match flow.kind.workload() {
            Some(Workload::Transfers { size_bytes, every_ns: None }) => {
                (flow.start_ns, *size_bytes)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn arrivals_are_a_poisson_process() {
        let source = arrivals(0, 20.0, SizeLaw::fixed(1000));
        assert_eq!(source.expected_flows(), 20_000.0);
        let starts: Vec<Ns> = source.flows(1).iter().map(|f| f.start_ns).collect();
        assert!(starts.iter().all(|t| source.window.contains(t)));
        assert!(starts.is_sorted());
        // Four standard deviations.
        assert!(starts.len().abs_diff(20_000) < 4 * 142, "{}", starts.len());
        // In windows of a second the variance is the mean: their ratio, of 1000 windows, has a
        // standard deviation of sqrt(2 / 1000).
        let mut counts = vec![0.0; 1000];
        starts.iter().for_each(|t| counts[((t - 10 * S) / S) as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 999.0;
        assert!((variance / mean - 1.0).abs() < 0.18, "{variance} {mean}");
        // Gaps are exponential: their distribution against its formula.
        let mut gaps: Vec<f64> =
            starts.windows(2).map(|w| (w[1] - w[0]) as f64 / S as f64).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps.iter().enumerate().map(|(i, gap)| {
            let p = 1.0 - (-gap * 20.0).exp();
            (p - i as f64 / n).abs()
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{distance}");
    }

    #[test]
    fn each_draws_from_streams_of_its_own() {
        let pareto = SizeLaw::pareto(30e3, 1.2, 10e6).unwrap();
        let of = |source: &Source, seed| -> Vec<(Ns, u64)> {
            source.flows(seed).iter().map(transfer).collect()
        };
        let one = arrivals(0, 20.0, pareto);
        assert_eq!(of(&one, 1), of(&one, 1));
        assert_ne!(of(&one, 1), of(&one, 2), "each repetition has its own draws");
        assert_ne!(of(&one, 1)[..100], of(&arrivals(1, 20.0, pareto), 1)[..100]);
        // Other sizes, the same starts; another rate, the same sizes.
        let [with_sizes, with_rate] =
            [arrivals(0, 20.0, SizeLaw::fixed(9)), arrivals(0, 5.0, pareto)];
        let starts = |of: Vec<(Ns, u64)>| of.into_iter().map(|(t, _)| t).collect::<Vec<_>>();
        assert_eq!(starts(of(&one, 1)), starts(of(&with_sizes, 1)));
        let sizes =
            |of: Vec<(Ns, u64)>| of.into_iter().map(|(_, s)| s).take(99).collect::<Vec<_>>();
        assert_eq!(sizes(of(&one, 1)), sizes(of(&with_rate, 1)));
    }

    #[test]
    fn flows_are_named_and_have_streams_of_their_own() {
        let flows = arrivals(3, 1.0, SizeLaw::fixed(1000)).flows(1);
        assert_eq!((flows[0].name.as_str(), flows[9].name.as_str()), ("short#1", "short#10"));
        let drawn = flows[9].drawn.as_ref().unwrap();
        assert_eq!((&*drawn.source, drawn.stream), ("short", (4 << 32) + 9));
    }

    fn web(parallel: bool, users: u32) -> Source {
        let pattern = Pattern::Web { users, parallel, reading_ns: READING_NS };
        source(0, 0..3000 * S, pattern)
    }

    #[test]
    fn pages_have_the_published_figures() {
        // 200 users read 100 pages each.
        let source = web(true, 200);
        let objects: Vec<_> = (0..200).flat_map(|u| source.objects(1, u, READING_NS)).collect();
        let expected = source.expected_flows();
        assert!((objects.len() as f64 / expected - 1.0).abs() < 0.05, "{}", objects.len());
        assert_eq!(source.flows(1).len(), objects.len());
        // 5.64: the mean of min(X, 55) - 2, worked out from Pareto's law.
        let [k, a, m] = EMBEDDED;
        let mean = a / (a - 1.0) * (k - m * (k / m).powf(a)) + m * (k / m).powf(a) - k;
        assert!((mean - EMBEDDED_MEAN).abs() < 0.005, "{mean}");
        let n = 100_000;
        let counts = (0..n).map(|i| embedded_objects((f64::from(i) + 0.5) / f64::from(n)));
        let drawn = counts.map(f64::from).sum::<f64>() / f64::from(n);
        assert!((drawn - EMBEDDED_MEAN).abs() < 0.1, "{drawn}");
        assert_eq!((embedded_objects(1e-12), embedded_objects(0.999_999)), (53, 0));
    }

    #[test]
    fn a_user_s_connection_carries_the_same_objects() {
        let (parallel, one) = (web(true, 20).flows(1), web(false, 20).flows(1));
        assert_eq!(one.len(), 20);
        let mut carried: Vec<(Ns, u64)> = Vec::new();
        for flow in &one {
            let Some(Workload::Writes(writes)) = flow.kind.workload() else { panic!("{flow:?}") };
            assert_eq!(writes[0].after_ns, 0);
            assert!(writes.is_sorted_by_key(|w| w.after_ns));
            carried.extend(writes.iter().map(|w| (flow.start_ns + w.after_ns, w.bytes)));
        }
        let mut meant: Vec<_> = parallel.iter().map(transfer).collect();
        carried.sort();
        meant.sort();
        assert_eq!(carried, meant);
    }
}
