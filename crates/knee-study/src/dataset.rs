//! The folder of a study's data: its files, its writers, and its completeness.

use crate::{
    error::StudyError,
    plan::{Plan, Shard, UNFINISHED, write_whole},
    study::Study,
    table::TABLES,
};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use std::{
    fmt::{self, Display},
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Description in the folder: provenance of the data, and its shards.
const IDENTITY: &str = "study.json";
const STUDY: &str = "study.toml";
const SCENARIO: &str = "scenario.toml";

/// Part `index` of `of` equal parts of a study's shards, for jobs of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Number of the slice, from 1.
    index: usize,
    of: usize,
}

impl Slice {
    /// All shards.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Part `index`, from 1, of `of`; none if there is no such part.
    pub fn new(index: usize, of: usize) -> Option<Self> {
        (1..=of).contains(&index).then_some(Self { index, of })
    }

    /// True if shard `number` belongs to it. Neighbours are in different parts, which makes parts
    /// equal in work.
    pub fn has(&self, number: usize) -> bool {
        number % self.of == self.index - 1
    }
}

impl Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// Finished part of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Title of the study.
    pub title: Option<String>,
    /// Finished shards.
    pub shards: usize,
    /// All shards.
    pub shards_all: usize,
    /// Finished runs.
    pub runs: u64,
    /// All runs.
    pub runs_all: u64,
    /// Bytes of the finished files.
    pub bytes: u64,
    /// True if all shards are finished.
    pub complete: bool,
}

/// A data set. While it is open for writing, no other program writes the same part of it.
#[derive(Debug)]
pub struct DataSet {
    folder: PathBuf,
    slice: Slice,
    /// Locked as long as they are open: the folder, and the file of a part of it.
    _locks: Vec<File>,
    own_file: Option<PathBuf>,
}

impl Drop for DataSet {
    fn drop(&mut self) {
        // Still locked, so that nobody else uses it.
        let _ = self.own_file.take().map(fs::remove_file);
    }
}

impl DataSet {
    /// Begins the data set of `plan` in `folder`, or resumes it, for the shards in `slice`. Removes
    /// unfinished files of a killed program.
    ///
    /// # Errors
    /// The folder holds something else, or the data of another study, scenario or Knee; another
    /// program is writing the same part; it cannot be written to.
    pub fn open(folder: &Path, plan: &Plan, slice: Slice) -> Result<Self, StudyError> {
        let told = |e: &io::Error| StudyError::of_file("write to", folder, e);
        fs::create_dir_all(folder).map_err(|e| told(&e))?;
        let mut data =
            Self { folder: folder.to_owned(), slice, _locks: Vec::new(), own_file: None };
        data.lock()?;
        data.claim(plan)?;
        data.tidy(plan);
        Ok(data)
    }

    /// Removes what killed programs left unfinished.
    fn tidy(&self, plan: &Plan) {
        remove_unfinished(&self.folder);
        for table in &plan.study.keep.tables {
            for entry in fs::read_dir(self.folder.join(table)).into_iter().flatten().flatten() {
                remove_unfinished(&entry.path());
            }
        }
    }

    /// The data set in `folder`, to be read.
    ///
    /// # Errors
    /// There is none.
    pub fn reading(folder: &Path) -> Result<Self, StudyError> {
        let data = Self {
            folder: folder.to_owned(),
            slice: Slice::WHOLE,
            _locks: Vec::new(),
            own_file: None,
        };
        data.identity()?;
        Ok(data)
    }

