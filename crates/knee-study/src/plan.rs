//! Shards: which runs belong together, and one of them carried out.

use crate::{
    error::StudyError,
    identity::{self, ENGINE, VERSION},
    study::{self, Study},
    table::{Growth, RunKey, TABLES},
};
use arrow_array::RecordBatch;
use knee_model::{Host, HostErrorKind, RunOptions, RunRecord, RunSpec};
use knee_results::parquet::io_error;
use knee_scenario::Scenario;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, Encoding, ZstdLevel},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties},
    },
    schema::types::ColumnPath,
};
use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    io::{self, BufWriter, Write},
    ops::Range,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tempfile::NamedTempFile;

/// Work of a shard where there is enough of it, in estimated nanoseconds.
const SHARD_NS: f64 = 20e9;
/// Least work of a shard, unless it holds one run.
const SHARD_LEAST_NS: f64 = 1e9;
/// Shards of a study that is too small for whole ones, so that many workers have something to do.
const SHARDS_WANTED: f64 = 64.0;
/// Points whose work is estimated.
const SAMPLES: u64 = 1024;
/// Most values of `algorithm`.
const PARTITIONS_MAX: usize = 10_000;
/// Rows that DuckDB gives a thread at a time.
const ROWS_PER_GROUP: usize = 122_880;
/// Beginning of the names of files that are being written.
pub(crate) const UNFINISHED: &str = ".knee-unfinished-";

/// A study's runs in shards. The same study gives the same shards on every machine.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The study.
    pub study: Arc<Study>,
    host: &'static str,
    commit: Option<String>,
    /// Hashes of the algorithms' sources, by name.
    algorithms: BTreeMap<&'static str, String>,
    /// Dimensions that change the algorithms, and the others.
    changing: Vec<usize>,
    free: Vec<usize>,
    partitions: Vec<Partition>,
    /// The shards, by number.
    pub shards: Vec<Shard>,
}

/// Runs with the same algorithms, which have a folder of their own.
#[derive(Clone, Debug)]
struct Partition {
    algorithm: String,
    /// Points of the dimensions that change the algorithms.
    points: Vec<Vec<usize>>,
    runs: u64,
}

/// Some runs of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard {
    /// Its number, from 0.
    pub number: usize,
    /// Algorithms of all its runs: `chd`, or `chd+newreno`.
    pub algorithm: String,
    /// Index of the partition.
    partition: usize,
    /// Runs of the partition, by their place in it.
    places: Range<u64>,
    /// Work, seconds of a core, as estimated.
    pub estimate_s: f64,
}

impl Shard {
    /// Number of runs.
    pub fn runs(&self) -> u64 {
        self.places.end - self.places.start
    }
}

/// A shard that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Number of runs.
    pub runs: u64,
    /// Number of failed runs among these; their rows give the reason.
    pub failed: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

impl Plan {
    /// The shards of `study` on `host`; `commit` is that of Knee, if known, for the record.
    ///
    /// # Errors
    /// A point that is no scenario, or that `host` cannot carry out, among those that are looked at.
    pub fn new(
        study: impl Into<Arc<Study>>,
        host: &dyn Host,
        commit: Option<&str>,
    ) -> Result<Self, StudyError> {
        let study: Arc<Study> = study.into();
        let (changing, free): (Vec<usize>, Vec<usize>) = (0..study.dimensions.len())
            .partition(|i| Study::changes_algorithms(&study.dimensions[*i]));
        let mut plan = Self {
            host: host.name(),
            commit: commit.map(str::to_owned),
            algorithms: BTreeMap::new(),
            partitions: Vec::new(),
            shards: Vec::new(),
            changing,
            free,
            study,
        };
        plan.make_partitions()?;
        plan.make_shards(host)?;
        Ok(plan)
    }

    /// Work of all, seconds of a core, as estimated.
    pub fn estimate_s(&self) -> f64 {
        self.shards.iter().map(|s| s.estimate_s).sum()
    }

