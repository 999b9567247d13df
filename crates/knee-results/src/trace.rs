//! Files of traces: one row per call of an algorithm, with all that it takes to make the call again.

use crate::{
    ResultsError,
    pages::{self, Bounded},
    parquet::{
        CALLS_PER_GROUP, Column,
        Get::{self, Bytes, MaybeU32, Text, U32, U64},
        ROWS_PER_GROUP, TableWriter,
    },
};
use ::parquet::{
    basic::Type,
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, DataType},
    errors::ParquetError,
    file::reader::{FileReader, SerializedFileReader},
};
use knee_cc::{Conn, Params, SSTHRESH_INFINITE, STATE_MAX_BYTES, State, algorithm};
use knee_model::{Call, CallRecord};
use std::{
    cell::Cell,
    collections::HashSet,
    fs::File,
    io::{self, Read, Seek},
    panic::{self, AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, LazyLock, Once},
};

/// The connection of a row's call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TraceFlow {
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Name; of a live socket `local->remote#n`, where `n` counts the connections between these ends.
    pub name: Arc<str>,
    /// Algorithm.
    pub kind: Arc<str>,
    /// Its parameters as raw numbers: `name=value`, separated by blanks.
    params: Arc<str>,
}

impl TraceFlow {
    /// A flow; parameters that are not known make a trace that cannot be replayed.
    pub fn new(repetition: u32, name: &str, kind: &str, params: Option<&Params>) -> Self {
        let words = params.map_or_else(Vec::new, |params| {
            let table = params.algorithm().params();
            table.iter().zip(params.words()).map(|(p, word)| format!("{}={word}", p.name)).collect()
        });
        let (name, kind) = (name.into(), kind.into());
        Self { repetition, name, kind, params: words.join(" ").into() }
    }

    /// Its algorithm's parameters.
    ///
    /// # Errors
    /// What this version of Knee does not know, in words.
    pub fn params(&self) -> Result<Params, String> {
        let algorithm = algorithm(&self.kind).ok_or(format!("no algorithm `{}`", self.kind))?;
        let mut given = Vec::new();
        for word in self.params.split(' ').filter(|w| !w.is_empty()) {
            let pair = word.split_once('=').and_then(|(n, v)| Some((n, v.parse().ok()?)));
            given.push(pair.ok_or_else(|| format!("`{word}` is not a parameter with a value"))?);
        }
        if given.len() != algorithm.params().len() {
            return Err(format!("`{}` are not all parameters of {}", self.params, self.kind));
        }
        Params::new(algorithm, given).map_err(|e| e.to_string())
    }
}

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceRow {
    /// The connection.
    pub flow: TraceFlow,
    /// Calls that had found no room in the tracer's ring when this one was recorded.
    pub dropped: u64,
    /// The call.
    pub call: CallRecord,
}

/// The function that puts a value into a row; false if the value cannot be right.
enum Set {
    Number(fn(&mut TraceRow, u64) -> bool),
    Maybe(fn(&mut TraceRow, Option<u32>)),
    Text(fn(&mut TraceRow, Arc<str>) -> bool),
    Bytes(fn(&mut TraceRow, &[u8]) -> bool),
}

struct TraceColumn {
    name: &'static str,
    get: Get<TraceRow>,
    set: Set,
}

pub(crate) fn ssthresh(pkts: u32) -> Option<u32> {
    (pkts != SSTHRESH_INFINITE).then_some(pkts)
}

