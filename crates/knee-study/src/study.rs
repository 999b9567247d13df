//! The study file, read and checked.

use crate::{
    axis::{AxisColumn, Dimension, Kind, Span, Written, shown},
    error::StudyError,
    reader::{Read, Reader, Table},
    table::{self, Kept, TABLES},
};
use knee_model::{RunSpec, digest};
use knee_scenario::{Scenario, ScenarioError, Set, not_toml, read_text, type_name};
use knee_units::{TIME, clip, seconds};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};
use toml_edit::{Document, DocumentMut, Item, TableLike, Value};

/// Most runs of a study.
pub const RUNS_MAX: u64 = 100_000_000;
/// Most repetitions of a point.
const REPEAT_MAX: i64 = 1_000_000;
/// Most points of an axis.
const POINTS_MAX: i64 = 1_000_000;
/// Points of an axis that are tried when the study is read.
const TRIED_MAX: usize = 300;
/// Keys that distinguish a range from a table of further keys.
const RANGE_KEYS: [&str; 6] = ["from", "to", "steps", "draws", "scale", "seed"];

/// A study: a scenario, its axes, and the parts of the runs that are kept.
#[derive(Clone, Debug)]
pub struct Study {
    /// Name in errors: that of the file.
    pub name: String,
    /// The file, as it was read.
    pub text: Arc<str>,
    /// Title, for people.
    pub title: Option<String>,
    /// The scenario that is varied.
    pub scenario: Base,
    seeds: Seeds,
    /// Notices to the author of the file: spellings that the next version does not read.
    pub notes: Vec<String>,
    /// Varied dimensions, in the order of the file: the last one varies fastest in the numbers of
    /// runs, and the seed faster still.
    pub dimensions: Vec<Dimension>,
    /// Tables and metrics that are kept of each run.
    pub keep: Kept,
    pub(crate) runs_per_shard: Option<u64>,
    /// Number of runs: of each point of the dimensions, with each seed.
    pub runs: u64,
}

/// The scenario that a study varies.
#[derive(Clone, Debug)]
pub struct Base {
    /// Name in errors: that of the file.
    pub name: String,
    /// The file, as it was read.
    pub text: String,
    /// Folder that files named by the scenario are relative to.
    pub folder: PathBuf,
}

#[derive(Clone, Debug)]
enum Seeds {
    /// This many, from the scenario's own on.
    Count(u64),
    These(Vec<u64>),
}

impl Seeds {
    fn len(&self) -> u64 {
        match self {
            Self::Count(n) => *n,
            Self::These(all) => all.len() as u64,
        }
    }
}

/// Digits of `number`, of which each has its own base; the last one varies fastest.
pub(crate) fn digits(mut number: u64, bases: impl DoubleEndedIterator<Item = u64>) -> Vec<usize> {
    let mut digits = Vec::new();
    for base in bases.rev() {
        digits.push((number % base) as usize);
        number /= base;
    }
    digits.reverse();
    digits
}

/// A run of a study.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its number, from 0.
    pub number: u64,
    /// Specification of the run.
    pub spec: RunSpec,
}

impl Study {
    /// Reads the study in the file at `path`; the scenario that it names is relative to the file's
    /// folder.
    ///
    /// # Errors
    /// A file that cannot be read, a study that `docs/reference/study.md` does not allow, or values that do
    /// not make a scenario.
    pub fn load(path: &Path) -> Result<Self, StudyError> {
        let text = read_text(path, "study")?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(folder, &path.display().to_string(), &text)
    }