    /// Everything that the data depends on, compared before more is added.
    pub(crate) fn identity(&self) -> serde_json::Value {
        let study = &self.study;
        let axes: Vec<_> = study
            .columns()
            .map(|c| {
                serde_json::json!({
                    "key": c.key, "column": c.name, "values": c.labels.len(),
                })
            })
            .collect();
        let shards: Vec<_> =
            self.shards.iter().map(|s| serde_json::json!([s.algorithm, s.runs()])).collect();
        serde_json::json!({
            "format": 1,
            "knee_version": VERSION,
            "knee_commit": self.commit,
            "engine": ENGINE,
            "host": self.host,
            "algorithms": self.algorithms,
            "study_sha256": study.sha256(),
            "title": study.title,
            "runs": study.runs,
            "seeds": study.repeat(),
            "axes": axes,
            "tables": study.keep.tables,
            "shards": shards,
        })
    }

    fn lens<'a>(&'a self, of: &'a [usize]) -> impl DoubleEndedIterator<Item = u64> + 'a {
        of.iter().map(|d| self.study.dimensions[*d].len() as u64)
    }

    fn make_partitions(&mut self) -> Result<(), StudyError> {
        let combinations: u64 = self.lens(&self.changing).product();
        let too_many = |n: &dyn std::fmt::Display| {
            let what = format!("the axes of algorithms make {n} combinations");
            let remedy = format!("keep at most {PARTITIONS_MAX}, or make several studies");
            StudyError::new(what, remedy)
        };
        if combinations > PARTITIONS_MAX as u64 * 100 {
            return Err(too_many(&combinations));
        }
        let each: u64 = self.lens(&self.free).product::<u64>() * self.study.repeat();
        let mut digits = vec![0; self.study.dimensions.len()];
        for number in 0..combinations {
            let point = study::digits(number, self.lens(&self.changing));
            for (at, digit) in self.changing.iter().zip(&point) {
                digits[*at] = *digit;
            }
            let algorithm = self.study.algorithms(&digits)?;
            match self.partitions.iter_mut().find(|p| p.algorithm == algorithm) {
                Some(partition) => {
                    partition.points.push(point);
                    partition.runs += each;
                }
                None => {
                    self.partitions.push(Partition { algorithm, points: vec![point], runs: each });
                }
            }
        }
        match self.partitions.len() {
            n if n > PARTITIONS_MAX => Err(too_many(&n)),
            _ => Ok(()),
        }
    }

    /// Number of the run at `place` of a partition, and its point.
    fn run_at(&self, partition: &Partition, place: u64) -> (u64, Vec<usize>, u64) {
        let seeds = self.study.repeat();
        let (point, seed) = (place / seeds, place % seeds);
        let all_free: u64 = self.lens(&self.free).product();
        let free = study::digits(point % all_free, self.lens(&self.free));
        let changing = &partition.points[(point / all_free) as usize];
        let mut digits = vec![0; self.study.dimensions.len()];
        let places = self.free.iter().zip(&free).chain(self.changing.iter().zip(changing));
        places.for_each(|(at, digit)| digits[*at] = *digit);
        let in_order = self.study.dimensions.iter().zip(&digits);
        let number = in_order.fold(0, |n, (d, digit)| n * d.len() as u64 + *digit as u64);
        (number * seeds + seed, digits, seed)
    }

    fn make_shards(&mut self, host: &dyn Host) -> Result<(), StudyError> {
        // Blocks of runs, each as expensive as one run of it that is looked at.
        let each = (SAMPLES / self.partitions.len() as u64).max(16);
        let mut blocks: Vec<Vec<(Range<u64>, f64)>> = Vec::new();
        let mut algorithms = BTreeMap::new();
        for partition in &self.partitions {
            let n = each.min(partition.runs);
            let at = |b: u64| (u128::from(partition.runs) * u128::from(b) / u128::from(n)) as u64;
            let mut own = Vec::new();
            for block in 0..n {
                let places = at(block)..at(block + 1);
                // Anywhere in it: a fixed place could always meet the same value of an axis.
                let offset = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let place = places.start + offset % (places.end - places.start);
                let (_, digits, seed) = self.run_at(partition, place);
                let scenario = self.study.scenario_at(&digits)?;
                let spec = scenario.spec(self.study.seed(&scenario, seed));
                refuse_local(&spec)?;
                host.check(&spec, &RunOptions::default())
                    .map_err(|e| StudyError::of_host(&self.study.words(&digits), &e))?;
                algorithms.extend(identity::algorithms_of(&spec));
                let work_ns = work_ns(&spec) * (places.end - places.start) as f64;
                own.push((places, work_ns));
            }
            blocks.push(own);
        }
        self.algorithms = algorithms;
        let total_ns: f64 = blocks.iter().flatten().map(|(_, ns)| ns).sum();
        let target_ns = (total_ns / SHARDS_WANTED).clamp(SHARD_LEAST_NS, SHARD_NS);
        for (partition, blocks) in blocks.into_iter().enumerate() {
            match self.study.runs_per_shard {
                Some(runs) => self.shards_of(partition, &blocks, runs),
                None => self.shards_by_work(partition, blocks, target_ns),
            }
        }
        Ok(())
    }

