//! The Parquet tables of a run.
//!
//! The comment above a column is its meaning in `docs/reference/results.md`, which `scripts/update-docs.sh` writes. The
//! last part of the column's name is its unit; a comment that begins with parentheses has another unit.

use crate::{
    ResultsError,
    metrics::{Metrics, QueueAt, is_tcp},
    parquet::{
        Column,
        Get::{F64, MaybeF64, MaybeU32, MaybeU64, Text, U32, U64},
        write_if_any,
    },
    store::ResultWriter,
    trace::{self, TraceFlow, TraceRow, ssthresh},
};
use knee_model::{
    CallRecord, FlowRecord, FlowSample, FlowSpec, Ns, PacketLog, QueueBin, RunRecord, RunSpec,
};

/// Bin of a flow. `repetition` counts from 1 in every table.
pub struct FlowRow<'a> {
    repetition: u32,
    flow: &'a FlowRecord,
    sample: &'a FlowSample,
    bin_s: std::ops::Range<f64>,
    tcp: bool,
}

impl<'a> FlowRow<'a> {
    /// The bins of the flows of a run.
    pub fn all(repetition: u32, run: Metrics<'a>) -> impl Iterator<Item = Self> {
        run.record().flows.iter().flat_map(move |flow| {
            let tcp = is_tcp(flow);
            (flow.first_bin as usize..).zip(&flow.samples).map(move |(i, sample)| Self {
                repetition,
                flow,
                sample,
                bin_s: run.bin_s(i),
                tcp,
            })
        })
    }
}

/// Bin of a queue.
pub struct QueueRow<'a> {
    repetition: u32,
    queue: &'a QueueAt<'a>,
    bin: &'a QueueBin,
    end_s: f64,
}

impl<'a> QueueRow<'a> {
    /// The bins of a queue.
    pub fn all(repetition: u32, queue: &'a QueueAt<'a>) -> impl Iterator<Item = Self> {
        queue.record.bins.iter().enumerate().map(move |(i, bin)| Self {
            repetition,
            queue,
            bin,
            end_s: queue.metrics.bin_s(i).end,
        })
    }
}

/// Event of a packet at the bottleneck.
struct PacketRow<'a> {
    repetition: u32,
    queue: &'a str,
    flow: &'a str,
    log: &'a PacketLog,
}

/// Probe that arrived.
struct ProbeRow<'a> {
    repetition: u32,
    flow: &'a str,
    sent_ns: Ns,
    delay_ns: Ns,
}

/// Transfer that was written.
struct TransferRow<'a> {
    repetition: u32,
    flow: &'a FlowRecord,
    bytes: u64,
    start_ns: Ns,
    end_ns: Option<Ns>,
}

/// The columns of `flows`.
pub fn flow_columns<'a>() -> Vec<Column<FlowRow<'a>>> {
    vec![
        // Number of the repetition, from 1.
        Column("repetition", U32(|r| r.repetition)),
        // Name of the flow.
        Column("flow", Text(|r| &r.flow.name)),
        // Its algorithm, or `udp`, `probe`.
        Column("kind", Text(|r| &r.flow.kind)),
        // End of the bin.
        Column("time_s", F64(|r| r.bin_s.end)),
        // Goodput in the bin.
        Column(
            "goodput_bps",
            F64(|r| r.sample.delivered_bytes as f64 * 8.0 / (r.bin_s.end - r.bin_s.start)),
        ),
        // Packets sent in the bin, retransmissions included.
        Column("sent_pkts", U32(|r| r.sample.sent_pkts)),
        // Packets dropped or lost in the bin.
        Column("lost_pkts", U32(|r| r.sample.lost_pkts)),
        // Congestion window at the end of the bin; 0 outside the flow's life; null if not TCP.
        Column("cwnd_pkts", MaybeU32(|r| r.tcp.then_some(r.sample.cwnd_pkts))),
        // Slow start threshold; null while infinite, and if not TCP.
        Column("ssthresh_pkts", MaybeU32(|r| ssthresh(r.sample.ssthresh_pkts).filter(|_| r.tcp))),
        // Packets in flight at the end of the bin; null if not TCP.
        Column("inflight_pkts", MaybeU32(|r| r.tcp.then_some(r.sample.inflight_pkts))),
        // Smoothed RTT; null before the first sample, and if not TCP.
        Column("srtt_us", MaybeU32(|r| Some(r.sample.srtt_us).filter(|us| r.tcp && *us > 0))),
        // (in its name) The first internal of the algorithm; null if it has none.
        Column("observe_0", MaybeU32(|r| observed(r, 0))),
        // (in its name) The second.
        Column("observe_1", MaybeU32(|r| observed(r, 1))),
        // (in its name) The third.
        Column("observe_2", MaybeU32(|r| observed(r, 2))),
        // (in its name) The fourth.
        Column("observe_3", MaybeU32(|r| observed(r, 3))),
    ]
}