    /// Reads `text`, called `name` in errors, which stands for a file in `folder`.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn parse(folder: &Path, name: &str, text: &str) -> Result<Self, StudyError> {
        Self::read(name, text, |root| {
            let file = root.text("scenario")?.ok_or_else(|| {
                let what = "scenario is missing".to_owned();
                root.reader.error(0..0, what, "write scenario = \"base.toml\"".to_owned())
            })?;
            let path = folder.join(file);
            if !path.is_file() {
                let what = format!("there is no scenario `{}`", path.display());
                let remedy = "write the file's name, relative to the folder of the study";
                return Err(root.fault("scenario", what, remedy));
            }
            Ok(Base {
                name: path.display().to_string(),
                text: read_text(&path, "scenario")?,
                folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            })
        })
    }

    /// Reads `text`, called `name` in errors, with the scenario given as text: its `scenario` is
    /// only a name then. Files that the scenario names are relative to `folder`.
    ///
    /// # Errors
    /// As [`Study::load`].
    pub fn with_scenario(
        name: &str,
        text: &str,
        scenario: &str,
        folder: &Path,
    ) -> Result<Self, StudyError> {
        Self::read(name, text, |root| {
            let name = root.text("scenario")?.unwrap_or("scenario").to_owned();
            Ok(Base { name, text: scenario.to_owned(), folder: folder.to_owned() })
        })
    }

    fn read(
        name: &str,
        text: &str,
        base: impl FnOnce(&Table<'_>) -> Read<Base>,
    ) -> Result<Self, StudyError> {
        let text: Arc<str> = text.into();
        let file = Document::parse(&*text).map_err(|e| not_toml(name, &text, &e))?;
        let reader = Reader { name, text: &text };
        let root = reader.table(file.as_table(), None);
        root.only(&[
            "title",
            "description",
            "date",
            "license",
            "scenario",
            "repeat",
            "seeds",
            "axes",
            "latin_hypercube",
            "keep",
            "runs_per_shard",
        ])?;
        for key in ["description", "date", "license"] {
            root.text(key)?;
        }
        let scenario = base(&root)?;
        // It must make sense by itself, so that it can be tried with `knee run`.
        Scenario::parse_beside(&scenario.folder, &scenario.name, &scenario.text, &[])?;
        let dimensions = dimensions(&root)?;
        let (seeds, notes) = seeds(&root)?;
        let mut study = Self {
            name: name.to_owned(),
            title: root.text("title")?.map(str::to_owned),
            scenario,
            seeds,
            notes,
            keep: keep(&root)?,
            dimensions,
            runs_per_shard: root.integer("runs_per_shard", 1, 1_000_000)?.map(i64::unsigned_abs),
            runs: 0,
            text: Arc::clone(&text),
        };
        study.names_differ(&root)?;
        study.runs = study.count(&root)?;
        study.try_values()?;
        Ok(study)
    }

    /// Two columns of one name would be one too few.
    fn names_differ(&self, root: &Table<'_>) -> Read<()> {
        let mut seen: BTreeMap<&str, &str> =
            table::column_names().map(|name| (name, "a column of the results")).collect();
        seen.insert("algorithm", "a column of the results");
        for column in self.columns() {
            if let Some(other) = seen.insert(&column.name, &column.key) {
                let what = format!("axis {}: {other} is called `{}` too", column.key, column.name);
                return Err(root.fault("axes", what, "give it another name, or remove one"));
            }
        }
        Ok(())
    }

    fn count(&self, root: &Table<'_>) -> Read<u64> {
        let lens = self.dimensions.iter().map(|d| d.len() as u64);
        let runs = lens
            .clone()
            .try_fold(self.seeds.len(), u64::checked_mul)
            .filter(|runs| *runs <= RUNS_MAX);
        runs.ok_or_else(|| {
            let product: Vec<String> =
                lens.chain([self.seeds.len()]).map(|n| n.to_string()).collect();
            let what = format!("too many runs: {} (at most {RUNS_MAX})", product.join(" × "));
            let remedy = "give axes fewer values, draw points with [[latin_hypercube]], or make \
                          several studies";
            root.fault("axes", what, remedy)
        })
    }

    /// Tries each value of each axis, with the first ones of the others: a value that no scenario
    /// takes is told before anything runs.
    fn try_values(&self) -> Result<(), StudyError> {
        let mut digits = vec![0; self.dimensions.len()];
        for (at, dimension) in self.dimensions.iter().enumerate() {
            let stride = dimension.len().div_ceil(TRIED_MAX);
            let last = dimension.len() - 1;
            for point in (0..dimension.len()).step_by(stride).chain([last]) {
                digits[at] = point;
                self.check(&digits)?;
            }
            digits[at] = 0;
        }
        if self.dimensions.is_empty() {
            self.check(&digits)?;
        }
        Ok(())
    }

    fn check(&self, digits: &[usize]) -> Result<(), StudyError> {
        let scenario = self.scenario_at(digits)?;
        let duration_ns = scenario.spec(scenario.seed()).duration_ns;
        match self.keep.window_s {
            Some((_, to_s)) if to_s * 1e9 > duration_ns as f64 => Err(StudyError::new(
                format!(
                    "[keep] window: it ends at {to_s} s, but the run ends at {} ({})",
                    TIME.show(duration_ns),
                    self.words(digits)
                ),
                "end it within the shortest run",
            )),
            _ => Ok(()),
        }
    }

    /// Tries every point, and gives their number.
    ///
    /// # Errors
    /// Of the first one that is no scenario.
    pub fn check_all(&self) -> Result<u64, StudyError> {
        let points = self.runs / self.seeds.len();
        (0..points).try_for_each(|point| self.check(&self.digits(point)))?;
        Ok(points)
    }

    /// Number of repetitions of each point; each has its own seed.
    pub fn repeat(&self) -> u64 {
        self.seeds.len()
    }

    /// All axes.
    pub fn columns(&self) -> impl Iterator<Item = &AxisColumn> {
        self.dimensions.iter().flat_map(|d| &d.columns)
    }

    /// Hash of the study and its scenario, 64 hexadecimal digits.
    pub fn sha256(&self) -> String {
        digest::of_parts([&*self.text, &self.scenario.text])
    }

    /// Run `number`, from 0 to below [`Study::runs`].
    ///
    /// # Errors
    /// Its values make no scenario.
    pub fn run(&self, number: u64) -> Result<Run, StudyError> {
        let (point, seed) = (number / self.seeds.len(), number % self.seeds.len());
        let scenario = self.scenario_at(&self.digits(point))?;
        Ok(Run { number, spec: scenario.spec(self.seed(&scenario, seed)) })
    }

    /// Seed number `index` of a point with `scenario`.
    pub(crate) fn seed(&self, scenario: &Scenario, index: u64) -> u64 {
        match &self.seeds {
            Seeds::Count(_) => scenario.seed().wrapping_add(index),
            Seeds::These(all) => all[index as usize],
        }
    }

    /// Indices of point `number`, one for each dimension.
    pub(crate) fn digits(&self, number: u64) -> Vec<usize> {
        digits(number, self.dimensions.iter().map(|dimension| dimension.len() as u64))
    }

    fn sets<'a>(&'a self, digits: &'a [usize]) -> impl Iterator<Item = &'a Set> {
        self.dimensions.iter().zip(digits).flat_map(|(d, digit)| &d.sets[*digit])
    }

    /// The scenario at a point.
    pub(crate) fn scenario_at(&self, digits: &[usize]) -> Result<Scenario, ScenarioError> {
        let sets: Vec<Set> = self.sets(digits).cloned().collect();
        let Base { name, text, folder } = &self.scenario;
        Scenario::parse_beside(folder, name, text, &sets)
    }

    /// A point in words, as arguments of `knee run`.
    pub(crate) fn words(&self, digits: &[usize]) -> String {
        let sets = self.sets(digits).map(|set| format!("--set {}", set.argument()));
        [self.scenario.name.clone()].into_iter().chain(sets).collect::<Vec<_>>().join(" ")
    }

    /// True if the values of `dimension` can make another algorithm run.
    pub(crate) fn changes_algorithms(dimension: &Dimension) -> bool {
        let of_flow = |set: &Set| {
            let path = set.path();
            path.first().is_some_and(|first| first == "flow")
                && (path.len() <= 2
                    || path.last().is_some_and(|last| last == "cc" || last == "kind"))
        };
        dimension.sets.iter().flatten().any(of_flow)
    }

    /// The algorithms of the flows at a point, each once, in the order of the flows.
    pub(crate) fn algorithms(&self, digits: &[usize]) -> Result<String, ScenarioError> {
        let text = &self.scenario.text;
        let name = &self.scenario.name;
        let mut document: DocumentMut =
            Document::parse(text.as_str()).map_err(|e| not_toml(name, text, &e))?.into_mut();
        for set in self.sets(digits) {
            set.put_into(&mut document)?;
        }
        let mut names: Vec<String> = Vec::new();
        let mut add = |flow: &dyn TableLike| {
            let Some(cc) = flow.get("cc").and_then(Item::as_str) else { return };
            let file = Path::new(cc);
            let stem = file.file_stem().filter(|_| file.extension().is_some_and(|e| e == "c"));
            let name = stem.map_or_else(|| cc.to_owned(), |s| s.to_string_lossy().into_owned());
            if !names.contains(&name) {
                names.push(name);
            }
        };
        match document.get("flow") {
            Some(Item::ArrayOfTables(list)) => list.iter().for_each(|t| add(t)),
            Some(Item::Value(Value::Array(list))) => {
                list.iter().filter_map(Value::as_inline_table).for_each(|t| add(t));
            }
            _ => {}
        }
        Ok(if names.is_empty() { "none".to_owned() } else { names.join("+") })
    }
}