    fn add_shard(&mut self, partition: usize, places: Range<u64>, work_ns: f64) {
        if places.is_empty() {
            return;
        }
        self.shards.push(Shard {
            number: self.shards.len(),
            algorithm: self.partitions[partition].algorithm.clone(),
            partition,
            places,
            estimate_s: work_ns / 1e9,
        });
    }

    fn shards_of(&mut self, partition: usize, blocks: &[(Range<u64>, f64)], runs: u64) {
        let all = self.partitions[partition].runs;
        let work_ns: f64 = blocks.iter().map(|(_, ns)| ns).sum::<f64>() / all as f64;
        for start in (0..all).step_by(runs as usize) {
            let end = (start + runs).min(all);
            self.add_shard(partition, start..end, work_ns * (end - start) as f64);
        }
    }

    fn shards_by_work(&mut self, partition: usize, blocks: Vec<(Range<u64>, f64)>, target_ns: f64) {
        let (mut open, mut open_ns) = (0..0, 0.0);
        for (places, work_ns) in blocks {
            let runs = places.end - places.start;
            let pieces = ((work_ns / target_ns).ceil() as u64).clamp(1, runs);
            for piece in 0..pieces {
                let at = |p: u64| places.start + runs * p / pieces;
                let piece = at(piece)..at(piece + 1);
                open.end = piece.end;
                open_ns += work_ns * (piece.end - piece.start) as f64 / runs as f64;
                if open_ns >= target_ns {
                    self.add_shard(partition, open.clone(), open_ns);
                    (open, open_ns) = (piece.end..piece.end, 0.0);
                }
            }
        }
        self.add_shard(partition, open, open_ns);
    }

    /// Name of a shard's file of a table, relative to the data set's folder.
    pub fn file_of(&self, shard: &Shard, table: &str) -> PathBuf {
        let algorithm = format!("algorithm={}", escaped(&shard.algorithm));
        let part = format!("part-{:05}.parquet", shard.number);
        Path::new(table).join(algorithm).join(part)
    }

    /// Carries out shard `number` and writes its files into the data set in `folder`. Each has its
    /// name only once it is whole, that of the runs last. `done` is told of each finished run.
    ///
    /// # Errors
    /// A point that is no scenario or that the host cannot carry out, a file that cannot be written,
    /// or `stop` came to be true. Then nothing is left but finished files of other tables, which the
    /// next try writes again.
    pub fn write_shard(
        &self,
        number: usize,
        folder: &Path,
        host: &dyn Host,
        stop: &AtomicBool,
        done: &dyn Fn(u64),
    ) -> Result<Written, StudyError> {
        let shard = self.shard(number)?;
        let mut tables = Vec::new();
        for (index, name) in TABLES.iter().enumerate() {
            if self.study.keep.tables.iter().any(|t| t == name) {
                let file = folder.join(self.file_of(shard, name));
                tables.push(TableFile::new(self, shard, index, file)?);
            }
        }
        let (mut failed, mut written) = (0, 0);
        self.each_run(shard, host, stop, &mut |key, spec, outcome| {
            tables.iter_mut().try_for_each(|table| table.add(key, spec, outcome))?;
            failed += u64::from(outcome.is_err());
            written += 1;
            done(1);
            Ok(())
        })?;
        // Only when all of them are whole, and that of the runs last.
        let ready: Vec<_> = tables.into_iter().map(TableFile::finish).collect::<Result<_, _>>()?;
        let mut bytes = 0;
        for ready in ready.into_iter().rev() {
            bytes += ready.keep()?;
        }
        Ok(Written { runs: written, failed, bytes })
    }