    fn lock(&mut self) -> Result<(), StudyError> {
        let told = |e: io::Error| StudyError::of_file("lock", &self.folder, &e);
        let folder = File::open(&self.folder).map_err(told)?;
        let whole = self.slice == Slice::WHOLE;
        let held = match whole {
            true => folder.try_lock(),
            false => folder.try_lock_shared(),
        };
        let busy = |what: String| {
            let remedy = "wait for it or end it; to share the work, give each one its part with \
                          --shard 1/2, --shard 2/2";
            StudyError::new(what, remedy)
        };
        if let Err(TryLockError::WouldBlock) = held {
            let what = format!("another knee is writing to {}", self.folder.display());
            return Err(busy(what));
        }
        self._locks.push(folder);
        if whole {
            return Ok(());
        }
        let Slice { index, of } = self.slice;
        let path = self.folder.join(format!("{UNFINISHED}part-{index}-of-{of}"));
        loop {
            let file = File::options().create(true).append(true).open(&path).map_err(told)?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                let what = format!(
                    "another knee is writing part {} of {}",
                    self.slice,
                    self.folder.display()
                );
                return Err(busy(what));
            }
            // Another one may have removed it between the two steps.
            let same = fs::metadata(&path).and_then(|now| Ok(now.ino() == file.metadata()?.ino()));
            if same.unwrap_or(false) {
                self._locks.push(file);
                self.own_file = Some(path);
                return Ok(());
            }
        }
    }

    /// Sees that it is the data of `plan`, made by this build of Knee.
    ///
    /// # Errors
    /// It is not; the error says what differs.
    pub fn check(&self, plan: &Plan) -> Result<(), StudyError> {
        let (there, now) = (self.identity()?, plan.identity());
        match there == now {
            true => Ok(()),
            false => Err(self.differs(&there, &now, &plan.study)),
        }
    }

    /// Makes the folder that of `plan`, or sees that it is.
    fn claim(&self, plan: &Plan) -> Result<(), StudyError> {
        if self.folder.join(IDENTITY).exists() {
            return self.check(plan);
        }
        let study = &plan.study;
        let foreign = fs::read_dir(&self.folder)
            .map_err(|e| StudyError::of_file("read", &self.folder, &e))?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .find(|name| {
                !name.starts_with(UNFINISHED) && ![STUDY, SCENARIO].contains(&name.as_str())
            });
        if let Some(name) = foreign {
            let what = format!("{} holds no data set, but `{name}`", self.folder.display());
            return Err(StudyError::new(what, "name a new or an empty folder with --out"));
        }
        write_whole(&self.folder.join(STUDY), study.text.as_bytes())?;
        write_whole(&self.folder.join(SCENARIO), study.scenario.text.as_bytes())?;
        write_whole(&self.folder.join(IDENTITY), &pretty(&plan.identity()))
    }

    fn differs(&self, there: &Value, now: &Value, study: &Study) -> StudyError {
        let folder = self.folder.display();
        let elsewhere = "name another folder with --out, or remove this one";
        let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
        if there["study_sha256"] != now["study_sha256"] {
            for (name, text) in [(STUDY, &*study.text), (SCENARIO, &study.scenario.text)] {
                let before = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
                let mut lines = (1..).zip(before.lines().map(Some).chain([None]));
                let differs = text.lines().map(Some).chain([None]).find_map(|line| {
                    let (number, was) = lines.next()?;
                    (line != was).then_some((number, was, line))
                });
                if before != text {
                    let (number, was, line) = differs.unwrap_or((1, None, None));
                    let shown = |line: Option<&str>| {
                        line.map_or_else(|| "nothing".to_owned(), |l| format!("`{}`", l.trim()))
                    };
                    let what = format!(
                        "{folder} holds the data of another study: line {number} of its {name} is \
                         {}, now it is {}",
                        shown(was),
                        shown(line)
                    );
                    return StudyError::new(what, elsewhere);
                }
            }
        }
        for (key, what) in [
            ("host", "host"),
            ("knee_version", "version of Knee"),
            ("knee_commit", "commit of Knee"),
            ("engine", "build of the simulator"),
        ] {
            if there[key] != now[key] {
                let (was, is) = (text(&there[key]), text(&now[key]));
                let what = format!("{folder} was made by another {what}: {was}, this is {is}");
                return StudyError::new(what, format!("resume with that one, or {elsewhere}"));
            }
        }
        let what = format!("{folder} was made with other sources of the algorithms");
        StudyError::new(what, format!("resume with those, or {elsewhere}"))
    }

    fn identity(&self) -> Result<Value, StudyError> {
        let path = self.folder.join(IDENTITY);
        let no_data = || {
            let what = format!("{} holds no data set of a study", self.folder.display());
            StudyError::new(what, "name a folder that `knee sweep --out` made")
        };
        let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_data(),
            _ => StudyError::of_file("read", &path, &e),
        })?;
        serde_json::from_str(&text).map_err(|_| no_data())
    }

    /// Numbers of the shards of its slice that are not finished.
    pub fn missing(&self, plan: &Plan) -> Vec<usize> {
        let missing = |s: &&Shard| self.slice.has(s.number) && !self.has(plan, s);
        plan.shards.iter().filter(missing).map(|s| s.number).collect()
    }

    /// True if a shard is finished.
    pub fn has(&self, plan: &Plan, shard: &Shard) -> bool {
        self.folder.join(plan.file_of(shard, TABLES[0])).is_file()
    }

    /// Removes what killed workers left if all shards are finished; says whether they are.
    pub fn finish(&self, plan: &Plan) -> bool {
        let complete = plan.shards.iter().all(|shard| self.has(plan, shard));
        if complete {
            self.tidy(plan);
        }
        complete
    }

    /// Adds the shards that other folders hold to this one, as links where the file system has them.
    /// Returns the number of shards that it lacked.
    ///
    /// # Errors
    /// A folder holds the data of another study; a shard is in two of them and not the same.
    pub fn merge(&self, plan: &Plan, from: &[PathBuf]) -> Result<usize, StudyError> {
        let mut added = 0;
        for source in from {
            let other = Self::reading(source)?;
            other.check(plan)?;
            for shard in plan.shards.iter().filter(|shard| other.has(plan, shard)) {
                let here = self.has(plan, shard);
                // That of the runs comes last: it says that the shard is finished.
                for table in plan.study.keep.tables.iter().rev() {
                    let file = plan.file_of(shard, table);
                    let (old, new) = (source.join(&file), self.folder.join(&file));
                    match here {
                        true => same_content(&old, &new)?,
                        false => bring(&old, &new)?,
                    }
                }
                added += usize::from(!here);
            }
        }
        Ok(added)
    }

    /// Finished part of it.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn status(&self) -> Result<Status, StudyError> {
        let identity = self.identity()?;
        let shards: Vec<(String, u64)> =
            serde_json::from_value(identity["shards"].clone()).unwrap_or_default();
        let mut status = Status {
            title: identity["title"].as_str().map(str::to_owned),
            shards: 0,
            shards_all: shards.len(),
            runs: 0,
            runs_all: identity["runs"].as_u64().unwrap_or(0),
            bytes: 0,
            complete: false,
        };
        for (path, number) in self.parts(TABLES[0])? {
            status.shards += 1;
            status.runs += shards.get(number).map_or(0, |s| s.1);
            status.bytes += fs::metadata(&path).map_or(0, |m| m.len());
        }
        for table in &TABLES[1..] {
            for (path, _) in self.parts(table)? {
                status.bytes += fs::metadata(&path).map_or(0, |m| m.len());
            }
        }
        status.complete = status.shards == status.shards_all;
        Ok(status)
    }

    /// Files of a table, by number of their shards.
    fn parts(&self, table: &str) -> Result<Vec<(PathBuf, usize)>, StudyError> {
        let mut parts = Vec::new();
        for folder in listed(&self.folder.join(table))? {
            for path in listed(&folder)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let number = name.strip_prefix("part-").and_then(|n| n.strip_suffix(".parquet"));
                if let Some(number) = number.and_then(|n| n.parse().ok()) {
                    parts.push((path, number));
                }
            }
        }
        parts.sort_by_key(|(_, number)| *number);
        Ok(parts)
    }

    /// The finished rows of `table`, some thousand at a time, with a first column `algorithm`, by
    /// number of their shards.
    ///
    /// # Errors
    /// There is no such table; a file cannot be read.
    pub fn read(
        &self,
        table: &str,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, StudyError>> + use<>, StudyError> {
        if !TABLES.contains(&table) {
            let what = format!("no table is called `{table}`");
            return Err(StudyError::new(what, knee_scenario::known(table, "there are", &TABLES)));
        }
        let parts = self.parts(table)?;
        if parts.is_empty() && self.folder.join(TABLES[0]).is_dir() {
            let what =
                format!("the data set in {} has no rows of `{table}`", self.folder.display());
            let remedy = format!("write tables = [\"runs\", \"{table}\"] in the study's [keep]");
            return Err(StudyError::new(what, remedy));
        }
        Ok(parts.into_iter().flat_map(|(path, _)| match read_part(&path) {
            Ok(batches) => batches,
            Err(error) => vec![Err(error)].into_iter(),
        }))
    }

    /// The rows of one finished shard's table, as [`DataSet::read`] gives them.
    ///
    /// # Errors
    /// The shard is not finished, or its file cannot be read.
    pub fn read_shard(
        &self,
        plan: &Plan,
        number: usize,
        table: &str,
    ) -> Result<Vec<RecordBatch>, StudyError> {
        read_part(&self.folder.join(plan.file_of(plan.shard(number)?, table)))?.collect()
    }
}