/// Every column, once, with how it is written and how it is read. Comments are those of the reference, as in `tables.rs`.
fn trace_columns() -> Vec<TraceColumn> {
    fn put<T: TryFrom<u64>>(field: &mut T, value: u64) -> bool {
        T::try_from(value).map(|value| *field = value).is_ok()
    }
    macro_rules! column {
        ($kind:ident $name:literal $($field:tt)+) => {
            TraceColumn {
                name: $name,
                get: $kind(|r| r.$($field)+.into()),
                set: Set::Number(|r, value| put(&mut r.$($field)+, value)),
            }
        };
    }
    macro_rules! text {
        ($kind:ident $name:literal $field:ident) => {
            TraceColumn {
                name: $name,
                get: $kind(|r| &r.flow.$field),
                set: Set::Text(|r, value| {
                    r.flow.$field = value;
                    true
                }),
            }
        };
    }
    macro_rules! ssthresh {
        ($kind:ident $name:literal $conn:ident) => {
            TraceColumn {
                name: $name,
                get: $kind(|r| ssthresh(r.call.$conn.ssthresh_pkts)),
                set: Set::Maybe(|r, value| {
                    r.call.$conn.ssthresh_pkts = value.unwrap_or(SSTHRESH_INFINITE);
                }),
            }
        };
    }
    vec![
        // Number of the repetition, from 1.
        column!(U32 "repetition" flow.repetition),
        // Name of the flow; for a live socket `local->remote#n`, where `n` counts the connections
        // between these addresses.
        text!(Text "flow" name),
        // Its algorithm.
        text!(Text "kind" kind),
        // All its parameters as raw numbers (µs, packets, ppm, counts, index of the choice):
        // `name=value`, separated by spaces.
        text!(Text "params" params),
        // For live sockets: calls of this variant that have not been recorded so far because the
        // ring was full; else 0.
        column!(U64 "dropped_calls" dropped),
        // Host clock at the call.
        column!(U64 "now_us" call.before.now_us),
        // `init`, `on_rtt` (not in profile RATE), `on_ack`, `ssthresh`, `on_event`, `undo`.
        TraceColumn {
            name: "call",
            get: Text(|r| r.call.call.name()),
            set: Set::Text(|r, value| {
                let call = Call::ALL.into_iter().find(|c| c.name() == &*value);
                call.map(|call| r.call.call = call).is_some()
            }),
        },
        // For `on_event`: 0 first transmission after idleness, 1 window restarted, 2 recovered, 3
        // timeout.
        column!(U32 "event" call.event),
        // For `on_rtt`, `on_ack`: delivered on this connection so far.
        column!(U64 "ack_delivered_pkts" call.ack.delivered_pkts),
        // Newly delivered by this ACK.
        column!(U32 "ack_acked_pkts" call.ack.acked_pkts),
        // Newly marked lost by this ACK.
        column!(U32 "ack_lost_pkts" call.ack.lost_pkts),
        // RTT sample; null if there is none.
        TraceColumn {
            name: "ack_rtt_us",
            get: MaybeU32(|r| u32::try_from(r.call.ack.rtt_us).ok()),
            set: Set::Maybe(|r, value| r.call.ack.rtt_us = value.map_or(-1, |us| us as i32)),
        },
        // Random bits given with this ACK.
        column!(U32 "ack_random" call.ack.random),
        // For `on_rtt`: by how many the cumulative ACK moved; 0 for a duplicate.
        column!(U32 "ack_advanced_pkts" call.ack.advanced_pkts),
        // Packets delivered since the sample's packet was sent ([delivery rate
        // sample](#delivery-rate-sample)).
        column!(U32 "sample_pkts" call.ack.sample_pkts),
        // Time in which these packets were sent or acknowledged, whichever is longer; 0 if there is
        // no sample.
        column!(U32 "sample_us" call.ack.sample_us),
        // Packets delivered by the time at which the sample's packet was sent; wraps.
        column!(U32 "sample_prior_pkts" call.ack.sample_prior_pkts),
        // In the network before this ACK.
        column!(U32 "prior_inflight_pkts" call.ack.prior_inflight_pkts),
        // (0 or 1) The application limited sending when the sample's packet was sent.
        column!(U32 "sample_app_limited" call.ack.sample_app_limited),
        // 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
        column!(U32 "phase" call.before.phase),
        // (0 or 1) The window limited sending.
        column!(U32 "cwnd_limited" call.before.cwnd_limited),
        // (0 or 1) The application had nothing to send.
        column!(U32 "app_limited" call.before.app_limited),
        // Payload of a full packet.
        column!(U32 "mss_bytes" call.before.mss_bytes),
        // Largest window that the host accepts.
        column!(U32 "cwnd_max_pkts" call.before.cwnd_max_pkts),
        // Estimate of packets in the network.
        column!(U32 "inflight_pkts" call.before.inflight_pkts),
        // Sent and not cumulatively acknowledged.
        column!(U32 "outstanding_pkts" call.before.outstanding_pkts),
        // Smoothed RTT; 0 if none yet.
        column!(U32 "srtt_us" call.before.srtt_us),
        // (packets; bytes in the kernel) Next new position to be sent; wraps.
        column!(U32 "snd_pos" call.before.snd_pos),
        // (packets; bytes in the kernel) First position not cumulatively acknowledged; wraps.
        column!(U32 "ack_pos" call.before.ack_pos),
        // Congestion window before the call.
        column!(U32 "cwnd_before_pkts" call.before.cwnd_pkts),
        // Counted towards the next +1, before the call.
        column!(U32 "cwnd_cnt_before_pkts" call.before.cwnd_cnt),
        // Slow start threshold before the call; null while infinite.
        ssthresh!(MaybeU32 "ssthresh_before_pkts" before),
        // Pacing rate of payload before the call; 0 if the host decides.
        column!(U64 "pacing_before_bytes_per_s" call.before.pacing_bytes_per_s),
        // Congestion window after the call.
        column!(U32 "cwnd_after_pkts" call.after.cwnd_pkts),
        // Counted towards the next +1, after the call.
        column!(U32 "cwnd_cnt_after_pkts" call.after.cwnd_cnt),
        // Slow start threshold after the call; null while infinite.
        ssthresh!(MaybeU32 "ssthresh_after_pkts" after),
        // Pacing rate of payload after the call; 0 if the host decides.
        column!(U64 "pacing_after_bytes_per_s" call.after.pacing_bytes_per_s),
        // (bits) 1 a round ended, 2 window reduced for delay, 4 region B, 8 loss tolerated.
        column!(U32 "notes" call.after.notes),
        // Result of `ssthresh` or `undo`; else 0.
        column!(U32 "result_pkts" call.result),
        // (in its name) The first internal of the algorithm after the call.
        column!(U32 "observe_0" call.observed[0]),
        // (in its name) The second.
        column!(U32 "observe_1" call.observed[1]),
        // (in its name) The third.
        column!(U32 "observe_2" call.observed[2]),
        // (in its name) The fourth.
        column!(U32 "observe_3" call.observed[3]),
        // The algorithm's state after the call: 88 bytes in the byte order of the machine; unused
        // bytes are 0.
        TraceColumn {
            name: "state",
            get: Bytes(|r| r.call.state.bytes()),
            set: Set::Bytes(|r, value| {
                let bytes: Result<[u8; STATE_MAX_BYTES], _> = value.try_into();
                bytes.map(|bytes| r.call.state = State::from(bytes)).is_ok()
            }),
        },
    ]
}