/// The seeds of each point, from `repeat` or `seeds`, and notices about old spellings.
fn seeds(root: &Table<'_>) -> Read<(Seeds, Vec<String>)> {
    let expected = "a list of seeds, such as [1, 7, 9]";
    let remedy = "write a list such as [1, 7, 9], or repeat = 4 for consecutive seeds";
    let repeat = root.integer("repeat", 1, REPEAT_MAX)?;
    let Some(item) = root
        .value("seeds", expected, |item| (item.is_integer() || item.is_array()).then_some(item))?
    else {
        return Ok((Seeds::Count(repeat.unwrap_or(1).unsigned_abs()), Vec::new()));
    };
    if repeat.is_some() {
        return Err(root.fault("seeds", "both repeat and seeds are given", "remove one of them"));
    }
    let Some(list) = item.as_array() else {
        let n = root.integer("seeds", 1, REPEAT_MAX)?.unwrap_or(1);
        let line = 1 + root.reader.text[..root.key_span("seeds").start].matches('\n').count();
        let name = root.reader.name;
        let note = format!(
            "{name}:{line}: write repeat = {n} instead of seeds = {n}: the next version of Knee \
             does not read a number of seeds"
        );
        return Ok((Seeds::Count(n.unsigned_abs()), vec![note]));
    };
    let seed = |v: &Value| v.as_integer().and_then(|n| u64::try_from(n).ok());
    let Some(all) = list.iter().map(seed).collect::<Option<Vec<u64>>>() else {
        return Err(root.fault("seeds", "seeds: not all are whole numbers from 0 on", remedy));
    };
    if all.is_empty() {
        return Err(root.fault("seeds", "seeds is empty: it makes no runs", remedy));
    }
    let mut sorted = all.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let what = format!("seeds: {} is there twice", twice[0]);
        return Err(root.fault("seeds", what, "write each one once"));
    }
    Ok((Seeds::These(all), Vec::new()))
}