fn observed(row: &FlowRow<'_>, i: usize) -> Option<u32> {
    (!row.flow.observes[i].is_empty()).then_some(row.sample.observed[i])
}

/// The columns of `queue`; `several`: there is more than one queue to tell apart.
pub fn queue_columns<'a>(several: bool) -> Vec<Column<QueueRow<'a>>> {
    fn us(row: &QueueRow<'_>, ns: f64) -> Option<f64> {
        (row.bin.departed_pkts > 0).then_some(ns / 1e3)
    }
    let mut columns: Vec<Column<QueueRow<'a>>> = vec![
        // Number of the repetition, from 1.
        Column("repetition", U32(|r| r.repetition)),
        // `1` for the first bottleneck, `2` for the next, ...; `reverse` for the reverse path, if a flow
        // has `direction = "reverse"`; only where there are several queues.
        Column("hop", Text(|r| &r.queue.name)),
        // End of the bin.
        Column("time_s", F64(|r| r.end_s)),
        // Packets that left the queue in the bin.
        Column("departed_pkts", U32(|r| r.bin.departed_pkts)),
        // Their bytes, headers included.
        Column("departed_bytes", U64(|r| r.bin.departed_bytes)),
        // Packets dropped by the queue in the bin.
        Column("dropped_pkts", U32(|r| r.bin.dropped_pkts)),
        // Packets that left the queue in the bin with a congestion mark (ECN).
        Column("marked_pkts", U32(|r| r.bin.marked_pkts)),
        // Mean queueing delay of the packets that left; null if there were none.
        Column(
            "mean_delay_us",
            MaybeF64(|r| us(r, r.bin.delay_sum_ns as f64 / f64::from(r.bin.departed_pkts))),
        ),
        // Longest queueing delay of these packets; null if there were none.
        Column("max_delay_us", MaybeF64(|r| us(r, r.bin.delay_max_ns as f64))),
        // Packets in the queue at the end of the bin.
        Column("held_pkts", U32(|r| r.bin.held_pkts)),
    ];
    columns.retain(|Column(name, _)| several || *name != "hop");
    columns
}

/// The columns of `packets`; `several` as in [`queue_columns`].
fn packet_columns<'a>(several: bool) -> Vec<Column<PacketRow<'a>>> {
    let mut columns: Vec<Column<PacketRow<'a>>> = vec![
        // Number of the repetition, from 1.
        Column("repetition", U32(|r| r.repetition)),
        // The bottleneck, as in `queue.parquet`; only where there are several queues.
        Column("hop", Text(|r| r.queue)),
        // The time of the event.
        Column("time_ns", U64(|r| r.log.time_ns)),
        // The flow of the packet.
        Column("flow", Text(|r| r.flow)),
        // `enqueued`; `departed` (transmission finished); `dropped` (by the queue; after `enqueued`
        // if its discipline drops a packet that it had accepted); `lost` (at random, before the
        // queue).
        Column("event", Text(|r| r.log.event.name())),
        // Segment or packet number within the flow; for the ACK of a flow with `direction =
        // "reverse"`, the first segment not received in order (0 on the kernel).
        Column("number", U32(|r| r.log.number)),
        // Size of the whole packet.
        Column("size_bytes", U32(|r| r.log.bytes)),
        // Packets in the queue after the event.
        Column("held_pkts", U32(|r| r.log.held_pkts)),
    ];
    columns.retain(|Column(name, _)| several || *name != "hop");
    columns
}

fn probe_columns<'a>() -> Vec<Column<ProbeRow<'a>>> {
    vec![
        // Number of the repetition, from 1.
        Column("repetition", U32(|r| r.repetition)),
        // Name of the probe flow.
        Column("flow", Text(|r| r.flow)),
        // The time of its transmission.
        Column("sent_ns", U64(|r| r.sent_ns)),
        // Its one-way delay.
        Column("delay_ns", U64(|r| r.delay_ns)),
    ]
}