type Batches = std::vec::IntoIter<Result<RecordBatch, StudyError>>;

fn read_part(path: &Path) -> Result<Batches, StudyError> {
    let told = |e: &dyn Display| {
        let what = format!("cannot read {}: {e}", path.display());
        StudyError::new(what, "if it is damaged, remove it and run the sweep again")
    };
    let file = File::open(path).map_err(|e| told(&e))?;
    let batches = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(8192).build())
        .map_err(|e| told(&e))?;
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let algorithm = unescaped(folder.strip_prefix("algorithm=").unwrap_or(&folder));
    let all: Vec<_> = batches
        .map(|batch| {
            let batch = batch.map_err(|e| told(&e))?;
            let column = vec![algorithm.as_str(); batch.num_rows()];
            let column: ArrayRef = Arc::new(StringArray::from(column));
            let field = Arc::new(Field::new("algorithm", DataType::Utf8, false));
            let schema = batch.schema();
            let fields = [field].into_iter().chain(schema.fields().iter().cloned());
            let schema = Schema::new(fields.collect::<Vec<_>>());
            let columns = [column].into_iter().chain(batch.columns().iter().cloned()).collect();
            RecordBatch::try_new(Arc::new(schema), columns).map_err(|e| told(&e))
        })
        .collect();
    Ok(all.into_iter())
}