static COLUMNS: LazyLock<(Vec<Column<TraceRow>>, Vec<Set>)> = LazyLock::new(|| {
    trace_columns()
        .into_iter()
        .map(|TraceColumn { name, get, set }| (Column(name, get), set))
        .unzip()
});

/// The columns as they are written.
pub(crate) fn columns() -> &'static [Column<TraceRow>] {
    &COLUMNS.0
}

/// Writes a trace row by row; only a part of a Parquet file is in memory at a time.
pub struct TraceWriter<W: io::Write + Send>(Kind<W>);

enum Kind<W: io::Write + Send> {
    Parquet(Box<TableWriter<'static, TraceRow, W>>),
    Csv(Box<csv::Writer<W>>),
}

impl<W: io::Write + Send> TraceWriter<W> {
    /// Begins a Parquet file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn parquet(out: W) -> io::Result<Self> {
        TableWriter::new(out, columns(), CALLS_PER_GROUP).map(|t| Self(Kind::Parquet(Box::new(t))))
    }

    /// Begins a CSV file, with a line of column names; null is empty, bytes are hexadecimal.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn csv(out: W) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(columns().iter().map(|Column(name, _)| name))?;
        Ok(Self(Kind::Csv(Box::new(csv))))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn push(&mut self, row: TraceRow) -> io::Result<()> {
        let csv = match &mut self.0 {
            Kind::Parquet(table) => return table.push(row),
            Kind::Csv(csv) => csv,
        };
        for Column(_, get) in columns() {
            csv.write_field(&*get.value(&row).csv())?;
        }
        Ok(csv.write_record(None::<&[u8]>)?)
    }

    /// Writes out the rows in memory; a Parquet file keeps them until its part is full.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Parquet(_) => Ok(()),
            Kind::Csv(csv) => csv.flush(),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::Parquet(table) => table.finish(),
            Kind::Csv(mut csv) => csv.flush(),
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|p| Some(digit(p[0])? << 4 | digit(*p.get(1)?)?)).collect()
}