fn keep(root: &Table<'_>) -> Read<Kept> {
    let Some(table) = root.table("keep")? else { return Ok(Kept::default()) };
    table.only(&["tables", "metrics", "window"])?;
    let mut kept = Kept::default();
    if let Some(tables) = table.words("tables", &TABLES, "table")? {
        // The table of runs says which shards are finished.
        let wanted = |name: &&str| *name == TABLES[0] || tables.iter().any(|t| t == name);
        kept.tables = TABLES.into_iter().filter(wanted).map(str::to_owned).collect();
    }
    let metrics: Vec<&str> = table::metric_names();
    kept.metrics = table.words("metrics", &metrics, "metric")?;
    let expected = "two times, such as [\"10s\", \"60s\"]";
    if let Some(pair) = table.value("window", expected, Item::as_array)? {
        let times: Option<Vec<&str>> = pair.iter().map(Value::as_str).collect();
        let times = times.filter(|times| times.len() == 2).ok_or_else(|| {
            table.fault("window", "window is not a list of two times", format!("write {expected}"))
        })?;
        let time = |text: &str| {
            let bad =
                |e: knee_units::UnitError| table.fault("window", format!("window: {e}"), &e.remedy);
            TIME.parse(text).map(seconds).map_err(bad)
        };
        let (from_s, to_s) = (time(times[0])?, time(times[1])?);
        if from_s >= to_s {
            let what = "window: it ends before it begins";
            return Err(table.fault("window", what, format!("write {expected}")));
        }
        kept.window_s = Some((from_s, to_s));
    }
    Ok(kept)
}

