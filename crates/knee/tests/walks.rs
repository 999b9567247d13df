//! `docs/contributing/code-walks.md` names files and functions, and quotes a line of C: they are where it says. The
//! crossings that it counts are those of the code.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn walks() -> String {
    fs::read_to_string(root().join("docs/contributing/code-walks.md")).expect("the document")
}

/// The last two cells of each row that names a file: the file, and the functions.
fn steps(text: &str) -> Vec<(String, Vec<String>)> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let step = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [.., file, functions] = cells[..] else { panic!("no cells: {row}") };
        let file = file.strip_prefix('`')?.strip_suffix('`')?;
        let functions = functions.split(", ").map(|name| name.trim_matches('`').to_owned());
        Some((file.to_owned(), functions.collect()))
    };
    rows.filter_map(step).collect()
}

/// The words of `text`: names, and all else apart.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[test]
fn the_walks_name_existing_items() {
    let walks = walks();
    let mut named = 0;
    for (file, functions) in steps(&walks) {
        let source =
            fs::read_to_string(root().join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        for name in functions {
            assert!(words(&source).any(|word| word == name), "{file} has no {name}");
            named += 1;
        }
    }
    assert!(named > 40, "{named} functions");
    let (_, quoted) = walks.split_once("```c\n").expect("a line of C");
    let (quoted, _) = quoted.split_once("\n```").expect("its end");
    let chd = fs::read_to_string(root().join("cc/algorithms/chd.c")).expect("the algorithm");
    assert!(chd.contains(quoted), "chd.c has no line `{quoted}`");
}

/// A function: its crate and file, and its name.
type Function = (String, String);

/// The functions of some crates, and the names that each calls.
struct Calls {
    by_function: HashMap<Function, HashSet<String>>,
    by_name: HashMap<String, Vec<Function>>,
}

impl Calls {
    /// The calls in the sources of `crates`, tests left out. A call is known by the function's name alone.
    fn of(crates: &[&str]) -> Self {
        let mut by_function = HashMap::new();
        let mut folders: Vec<_> =
            crates.iter().map(|name| root().join("crates").join(name).join("src")).collect();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder of sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs")
                {
                    let source = fs::read_to_string(&path).expect("a source");
                    let file = path.strip_prefix(root()).expect("in this tree");
                    add(&mut by_function, &file.to_string_lossy(), &source);
                }
            }
        }
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        for function in by_function.keys() {
            by_name.entry(function.1.clone()).or_default().push(function.clone());
        }
        Self { by_function, by_name }
    }

    /// The fewest crossings on the way by calls from `from` to `to`; none: no such way.
    fn crossings(&self, from: &Function, to: &Function) -> Option<u32> {
        let mut fewest: HashMap<&Function, u32> = HashMap::from([(from, 0)]);
        let mut next = VecDeque::from([from]);
        while let Some(function) = next.pop_front() {
            let so_far = fewest[function];
            let callees = self.by_function.get(function).into_iter().flatten();
            for callee in callees.filter_map(|name| self.by_name.get(name)).flatten() {
                let crossings = so_far + u32::from(crate_of(callee) != crate_of(function));
                if fewest.get(callee).is_none_or(|known| crossings < *known) {
                    fewest.insert(callee, crossings);
                    next.push_back(callee);
                }
            }
        }
        fewest.get(to).copied()
    }
}

/// The folder of a function's crate: `crates/NAME`.
fn crate_of((file, _): &Function) -> &str {
    file.split("/src/").next().expect("a first part")
}

/// Adds the functions of a source file, which rustfmt has laid out: a body ends at the brace below its `fn`.
fn add(functions: &mut HashMap<Function, HashSet<String>>, file: &str, source: &str) {
    let source = source.split("#[cfg(test)]\nmod tests {").next().expect("a first part");
    let lines: Vec<&str> = source.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some((before, after)) = code.split_once("fn ") else { continue };
        let is_head = before.split(' ').all(|word| {
            word.is_empty()
                || word.starts_with("pub")
                || word.starts_with("in")
                || ["const", "unsafe", "super)"].contains(&word)
        });
        let Some(name) = words(after).next().filter(|_| is_head) else { continue };
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        let body = lines[number + 1..].iter().take_while(|line| **line != end);
        let calls = body.flat_map(|line| {
            let calls = line.split('(').filter(|before| !before.ends_with([' ', '(']));
            calls.filter_map(|before| words(before).last()).map(str::to_owned)
        });
        functions.entry((file.to_owned(), name.to_owned())).or_default().extend(calls);
    }
}

/// The steps of the packet's table that the code takes one after the other by calls. The event loop, step 5, begins
/// those that wait for an event.
const LEGS: &[&[usize]] = &[&[1, 2, 3, 4], &[5, 6], &[5, 7], &[5, 8, 9, 10, 11], &[5, 12]];

#[test]
fn the_crossings_are_those_of_the_code() {
    let walks = walks();
    let (_, section) = walks.split_once("## One packet and its ACK").expect("the section");
    let (table, rest) = section.split_once("\nCrossings: ").expect("the number of crossings");
    let told: u32 = rest[..1].parse().expect("a number");
    let steps = steps(table);
    assert!(steps.len() <= 12, "{} steps", steps.len());
    let function = |step: usize| {
        let (file, functions) = &steps[step - 1];
        (file.clone(), functions[0].clone())
    };
    let calls = Calls::of(&["knee-net", "knee-sim", "knee-cc"]);
    let mut crossings = 0;
    for pair in LEGS.iter().flat_map(|leg| leg.windows(2)) {
        let (from, to) = (function(pair[0]), function(pair[1]));
        crossings += calls
            .crossings(&from, &to)
            .unwrap_or_else(|| panic!("no calls lead from step {} to step {}", pair[0], pair[1]));
    }
    let on_ack = function(12);
    for call in ["on_rtt", "on_ack"] {
        let to = ("crates/knee-cc/src/controller.rs".to_owned(), call.to_owned());
        crossings += calls.crossings(&on_ack, &to).expect("the algorithm is called");
    }
    assert_eq!(crossings, told, "crossings of the code, and of the page");
}