fn transfer_columns<'a>() -> Vec<Column<TransferRow<'a>>> {
    vec![
        // Number of the repetition, from 1.
        Column("repetition", U32(|r| r.repetition)),
        // Name of the flow.
        Column("flow", Text(|r| &r.flow.name)),
        // The source that the flow was drawn from; empty if the scenario names the flow.
        Column("source", Text(|r| &r.flow.source)),
        // Its algorithm.
        Column("kind", Text(|r| &r.flow.kind)),
        // Its size.
        Column("size_bytes", U64(|r| r.bytes)),
        // The time at which the application wrote it.
        Column("start_ns", U64(|r| r.start_ns)),
        // The time at which the receiver had all of it; null if the run ended earlier.
        Column("end_ns", MaybeU64(|r| r.end_ns)),
        // The time between the two: the completion time.
        Column("duration_ns", MaybeU64(|r| Some(r.end_ns? - r.start_ns))),
    ]
}

/// A consumer of the tables of a run.
pub trait Tables {
    /// The reason why it cannot take a table.
    type Error;

    /// Takes a table; of one without rows it may make nothing.
    ///
    /// # Errors
    /// Its own.
    fn table<R>(
        &mut self,
        name: &str,
        columns: &[Column<R>],
        rows: impl Iterator<Item = R>,
    ) -> Result<(), Self::Error>;
}

/// A Parquet file for each table that has rows.
impl Tables for &ResultWriter {
    type Error = ResultsError;

    fn table<R>(
        &mut self,
        name: &str,
        columns: &[Column<R>],
        rows: impl Iterator<Item = R>,
    ) -> Result<(), ResultsError> {
        write_if_any(self, &format!("{name}.parquet"), columns, rows)
    }
}

/// Writes the tables of `records`, repetitions of `spec`, those that would be empty left out:
/// `flows.parquet`, `queue.parquet`, `packets.parquet`, `trace.parquet`, `probes.parquet`,
/// `transfers.parquet`.
///
/// # Errors
/// A file cannot be written.
pub fn write_tables(
    mut results: &ResultWriter,
    spec: &RunSpec,
    records: &[RunRecord],
) -> Result<(), ResultsError> {
    tables(&mut results, spec, records)
}