fn dimensions(root: &Table<'_>) -> Read<Vec<Dimension>> {
    let mut all = Vec::new();
    if let Some(axes) = root.table("axes")? {
        add_axes(&axes, "", &mut all)?;
    }
    let expected = "a list of tables, each headed `[[latin_hypercube]]`";
    let cubes = root.value("latin_hypercube", expected, Item::as_array_of_tables)?;
    for cube in cubes.into_iter().flatten() {
        all.push(hypercube(&root.reader.table(cube, cube.span()))?);
    }
    varied_once(root, &all)?;
    Ok(all)
}

/// Refuses a key that two of `dimensions` set: the later one would overrule the other, whose values the data
/// would be labelled with.
fn varied_once(root: &Table<'_>, dimensions: &[Dimension]) -> Read<()> {
    let mut seen: BTreeSet<&[String]> = BTreeSet::new();
    for dimension in dimensions {
        let keys: BTreeSet<&[String]> = dimension.sets.iter().flatten().map(Set::path).collect();
        for key in &keys {
            // Also where one of them sets the whole table that the other sets a key of.
            let of_it = seen.range(*key..).next().filter(|other| other.starts_with(key));
            let above = (1..key.len()).map(|n| &key[..n]).find(|above| seen.contains(above));
            if let Some(other) = of_it.copied().or(above) {
                let (key, other) = (key.join("."), other.join("."));
                let what = match key == other {
                    true => format!("{key} is varied twice"),
                    false => format!("{key} and {other} are varied independently"),
                };
                return Err(root.fault("axes", what, "keep one of the two"));
            }
        }
        seen.extend(keys);
    }
    Ok(())
}