    /// Carries out shard `number` and gives its rows of `table` to `take`, some thousand at a time:
    /// the rows that [`Plan::write_shard`] writes.
    ///
    /// # Errors
    /// As [`Plan::write_shard`]; those of `take`; no such table.
    pub fn run_shard(
        &self,
        number: usize,
        table: &str,
        host: &dyn Host,
        stop: &AtomicBool,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), StudyError>,
    ) -> Result<(), StudyError> {
        let shard = self.shard(number)?;
        let index = TABLES.iter().position(|name| *name == table).ok_or_else(|| {
            StudyError::new(format!("no table is called `{table}`"), TABLES.join(", "))
        })?;
        let mut rows = Growth::new(self.study.keep.clone(), &self.study.dimensions, index);
        self.each_run(shard, host, stop, &mut |key, spec, outcome| {
            rows.add(key, spec, outcome);
            rows.full().map_or(Ok(()), |batch| take(batch.map_err(broken)?))
        })?;
        let rest = rows.batch().map_err(broken)?;
        if rest.num_rows() > 0 { take(rest) } else { Ok(()) }
    }

    pub(crate) fn shard(&self, number: usize) -> Result<&Shard, StudyError> {
        self.shards.get(number).ok_or_else(|| {
            let what = format!("there is no shard {number}");
            StudyError::new(what, format!("they are numbered 0 to {}", self.shards.len() - 1))
        })
    }

    fn each_run(
        &self,
        shard: &Shard,
        host: &dyn Host,
        stop: &AtomicBool,
        take: &mut TakeRun<'_>,
    ) -> Result<(), StudyError> {
        let partition = &self.partitions[shard.partition];
        let mut point: Option<(Vec<usize>, Scenario)> = None;
        for place in shard.places.clone() {
            if stop.load(Ordering::Relaxed) {
                return Err(StudyError::Stopped);
            }
            let (number, digits, seed) = self.run_at(partition, place);
            let (digits, scenario) = match point.take().filter(|(of, _)| *of == digits) {
                Some(same) => same,
                None => {
                    let scenario = self.study.scenario_at(&digits)?;
                    (digits, scenario)
                }
            };
            let seed = self.study.seed(&scenario, seed);
            let spec = scenario.spec(seed);
            refuse_local(&spec)?;
            let id = identity::run_id(self.host, &spec);
            let outcome = match host.run(&spec, &RunOptions::default()) {
                Ok(record) => Ok(record),
                Err(e) if e.kind == HostErrorKind::Broken => Err(e.why),
                Err(e) => {
                    let run = format!("{} --seed {seed}", self.study.words(&digits));
                    return Err(StudyError::of_host(&run, &e));
                }
            };
            let key = RunKey { number, id: &id, seed, digits: &digits };
            take(&key, &spec, &outcome)?;
            point = Some((digits, scenario));
        }
        Ok(())
    }

    /// Description in the file of a table.
    fn provenance(&self, shard: &Shard, table: &str) -> Vec<KeyValue> {
        let algorithms = serde_json::to_string(&self.algorithms).unwrap_or_default();
        let facts = [
            ("table", table.to_owned()),
            ("version", VERSION.to_owned()),
            ("commit", self.commit.clone().unwrap_or_else(|| "unknown".to_owned())),
            ("engine", ENGINE.to_owned()),
            ("host", self.host.to_owned()),
            ("algorithms", algorithms),
            ("shard", format!("{} of {}", shard.number, self.shards.len())),
            ("study", self.study.text.to_string()),
            ("scenario", self.study.scenario.text.clone()),
        ];
        facts
            .into_iter()
            .map(|(name, value)| KeyValue::new(format!("knee.{name}"), value))
            .collect()
    }
}