/// Undoes what folders' names hide.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hidden = tail.get(..2).filter(|_| *first == b'%');
        let hidden = hidden.and_then(|h| u8::from_str_radix(str::from_utf8(h).ok()?, 16).ok());
        bytes.push(hidden.unwrap_or(*first));
        rest = if hidden.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Entries of a folder, by name; nothing if it is not there.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, StudyError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StudyError::of_file("read", folder, &e)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Removes files that nobody is writing any more.
fn remove_unfinished(folder: &Path) {
    let unfinished = |path: &PathBuf| {
        path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(UNFINISHED))
    };
    for path in listed(folder).unwrap_or_default().into_iter().filter(unfinished) {
        let abandoned = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if abandoned {
            let _ = fs::remove_file(&path);
        }
    }
}

fn bring(old: &Path, new: &Path) -> Result<(), StudyError> {
    let told = |e: io::Error| StudyError::of_file("write", new, &e);
    fs::create_dir_all(new.parent().unwrap_or(Path::new("."))).map_err(told)?;
    match fs::hard_link(old, new) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => same_content(old, new),
        // Another file system, or one without links.
        Err(_) => {
            let content = fs::read(old).map_err(|e| StudyError::of_file("read", old, &e))?;
            write_whole(new, &content)
        }
    }
}

fn same_content(one: &Path, other: &Path) -> Result<(), StudyError> {
    let read = |path: &Path| fs::read(path).map_err(|e| StudyError::of_file("read", path, &e));
    if read(one)? == read(other)? {
        return Ok(());
    }
    let what = format!("{} and {} are not the same", one.display(), other.display());
    Err(StudyError::new(what, "one of them is damaged: remove that one, and run its part again"))
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_share_all_shards() {
        assert_eq!(Slice::new(0, 3), None);
        assert_eq!(Slice::new(4, 3), None);
        let slices: Vec<Slice> = (1..=3).filter_map(|i| Slice::new(i, 3)).collect();
        for shard in 0..10 {
            assert_eq!(slices.iter().filter(|s| s.has(shard)).count(), 1);
        }
        assert!((0..10).all(|shard| Slice::WHOLE.has(shard)));
    }

    #[test]
    fn names_of_folders_come_back() {
        assert_eq!(unescaped("kernel%3Acubic+chd"), "kernel:cubic+chd");
        assert_eq!(unescaped("50%"), "50%");
    }
}