/// Keys are written `"path.rtt" = [...]` or, which is the same to TOML's eyes but for the quotes,
/// `path.rtt = [...]`.
fn add_axes(axes: &Table<'_>, prefix: &str, all: &mut Vec<Dimension>) -> Read<()> {
    for (key, item) in axes.table.iter() {
        let path = format!("{prefix}{key}");
        let own = key_is_free(axes, key, &path);
        if let Some(table) = axes.table.get(key).and_then(Item::as_table_like) {
            if !RANGE_KEYS.iter().any(|k| table.contains_key(k)) {
                let table = axes.reader.table(table, Some(axes.key_span(key)));
                if table.table.is_empty() {
                    let what = format!("{path} is empty: it makes no runs");
                    return Err(axes.fault(key, what, LISTS));
                }
                add_axes(&table, &format!("{path}."), all)?;
                continue;
            }
            own?;
            let table = axes.reader.table(table, Some(axes.value_span(key)));
            let values = range(&table, &path)?;
            all.push(plain(axes, key, &path, &values));
            continue;
        }
        let named = |v: &Value| v.as_inline_table().is_some_and(|t| t.contains_key("set"));
        match item {
            Item::Value(Value::Array(list)) if list.is_empty() => {
                let what = format!("{path} has no values: it makes no runs");
                return Err(axes.fault(key, what, LISTS));
            }
            Item::Value(Value::Array(list)) if list.iter().any(named) => {
                all.push(cases(axes, key, &path)?);
            }
            Item::Value(Value::Array(list)) => {
                own?;
                let values: Vec<Value> = list.iter().map(plain_value).collect();
                let dimension = plain(axes, key, &path, &values);
                if let Some((i, label)) = dimension.columns.iter().find_map(AxisColumn::twice) {
                    let span = list.get(i).and_then(Value::span);
                    let span = span.unwrap_or_else(|| axes.value_span(key));
                    let what = format!("{path}: {} is there twice", clip(label));
                    let remedy = "write each value once; repeat = 4 repeats each run".to_owned();
                    return Err(axes.reader.error(span, what, remedy));
                }
                all.push(dimension);
            }
            item => {
                let what = format!("{path} is {}", type_name(item));
                return Err(axes.fault(key, what, LISTS));
            }
        }
    }
    Ok(())
}

const LISTS: &str = "write a list such as [0, 0.01], a range { from = 0, to = 0.1, steps = 11 }, or \
                     draws { from = 0, to = 0.1, draws = 20 }";

/// Refuses the keys `seed` and `repeat`, which the study has at its top.
fn key_is_free(axes: &Table<'_>, key: &str, path: &str) -> Read<()> {
    match path {
        "seed" | "repeat" => {
            let what = format!("{path} cannot be an axis");
            Err(axes.fault(key, what, "write repeat = 4, or seeds = [1, 7, 9], at the top"))
        }
        _ => Ok(()),
    }
}

fn plain_value(value: &Value) -> Value {
    value.clone().decorated("", "")
}

/// An axis of one key.
fn plain(axes: &Table<'_>, key: &str, path: &str, values: &[Value]) -> Dimension {
    let place = axes.place(key);
    let set = |value: &Value| vec![Set::new(path, value.clone()).written_at(Arc::clone(&place))];
    Dimension {
        columns: vec![AxisColumn::new(path, values)],
        sets: values.iter().map(set).collect(),
    }
}

/// An axis of named cases, each of which sets several keys.
fn cases(axes: &Table<'_>, key: &str, path: &str) -> Read<Dimension> {
    let example = "{ name = \"gentle\", set = { \"flow.0.cc\" = \"chd\" } }";
    let place = axes.place(key);
    let list = axes.table.get(key).and_then(Item::as_array);
    let (mut names, mut sets) = (Vec::<Value>::new(), Vec::new());
    for value in list.into_iter().flatten() {
        let span = value.span().unwrap_or_else(|| axes.value_span(key));
        let bad = |what: String| {
            axes.reader.error(span.clone(), what, format!("write each case as {example}"))
        };
        let table = value.as_inline_table().ok_or_else(|| bad(format!("{path}: not a case")))?;
        let case = axes.reader.table(table, Some(span.clone()));
        case.only(&["name", "set"])?;
        let name = case.text("name")?.ok_or_else(|| bad(format!("{path}: a case has no name")))?;
        if names.iter().any(|n| n.as_str() == Some(name)) {
            let what = format!("{path}: two cases are called `{}`", clip(name));
            return Err(axes.reader.error(span, what, "give each one its own name".to_owned()));
        }
        let of = case.table("set")?.ok_or_else(|| bad(format!("{path}: a case sets nothing")))?;
        let mut own = Vec::new();
        for (key, item) in of.table.iter() {
            key_is_free(&of, key, key)?;
            let value = item.as_value().ok_or_else(|| bad(format!("{key} is not a value")))?;
            let place = of.place(key);
            own.push(Set::new(key, plain_value(value)).written_at(place));
        }
        names.push(name.into());
        sets.push(own);
    }
    drop(place);
    let mut column = AxisColumn::new(path, &names);
    // A name is no quantity, whatever it looks like.
    column.name = path.replace('.', "_");
    column.cells = crate::axis::Cells::Text(column.labels.clone());
    Ok(Dimension { columns: vec![column], sets })
}