type TakeRun<'a> =
    dyn FnMut(&RunKey<'_>, &RunSpec, &Result<RunRecord, String>) -> Result<(), StudyError> + 'a;

/// Work of a run, nanoseconds of a core, roughly: the load of its links.
fn work_ns(spec: &RunSpec) -> f64 {
    let hops = spec.path.hops.iter().map(|hop| hop.rate().mean_bps(0, spec.duration_ns));
    let link_pkts = hops.sum::<f64>() * spec.duration_ns as f64 / 1e9 / 12_000.0;
    let sent_pkts: f64 = (0..spec.flows.len()).map(|i| spec.packets(i) as f64).sum();
    let pkts = sent_pkts.min(link_pkts);
    let flows = spec.flows.len() as f64;
    200_000.0 + 250.0 * pkts + 5_000.0 * flows + 30.0 * flows * spec.bins() as f64
}

/// A folder's name may not hold everything that a value may: bytes other than letters, digits and
/// `.+-_` are written `%XX`, as hive does.
fn escaped(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".+-_".contains(&b);
    value.bytes().fold(String::new(), |mut text, b| {
        match plain(b) {
            true => text.push(char::from(b)),
            false => text.push_str(&format!("%{b:02X}")),
        }
        text
    })
}

fn broken(error: impl std::fmt::Display) -> StudyError {
    StudyError::new(format!("a table cannot be made: {error}"), "this is a mistake in Knee")
}

/// A file of a table that is being written.
struct TableFile {
    path: PathBuf,
    rows: Growth,
    writer: ArrowWriter<BufWriter<NamedTempFile>>,
}

/// A whole file that has not its name yet.
struct ReadyFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl TableFile {
    fn new(plan: &Plan, shard: &Shard, table: usize, path: PathBuf) -> Result<Self, StudyError> {
        let rows = Growth::new(plan.study.keep.clone(), &plan.study.dimensions, table);
        let open = || -> io::Result<NamedTempFile> {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            unfinished_file(folder)
        };
        let file = open().map_err(|e| StudyError::of_file("write", &path, &e))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("knee {VERSION}"))
            .set_max_row_group_row_count(Some(ROWS_PER_GROUP))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(plan.provenance(shard, TABLES[table])));
        let run = ColumnPath::from("run");
        properties = properties
            .set_column_dictionary_enabled(run.clone(), false)
            .set_column_encoding(run, Encoding::DELTA_BINARY_PACKED);
        let writer = ArrowWriter::try_new(
            BufWriter::with_capacity(1 << 16, file),
            rows.schema(),
            Some(properties.build()),
        );
        let writer = writer.map_err(|e| of_parquet(&path, e))?;
        Ok(Self { path, rows, writer })
    }

    fn add(
        &mut self,
        key: &RunKey<'_>,
        spec: &RunSpec,
        outcome: &Result<RunRecord, String>,
    ) -> Result<(), StudyError> {
        self.rows.add(key, spec, outcome);
        match self.rows.full() {
            Some(batch) => self.write(&batch.map_err(broken)?),
            None => Ok(()),
        }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), StudyError> {
        self.writer.write(batch).map_err(|e| of_parquet(&self.path, e))
    }

    fn finish(mut self) -> Result<ReadyFile, StudyError> {
        let rest = self.rows.batch().map_err(broken)?;
        self.write(&rest)?;
        let out = self.writer.into_inner().map_err(|e| of_parquet(&self.path, e))?;
        let path = self.path;
        let finish = || -> io::Result<NamedTempFile> {
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        match finish() {
            Ok(file) => Ok(ReadyFile { path, file }),
            Err(e) => Err(StudyError::of_file("write", &path, &e)),
        }
    }
}

impl ReadyFile {
    fn keep(self) -> Result<u64, StudyError> {
        let Self { path, file } = self;
        let told = |e: io::Error| StudyError::of_file("write", &path, &e);
        let bytes = file.as_file().metadata().map_err(told)?.len();
        file.persist(&path).map_err(|e| told(e.error))?;
        // Without this a power cut may undo the step, but never half of it.
        let _ = path.parent().map(|p| File::open(p).and_then(|p| p.sync_all()));
        Ok(bytes)
    }
}

/// Message of the system, if there is one.
fn of_parquet(path: &Path, error: ParquetError) -> StudyError {
    StudyError::of_file("write", path, &io_error(error))
}

/// A file in `folder` that is locked as long as it is open, which distinguishes it from the remains of a
/// killed program.
pub(crate) fn unfinished_file(folder: &Path) -> io::Result<NamedTempFile> {
    let file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    // A file system without locks is no reason to stop.
    let _ = file.as_file().try_lock_shared();
    Ok(file)
}

/// Writes `content` as the file `path`, which is there as a whole or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), StudyError> {
    let write = || -> io::Result<()> {
        let mut file = unfinished_file(path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|e| e.error)
    };
    write().map_err(|e| StudyError::of_file("write", path, &e))
}

/// Refuses an algorithm that only this process has: the data set of a study is the same wherever its
/// runs are made.
fn refuse_local(spec: &RunSpec) -> Result<(), StudyError> {
    match spec.algorithms().find_map(|a| Some((a, a.defined_here()?))) {
        None => Ok(()),
        Some((algorithm, origin)) => Err(StudyError::new(
            format!("`{}` exists in this process only: {origin}", algorithm.name()),
            "write it as a C file, or make the runs with knee.run_many",
        )),
    }
}