/// Gives the tables of `records`, repetitions of `spec`: `flows`, `queue`, `packets`, `trace`,
/// `probes`, `transfers`.
///
/// # Errors
/// The errors of the consumer.
pub fn tables<T: Tables>(
    to: &mut T,
    spec: &RunSpec,
    records: &[RunRecord],
) -> Result<(), T::Error> {
    let runs = || (1u32..).zip(records);
    let flows = || runs().flat_map(|(n, r)| r.flows.iter().map(move |f| (n, r, f)));

    let rows = runs().flat_map(|(n, record)| FlowRow::all(n, Metrics::new(spec, record)));
    to.table("flows", &flow_columns(), rows)?;

    let queues: Vec<_> = runs()
        .flat_map(|(repetition, record)| {
            let queues = Metrics::new(spec, record).queues();
            queues.into_iter().map(move |at| (repetition, record, at))
        })
        .collect();
    let several = spec.has_several_queues();
    let rows = queues.iter().flat_map(|(repetition, _, at)| QueueRow::all(*repetition, at));
    to.table("queue", &queue_columns(several), rows)?;

    let rows = queues.iter().flat_map(|(repetition, record, at)| {
        at.record.log.iter().map(move |log| {
            let flow = record.flows.get(log.flow as usize).map_or("", |f| &f.name);
            PacketRow { repetition: *repetition, queue: &at.name, flow, log }
        })
    });
    to.table("packets", &packet_columns(several), rows)?;

    let traced = |f: &(u32, &RunRecord, &FlowRecord)| !f.2.trace.is_empty();
    let rows = flows().filter(traced).flat_map(|(repetition, _, flow)| {
        // Those drawn from a source are not the same in each repetition, but alike.
        let of = spec.flows.iter().find(|of| match &of.drawn {
            Some(drawn) => *drawn.source == *flow.source,
            None => of.name == flow.name,
        });
        let params = of.and_then(FlowSpec::params);
        let traced = TraceFlow::new(repetition, &flow.name, &flow.kind, params);
        let row =
            move |call: &CallRecord| TraceRow { flow: traced.clone(), dropped: 0, call: *call };
        flow.trace.iter().map(row)
    });
    to.table("trace", trace::columns(), rows)?;

    let rows = flows().flat_map(|(repetition, _, flow)| {
        flow.probe_delays.iter().map(move |&(sent_ns, delay_ns)| {
            let flow = flow.name.as_str();
            ProbeRow { repetition, flow, sent_ns, delay_ns }
        })
    });
    to.table("probes", &probe_columns(), rows)?;

    let rows = flows().flat_map(|(repetition, _, flow)| {
        let row = move |start_ns, bytes, end_ns| TransferRow {
            repetition,
            flow,
            bytes,
            start_ns,
            end_ns,
        };
        let completed =
            flow.transfers.iter().map(move |t| row(t.start_ns, t.bytes, Some(t.end_ns)));
        completed.chain(flow.unfinished.iter().map(move |t| row(t.start_ns, t.bytes, None)))
    });
    to.table("transfers", &transfer_columns(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet::ROWS_PER_GROUP;
    use ::parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::{Field, Row},
    };
    use knee_cc::{Ack, Conn, SSTHRESH_INFINITE};
    use knee_fixtures as testing;
    use knee_model::{Call, NS_PER_S, PacketEvent, Transfer, Unfinished};
    use std::{collections::BTreeMap, path::Path};

    fn read(dir: &Path, name: &str) -> Vec<BTreeMap<String, Field>> {
        let file = std::fs::File::open(dir.join(name)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let row = |r: Result<Row, _>| r.unwrap().into_columns().into_iter().collect();
        reader.get_row_iter(None).unwrap().map(row).collect()
    }

    fn sample_run() -> RunRecord {
        let chd = testing::flow("bulk", "chd", &[1000, 2000, 500]);
        let probe = testing::flow("probe", "probe", &[0, 0, 0]);
        let mut run = testing::record(2.5, 1.0, vec![chd, probe]);
        run.flows[0].samples[0] = FlowSample {
            delivered_bytes: 1000,
            sent_pkts: 7,
            lost_pkts: 1,
            cwnd_pkts: 10,
            ssthresh_pkts: SSTHRESH_INFINITE,
            inflight_pkts: 6,
            srtt_us: 41_000,
            observed: [5, 6, 4_000_000_000, 1],
        };
        run.flows[1].probe_delays = vec![(0, 20_100_000), (NS_PER_S, 25_000_000)];
        run.flows[0].transfers = vec![Transfer { start_ns: 5, end_ns: 25, bytes: 1500 }];
        run.flows[0].unfinished = vec![Unfinished { start_ns: 7, bytes: u64::MAX }];
        let bin = QueueBin {
            departed_pkts: 4,
            departed_bytes: 6000,
            dropped_pkts: 2,
            marked_pkts: 1,
            delay_sum_ns: 10_000,
            delay_max_ns: 5_500,
            held_pkts: 3,
        };
        run.queues[0] = testing::queue(&[bin, QueueBin::default()]);
        run.queues[0].log.push(PacketLog {
            time_ns: u64::MAX,
            flow: 0,
            number: 3,
            bytes: 1500,
            held_pkts: 84,
            event: PacketEvent::Dropped,
        });
        let conn = Conn { now_us: 99, ssthresh_pkts: SSTHRESH_INFINITE, ..Conn::default() };
        run.flows[0].trace.push(CallRecord {
            call: Call::OnRtt,
            ack: Ack { rtt_us: -1, random: u32::MAX, ..Ack::default() },
            before: conn,
            after: Conn { cwnd_pkts: 8, ssthresh_pkts: 8, notes: 3, ..conn },
            ..CallRecord::default()
        });
        run
    }

    fn written(records: &[RunRecord]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let results = ResultWriter::create(&dir.path().join("out")).unwrap();
        write_tables(&results, &testing::spec(&records[0]), records).unwrap();
        let out = results.finish().unwrap();
        (dir, out)
    }

    #[test]
    fn tables_hold_the_record() {
        let (_dir, out) = written(&[sample_run(), sample_run()]);
        let flows = read(&out, "flows.parquet");
        assert_eq!(flows.len(), 2 * 2 * 3);
        let first = &flows[0];
        assert_eq!(first["repetition"], Field::UInt(1));
        assert_eq!(first["flow"], Field::Str("bulk".into()));
        assert_eq!(first["time_s"], Field::Double(1.0));
        assert_eq!(first["goodput_bps"], Field::Double(8000.0));
        assert_eq!(first["ssthresh_pkts"], Field::Null);
        assert_eq!(first["srtt_us"], Field::UInt(41_000));
        assert_eq!(first["observe_2"], Field::UInt(4_000_000_000));
        // The last bin lasts half a second.
        assert_eq!(flows[2]["time_s"], Field::Double(2.5));
        assert_eq!(flows[2]["goodput_bps"], Field::Double(8000.0));
        assert_eq!(flows[2]["ssthresh_pkts"], Field::UInt(0));
        // A probe has no window.
        assert_eq!(flows[3]["cwnd_pkts"], Field::Null);
        assert_eq!(flows[3]["observe_0"], Field::Null);
        assert_eq!(flows[6]["repetition"], Field::UInt(2));

        let queue = read(&out, "queue.parquet");
        assert_eq!(queue[0]["mean_delay_us"], Field::Double(2.5));
        assert_eq!(queue[0]["max_delay_us"], Field::Double(5.5));
        assert_eq!(queue[0]["departed_bytes"], Field::ULong(6000));
        assert_eq!(queue[0]["marked_pkts"], Field::UInt(1));
        assert_eq!(queue[1]["mean_delay_us"], Field::Null);

        let packets = read(&out, "packets.parquet");
        assert_eq!(packets[0]["time_ns"], Field::ULong(u64::MAX));
        assert_eq!(packets[0]["event"], Field::Str("dropped".into()));
        assert_eq!(packets[0]["flow"], Field::Str("bulk".into()));

        let trace = read(&out, "trace.parquet");
        assert_eq!(trace[0]["call"], Field::Str("on_rtt".into()));
        assert_eq!(trace[0]["ack_rtt_us"], Field::Null);
        assert_eq!(trace[0]["ack_random"], Field::UInt(u32::MAX));
        assert_eq!(trace[0]["ssthresh_before_pkts"], Field::Null);
        assert_eq!(trace[0]["ssthresh_after_pkts"], Field::UInt(8));

        let probes = read(&out, "probes.parquet");
        assert_eq!(probes.len(), 4);
        assert_eq!(probes[1]["sent_ns"], Field::ULong(NS_PER_S));
        assert_eq!(probes[1]["delay_ns"], Field::ULong(25_000_000));

        let transfers = read(&out, "transfers.parquet");
        assert_eq!(transfers.len(), 4);
        assert_eq!(transfers[0]["source"], Field::Str(String::new()));
        assert_eq!(transfers[0]["duration_ns"], Field::ULong(20));
        assert_eq!(transfers[1]["size_bytes"], Field::ULong(u64::MAX));
        assert_eq!(transfers[1]["end_ns"], Field::Null);
        assert_eq!(transfers[3]["repetition"], Field::UInt(2));
    }

    #[test]
    fn rows_of_drawn_flows_have_their_own_times() {
        let mut run = sample_run();
        run.flows[0].source = "web".into();
        run.flows[0].first_bin = 1;
        run.flows[0].samples.truncate(1);
        let (_dir, out) = written(&[run]);
        assert_eq!(read(&out, "flows.parquet")[0]["time_s"], Field::Double(2.0));
    }

    #[test]
    fn long_tables_take_several_groups() {
        let mut run = sample_run();
        let log = run.queues[0].log[0];
        run.queues[0].log =
            (0..ROWS_PER_GROUP as u32 + 5).map(|number| PacketLog { number, ..log }).collect();
        let (_dir, out) = written(&[run]);
        let packets = read(&out, "packets.parquet");
        assert_eq!(packets.len(), ROWS_PER_GROUP + 5);
        assert_eq!(packets[ROWS_PER_GROUP + 4]["number"], Field::UInt(ROWS_PER_GROUP as u32 + 4));
    }

    #[test]
    fn empty_tables_are_left_out() {
        let mut run = testing::record(1.0, 0.0, vec![testing::flow("a", "hd", &[])]);
        run.flows[0].counters.sent_pkts = 1;
        let (_dir, out) = written(&[run]);
        assert_eq!(std::fs::read_dir(out).unwrap().count(), 0);
    }

    #[test]
    fn the_same_run_gives_the_same_bytes() {
        let (_a, a) = written(&[sample_run()]);
        let (_b, b) = written(&[sample_run()]);
        for name in ["flows", "queue", "packets", "trace", "probes", "transfers"] {
            let name = format!("{name}.parquet");
            assert_eq!(
                std::fs::read(a.join(&name)).unwrap(),
                std::fs::read(b.join(&name)).unwrap()
            );
        }
    }

    #[test]
    fn every_column_is_documented() {
        let docs = include_str!("../../../docs/reference/results.md");
        fn check<R>(docs: &str, file: &str, columns: &[Column<R>]) {
            let (_, rest) = docs.split_once(&format!("## `{file}`")).expect(file);
            let section = rest.split("\n## ").next().unwrap_or(rest);
            for Column(name, _) in columns {
                assert!(section.contains(&format!("`{name}`")), "{file}: {name}");
            }
        }
        check(docs, "flows.parquet", &flow_columns());
        check(docs, "queue.parquet", &queue_columns(true));
        check(docs, "packets.parquet", &packet_columns(true));
        check(docs, "trace.parquet", trace::columns());
        check(docs, "probes.parquet", &probe_columns());
        check(docs, "transfers.parquet", &transfer_columns());
    }
}