/// Values of `{ from, to, steps }` or `{ from, to, draws }`.
fn range(table: &Table<'_>, path: &str) -> Read<Vec<Value>> {
    table.only(&RANGE_KEYS)?;
    let span = span(table, path)?;
    let (steps, draws) =
        (table.integer("steps", 0, POINTS_MAX)?, table.integer("draws", 0, POINTS_MAX)?);
    let seed = table.integer("seed", 0, i64::MAX)?;
    let key = if steps.is_some() { "steps" } else { "draws" };
    let no_runs = |n: i64| {
        let what = format!("{path}: {key} = {n} makes no runs");
        table.fault(key, what, format!("write {key} = 2 or more"))
    };
    match (steps, draws) {
        (Some(_), Some(_)) => {
            let what = format!("{path}: both steps and draws");
            Err(table.fault("draws", what, "keep `steps` (equal distances) or `draws` (random)"))
        }
        (None, None) => {
            let what = format!("{path}: how many values?");
            Err(table.fault(
                "from",
                what,
                "write steps = 11 (equal distances) or draws = 20 (random)",
            ))
        }
        (Some(_), None) if seed.is_some() => {
            let what = format!("{path}: steps are not random, so they have no seed");
            Err(table.fault("seed", what, "remove it, or write draws = 20 instead of steps"))
        }
        (Some(n), None) if n < 2 => Err(no_runs(n)),
        (None, Some(n)) if n < 1 => Err(no_runs(n)),
        (Some(n), None) => {
            let values = span.steps(n as usize);
            let labels: Vec<String> = values.iter().map(shown).collect();
            if let Some(pair) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
                let what = format!("{path}: of {n} steps two are {}", pair[0]);
                return Err(table.fault("steps", what, "write fewer steps"));
            }
            Ok(values)
        }
        (None, Some(n)) => Ok(span.draws(n as usize, seed.unwrap_or(1).unsigned_abs(), path)),
    }
}

/// `from`, `to` and `scale` of a table.
fn span(table: &Table<'_>, path: &str) -> Read<Span> {
    let end = |key: &str| -> Read<(f64, Written)> {
        let Some(item) = table.table.get(key) else {
            let what = format!("{path}: `{key}` is missing");
            let span = table.table.iter().next().map(|(first, _)| table.key_span(first));
            let remedy = "write { from = 0, to = 0.1, steps = 11 } or the like".to_owned();
            return Err(table.reader.error(span.unwrap_or(0..0), what, remedy));
        };
        if let Some(integer) = item.as_integer() {
            return Ok((integer as f64, Written::Integer));
        }
        if let Some(number) = item.as_float().filter(|n| n.is_finite()) {
            return Ok((number, Written::Number));
        }
        let Some(text) = item.as_str() else {
            let what = format!("{path}: `{key}` is {}", type_name(item));
            return Err(table.fault(key, what, EXAMPLES));
        };
        let of = |kind: &Kind| Some((kind.quantity().parse(text).ok()? as f64, *kind));
        match Kind::ALL.iter().find_map(of) {
            Some((value, kind)) => Ok((value, Written::Quantity(kind))),
            None => {
                let what = format!("{path}: `{}` has no unit that is known", clip(text));
                Err(table.fault(key, what, EXAMPLES))
            }
        }
    };
    let ((from, first), (to, second)) = (end("from")?, end("to")?);
    let written = match (first, second) {
        (a, b) if a == b => a,
        (Written::Integer, Written::Number) | (Written::Number, Written::Integer) => {
            Written::Number
        }
        _ => {
            let what = format!("{path}: `from` and `to` are not of one kind");
            return Err(table.fault("to", what, "write both with a unit of the same quantity"));
        }
    };
    let scale = table.text("scale")?.unwrap_or("linear");
    let logarithmic = match scale {
        "linear" => false,
        "log" => true,
        other => {
            let what = format!("{path}: scale `{}` is not one of its values", clip(other));
            let remedy = knee_scenario::known(other, "values", &["linear", "log"]);
            return Err(table.fault("scale", what, remedy));
        }
    };
    if from >= to {
        let what = format!("{path}: `from` is not below `to`: it makes no runs");
        return Err(table.fault("from", what, "write the smaller one as `from`"));
    }
    if logarithmic && from <= 0.0 {
        let what = format!("{path}: a logarithmic scale has no 0 and nothing below it");
        return Err(table.fault("from", what, "begin above 0, or write scale = \"linear\""));
    }
    Ok(Span { from, to, logarithmic, written })
}