/// Reads a trace, Parquet or CSV, or that of a results folder; gives each row to `to`.
///
/// # Errors
/// The file cannot be read, or it is no trace.
pub fn read_trace(path: &Path, to: impl FnMut(TraceRow)) -> Result<(), ResultsError> {
    let path = if path.is_dir() { path.join("trace.parquet") } else { path.to_owned() };
    let unread = |source: io::Error| {
        let what = format!("`{}` cannot be read: {source}", path.display());
        let help =
            "give a file from `knee trace`, or a folder from `knee run --trace --out FOLDER`";
        ResultsError::new(what, help, Some(source))
    };
    let mut file = File::open(&path).map_err(unread)?;
    let mut start = Vec::new();
    (&mut file).take(4).read_to_end(&mut start).map_err(unread)?;
    file.rewind().map_err(unread)?;
    let result = match start == b"PAR1" {
        true => read_parquet(file, to),
        false => read_csv(file, to),
    };
    result.map_err(|what| {
        let what = format!("`{}` is not a trace: {what}", path.display());
        let help = "give a file that this version of Knee wrote: `knee trace --out FILE`, or \
                    trace.parquet of `knee run --trace --out FOLDER`; an unfinished file cannot be \
                    read";
        ResultsError::new(what, help, None)
    })
}

/// The result of `read`. The library for Parquet panics on some damaged files: that is an error here.
fn contained<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    thread_local! {
        static CONTAINING: Cell<bool> = const { Cell::new(false) };
    }
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CONTAINING.get() {
                report(info);
            }
        }));
    });
    CONTAINING.set(true);
    // Nothing that `read` was at is looked at after an error.
    let result = catch_unwind(AssertUnwindSafe(read));
    CONTAINING.set(false);
    match result {
        Ok(read) => read.map_err(|e| e.to_string()),
        Err(_) => Err("it is damaged".to_owned()),
    }
}

/// Texts that occur again and again.
#[derive(Default)]
struct Texts(HashSet<Arc<str>>);

impl Texts {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.0.insert(new.clone());
        new
    }
}

/// Completes a row all of whose columns are there: fields that the algorithm may not change are as before.
fn complete(mut row: TraceRow) -> TraceRow {
    let Conn { cwnd_pkts, cwnd_cnt, ssthresh_pkts, pacing_bytes_per_s, notes, .. } = row.call.after;
    row.call.after =
        Conn { cwnd_pkts, cwnd_cnt, ssthresh_pkts, pacing_bytes_per_s, notes, ..row.call.before };
    row
}

fn read_csv(file: File, mut to: impl FnMut(TraceRow)) -> Result<(), String> {
    let mut csv = csv::Reader::from_reader(file);
    let names = csv.headers().map_err(|e| e.to_string())?.clone();
    let place = |name: &str| {
        names.iter().position(|n| n == name).ok_or_else(|| format!("it has no column `{name}`"))
    };
    let mut places = Vec::new();
    for Column(name, _) in columns() {
        places.push(place(name)?);
    }
    let mut texts = Texts::default();
    let mut record = csv::StringRecord::new();
    let mut number = 0_u64;
    while csv.read_record(&mut record).map_err(|e| e.to_string())? {
        number += 1;
        let mut row = TraceRow::default();
        for ((set, Column(name, _)), place) in COLUMNS.1.iter().zip(columns()).zip(&places) {
            let value = record.get(*place).unwrap_or("");
            let good = match set {
                Set::Number(set) => value.parse().is_ok_and(|value| set(&mut row, value)),
                Set::Maybe(set) if value.is_empty() => {
                    set(&mut row, None);
                    true
                }
                Set::Maybe(set) => value.parse().map(|value| set(&mut row, Some(value))).is_ok(),
                Set::Text(set) => set(&mut row, texts.get(value)),
                Set::Bytes(set) => unhex(value).is_some_and(|value| set(&mut row, &value)),
            };
            if !good {
                return Err(format!("row {number} has {name} = {value:?}"));
            }
        }
        to(complete(row));
    }
    Ok(())
}

/// Values of a column in a part of a Parquet file; nulls are left out of the second.
enum Values {
    U32(Vec<u32>, Vec<i16>),
    U64(Vec<u64>),
    Bytes(Vec<ByteArray>),
}