const EXAMPLES: &str =
    "write numbers, or quantities such as \"10ms\", \"10mbit\", \"100kB\", \"84p\"";

/// Several keys, drawn together.
fn hypercube(cube: &Table<'_>) -> Read<Dimension> {
    cube.only(&["points", "seed", "axes"])?;
    let missing = |key: &str, example: &str| {
        let what = format!("latin_hypercube: {key} is missing");
        cube.reader.error(cube.key_span(key), what, format!("write {example}"))
    };
    let points = cube.integer("points", 0, POINTS_MAX)?;
    let points = points.ok_or_else(|| missing("points", "points = 100"))?;
    if points < 2 {
        let what = format!("latin_hypercube: points = {points} makes no hypercube");
        return Err(cube.fault("points", what, "write points = 2 or more"));
    }
    let seed = cube.integer("seed", 0, i64::MAX)?.unwrap_or(1).unsigned_abs();
    let example =
        "axes = { \"path.rate\" = { from = \"1mbit\", to = \"1gbit\", scale = \"log\" } }";
    let axes = cube.table("axes")?.filter(|axes| !axes.table.is_empty());
    let axes = axes.ok_or_else(|| missing("axes", example))?;
    let mut found = Vec::new();
    add_cube_axes(&axes, "", &mut found)?;
    let mut dimension = Dimension { columns: Vec::new(), sets: vec![Vec::new(); points as usize] };
    for (path, span, place) in found {
        let values = span.strata(points as usize, seed, &path);
        for (sets, value) in dimension.sets.iter_mut().zip(&values) {
            sets.push(Set::new(&path, value.clone()).written_at(Arc::clone(&place)));
        }
        dimension.columns.push(AxisColumn::new(&path, &values));
    }
    Ok(dimension)
}

type CubeAxis = (String, Span, Arc<knee_scenario::Place>);

fn add_cube_axes(axes: &Table<'_>, prefix: &str, all: &mut Vec<CubeAxis>) -> Read<()> {
    for (key, _) in axes.table.iter() {
        let path = format!("{prefix}{key}");
        let expected = "a range such as { from = 0, to = 0.1 }";
        let table = axes.value(key, expected, Item::as_table_like)?;
        let Some(table) = table else { continue };
        if !RANGE_KEYS.iter().any(|k| table.contains_key(k)) {
            let table = axes.reader.table(table, Some(axes.key_span(key)));
            add_cube_axes(&table, &format!("{path}."), all)?;
            continue;
        }
        key_is_free(axes, key, &path)?;
        let table = axes.reader.table(table, Some(axes.value_span(key)));
        table.only(&["from", "to", "scale"])?;
        all.push((path.clone(), span(&table, &path)?, axes.place(key)));
    }
    Ok(())
}