fn read_column<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<(Vec<T::T>, Vec<i16>), ParquetError> {
    let (mut values, mut present) = (Vec::with_capacity(rows), Vec::new());
    column.read_records(rows, Some(&mut present), None, &mut values)?;
    Ok((values, present))
}

fn read_parquet(file: File, mut to: impl FnMut(TraceRow)) -> Result<(), String> {
    let (file, places) = contained(|| open(file))?;
    let mut texts = Texts::default();
    for group in 0..file.num_row_groups() {
        let rows = contained(|| read_group(&file, group, &places, &mut texts))?;
        rows.into_iter().for_each(|row| to(complete(row)));
    }
    Ok(())
}

fn wrong(what: String) -> ParquetError {
    ParquetError::General(what)
}

type ParquetFile = SerializedFileReader<Bounded>;

/// The file, and where in it each column is.
fn open(file: File) -> Result<(ParquetFile, Vec<usize>), ParquetError> {
    let file = SerializedFileReader::new(Bounded(file))?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let mut places = Vec::new();
    for (Column(name, get), set) in columns().iter().zip(&COLUMNS.1) {
        let place = schema.columns().iter().position(|c| c.name() == *name);
        let place = place.ok_or_else(|| wrong(format!("it has no column `{name}`")))?;
        let column = schema.column(place);
        let kind = match get {
            U64(_) => Type::INT64,
            Text(_) | Bytes(_) => Type::BYTE_ARRAY,
            _ => Type::INT32,
        };
        let optional = matches!(set, Set::Maybe(_));
        let fits = column.physical_type() == kind
            && column.max_def_level() == i16::from(optional)
            && column.max_rep_level() == 0;
        if !fits {
            return Err(wrong(format!("column `{name}` has another type")));
        }
        places.push(place);
    }
    Ok((file, places))
}

/// The rows of a group.
fn read_group(
    file: &ParquetFile,
    group: usize,
    places: &[usize],
    texts: &mut Texts,
) -> Result<Vec<TraceRow>, ParquetError> {
    let group = file.get_row_group(group)?;
    let n = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
    if n > ROWS_PER_GROUP {
        return Err(wrong(format!("a group of {n} rows is more than Knee writes")));
    }
    let mut rows = vec![TraceRow::default(); n];
    for ((set, Column(name, _)), place) in COLUMNS.1.iter().zip(columns()).zip(places) {
        let values = match pages::column_reader(&*group, *place)? {
            ColumnReader::Int32ColumnReader(c) => {
                let (values, present) = read_column(c, n)?;
                Values::U32(values.into_iter().map(|v: i32| v as u32).collect(), present)
            }
            ColumnReader::Int64ColumnReader(c) => {
                Values::U64(read_column(c, n)?.0.into_iter().map(|v: i64| v as u64).collect())
            }
            ColumnReader::ByteArrayColumnReader(c) => Values::Bytes(read_column(c, n)?.0),
            _ => return Err(wrong(format!("column `{name}` has another type"))),
        };
        let all = rows.iter_mut();
        let good = match (set, values) {
            (Set::Maybe(set), Values::U32(values, present)) => {
                let mut values = values.into_iter();
                all.zip(present).for_each(|(row, there)| {
                    let value = if there > 0 { values.next() } else { None };
                    set(row, value);
                });
                true
            }
            (Set::Number(set), Values::U32(values, _)) => {
                values.len() == n && values.iter().zip(all).all(|(v, row)| set(row, u64::from(*v)))
            }
            (Set::Number(set), Values::U64(values)) => {
                values.len() == n && values.iter().zip(all).all(|(v, row)| set(row, *v))
            }
            (Set::Text(set), Values::Bytes(values)) => {
                let text = |v: &ByteArray| v.as_utf8().ok().map(|text| texts.get(text));
                values.len() == n
                    && values
                        .iter()
                        .map(text)
                        .zip(all)
                        .all(|(v, row)| v.is_some_and(|v| set(row, v)))
            }
            (Set::Bytes(set), Values::Bytes(values)) => {
                values.len() == n && values.iter().zip(all).all(|(v, row)| set(row, v.data()))
            }
            _ => false,
        };
        if !good {
            return Err(wrong(format!("column `{name}` holds an invalid value")));
        }
    }
    Ok(rows)
}
