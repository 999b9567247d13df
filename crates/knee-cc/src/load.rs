//! Algorithms of one's own: a C file, compiled and loaded while the program runs.

use crate::registry::{self, Algorithm};
use std::{fs, path::Path};
use thiserror::Error;

/// The reason why a C file gives no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct LoadError {
    what: String,
    help: String,
}

impl LoadError {
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }

    /// Returns the next step for the user.
    pub fn help(&self) -> &str {
        &self.help
    }
}

/// Returns whether `word`, which stands for an algorithm, is the name of a C file.
pub fn is_file(word: &str) -> bool {
    word.ends_with(".c")
}

/// The algorithm that `word` stands for: a name of the registry, or a C file, relative to `folder`,
/// which is loaded. None: there is no such name.
///
/// # Errors
/// As [`load`].
pub fn find(word: &str, folder: &Path) -> Result<Option<Algorithm>, LoadError> {
    match is_file(word) {
        true => load(&folder.join(word)).map(Some),
        false => Ok(registry::algorithm(word)),
    }
}

/// Compiles and loads the C file `path`, which holds one algorithm. From then on the registry has
/// it, and any host takes it. A file that has not changed is not compiled again.
///
/// It becomes part of this process: load only files that you would run.
///
/// # Errors
/// It cannot be read, does not compile, or is not an algorithm of this contract.
pub fn load(path: &Path) -> Result<Algorithm, LoadError> {
    let file = path.display();
    let text = fs::read_to_string(path).map_err(|e| {
        LoadError::new(format!("cannot read {file}: {e}"), "name a C file with one algorithm")
    })?;
    load_text(&file.to_string(), &text)
}

/// Does the same as [`load`], for the C file called `file` with the text `text`.
///
/// # Errors
/// As [`load`].
pub fn load_text(file: &str, text: &str) -> Result<Algorithm, LoadError> {
    built::load(file, text)
}

#[cfg(not(can_load))]
mod built {
    use super::{Algorithm, LoadError};

    pub(super) fn load(file: &str, _: &str) -> Result<Algorithm, LoadError> {
        Err(LoadError::new(
            format!("{file}: this build of Knee loads no C files"),
            "use Knee on Linux, built with the feature `load`",
        ))
    }
}

#[cfg(can_load)]
pub use built::{load_compiled, numbered, write_sources};

/// Refuses an algorithm whose name a built-in one has.
#[cfg(can_load)]
pub(crate) fn refuse_built_in(origin: &str, algorithm: Algorithm) -> Result<(), LoadError> {
    let name = algorithm.name();
    match registry::algorithms().iter().any(|a| a.name() == name) {
        false => Ok(()),
        true => Err(LoadError::new(
            format!("{origin}: `{name}` is the name of a built-in algorithm"),
            format!("give yours another: replace `{name}` where it names yours"),
        )),
    }
}

#[cfg(can_load)]
mod built {
    use super::{Algorithm, LoadError, Path, fs, registry};
    use crate::registry::{Own, Source};
    use crate::{CONTRACT_VERSION, ffi};
    use include_dir::{Dir, include_dir};
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    use object::{Object, ObjectSection, ObjectSymbol};
    use std::{
        env, io, mem,
        path::PathBuf,
        process::Command,
        sync::{Mutex, PoisonError},
    };

    /// The contract, its helpers and the hosts, as they were when this was built.
    static INCLUDE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/cc/include");
    static HOST: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/cc/host");

    /// The options of the built-in ones. The linker is not to ask for a libc: the functions called are
    /// looked at below.
    const OPTIONS: [&str; 13] = [
        "-std=c11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        "-ffreestanding",
        "-fno-stack-protector",
        "-fPIC",
        "-shared",
        "-nostdlib",
        "-Icc/include",
        "-Icc/host/native",
    ];
    /// Functions that compilers call where they copy or clear structures.
    const CALLED_BY_COMPILERS: [&str; 4] = ["memcpy", "memmove", "memset", "memcmp"];
    const PREFIX: &str = "knee_";
    const RULES: &str = "docs/how-to/add-an-algorithm.md has the rules";

    pub(super) fn load(file: &str, text: &str) -> Result<Algorithm, LoadError> {
        // One at a time, so that no file is compiled twice.
        static LOADING: Mutex<()> = Mutex::new(());
        let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = registry::loaded(|s| s.text == text && s.file == file) {
            return Ok(found);
        }
        let object = compile(file, text)?;
        take(Source { file: file.to_owned(), text: text.to_owned(), object })
    }

    /// Loads, as [`crate::load()`], the result of another process of this program on such a machine.
    ///
    /// # Errors
    /// As [`crate::load()`].
    pub fn load_compiled(source: Source) -> Result<Algorithm, LoadError> {
        take(source)
    }

    fn take(source: Source) -> Result<Algorithm, LoadError> {
        let file = &source.file;
        let raw = link(&source, &exported(file, &source.object)?)?;
        let described = Algorithm { raw, own: None };
        let refuse = |what| LoadError::new(format!("{file}: {what}"), RULES);
        check_raw(raw).map_err(refuse)?;
        described.check().map_err(|what| refuse(format!("`{}`: {what}", described.name())))?;
        super::refuse_built_in(file, described)?;
        // A refused file leaves nothing behind.
        let algorithm = Algorithm { raw, own: Some(Box::leak(Box::new(Own::File(source)))) };
        registry::add(algorithm);
        Ok(algorithm)
    }

    /// Writes the C sources that an algorithm needs to compile into `folder`: `cc/include` and `cc/host`.
    ///
    /// # Errors
    /// The system's.
    pub fn write_sources(folder: &Path) -> io::Result<()> {
        for (name, sources) in [("cc/include", &INCLUDE), ("cc/host", &HOST)] {
            let folder = folder.join(name);
            fs::create_dir_all(&folder)?;
            sources.extract(&folder)?;
        }
        Ok(())
    }

    /// `CC`, or the system's compiler.
    fn compiler() -> Result<(PathBuf, Vec<String>), LoadError> {
        if let Some(given) = env::var("CC").ok().filter(|given| !given.trim().is_empty()) {
            let mut words = given.split_whitespace().map(str::to_owned);
            let program = words.next().unwrap_or_default();
            return Ok((program.into(), words.collect()));
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let known = ["cc", "gcc", "clang"];
        let found = known.iter().find_map(|name| {
            env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file())
        });
        found.map(|program| (program, Vec::new())).ok_or_else(|| {
            LoadError::new(
                "there is no C compiler on this machine, and C files need one",
                "install gcc or clang, or name a compiler in the variable CC",
            )
        })
    }

    fn temporary_folder() -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix("knee-cc-").tempdir()
    }

    fn no_room(file: &str, e: &io::Error) -> LoadError {
        let help = "the folder for temporary files (TMPDIR) needs free space and write permission";
        LoadError::new(format!("{file}: cannot compile it: {e}"), help)
    }

    /// The shared object.
    fn compile(file: &str, text: &str) -> Result<Vec<u8>, LoadError> {
        let fail = |e: io::Error| no_room(file, &e);
        let folder = temporary_folder().map_err(fail)?;
        write_sources(folder.path()).map_err(fail)?;
        // Messages name the file and its lines.
        fs::write(folder.path().join("algorithm.c"), numbered(file, text)).map_err(fail)?;
        let (program, options) = compiler()?;
        let shown = program.display().to_string();
        let mut command = Command::new(program);
        command.current_dir(folder.path()).args(options).args(OPTIONS);
        command.args(["-o", "algorithm.so", "algorithm.c"]).env("LC_ALL", "C");
        let output = command.output().map_err(|e| {
            let help = "install gcc or clang, or name a compiler in the variable CC";
            LoadError::new(format!("{file}: cannot run the compiler {shown}: {e}"), help)
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let what = format!("{file} does not compile:\n{}", beginning(said.trim_end()));
            return Err(LoadError::new(what, RULES));
        }
        fs::read(folder.path().join("algorithm.so")).map_err(fail)
    }

    /// Returns the first lines of a compiler's output: later errors mostly follow from the first.
    fn beginning(said: &str) -> String {
        const SHOWN: usize = 40;
        let mut lines = said.lines();
        let mut shown: Vec<&str> = lines.by_ref().take(SHOWN).collect();
        let more = format!("... and {} lines more", lines.clone().count());
        if lines.next().is_some() {
            shown.push(&more);
        }
        shown.join("\n")
    }

    /// The text with a line before it that says what file it is, for a compiler's messages.
    pub fn numbered(file: &str, text: &str) -> String {
        let name = file.replace('\\', "\\\\").replace('"', "\\\"");
        format!("#line 1 \"{name}\"\n{text}")
    }

    /// The one descriptor that the object exports. It calls nothing and has no variables.
    fn exported(file: &str, object: &[u8]) -> Result<String, LoadError> {
        let refuse =
            |what: String, help: &str| Err(LoadError::new(format!("{file}: {what}"), help));
        let elf = match object::File::parse(object) {
            Ok(elf) => elf,
            Err(e) => return refuse(format!("the compiler made no shared object: {e}"), RULES),
        };
        let names = |list: &mut dyn Iterator<Item = String>| {
            let mut names: Vec<String> = list.collect();
            names.sort();
            names.dedup();
            names
        };
        let name = |symbol: object::Symbol<'_, '_>| symbol.name().map(str::to_owned).ok();
        let called = names(
            &mut elf
                .dynamic_symbols()
                .filter(|s| s.is_undefined() && !s.is_weak())
                .filter_map(name)
                .filter(|n| !n.is_empty() && !CALLED_BY_COMPILERS.contains(&n.as_str())),
        );
        if !called.is_empty() {
            let help = "an algorithm calls nothing but its own functions and those of \
                        cc/include/knee: no host but this one could run it";
            return refuse(
                format!("it calls `{}`, which it does not define", called.join("`, `")),
                help,
            );
        }
        let writable = [".data", ".bss", ".tdata", ".tbss"];
        for section in elf.sections().filter(|s| s.size() > 0) {
            if !section.name().is_ok_and(|name| writable.contains(&name)) {
                continue;
            }
            let index = Some(section.index());
            let kept = names(
                &mut elf
                    .symbols()
                    .filter(|s| s.section_index() == index && s.size() > 0)
                    .filter_map(name),
            );
            let help = "keep what must be remembered in the state: connections share a process";
            return refuse(
                format!("it has variables outside its state: `{}`", kept.join("`, `")),
                help,
            );
        }
        let described = names(
            &mut elf
                .dynamic_symbols()
                .filter(|s| s.is_definition())
                .filter_map(name)
                .filter(|n| n.starts_with(PREFIX)),
        );
        match described.as_slice() {
            [one] => Ok(one.clone()),
            [] => refuse(
                "it describes no algorithm".to_owned(),
                "end it with KNEE_ALGORITHM(...) or KNEE_RATE_ALGORITHM(...)",
            ),
            _ => refuse(
                format!("it describes more than one algorithm: {}", described.join(", ")),
                "write a file for each",
            ),
        }
    }

    /// Loads the object for as long as this process lives.
    fn link(source: &Source, name: &str) -> Result<&'static ffi::Algorithm, LoadError> {
        let file = &source.file;
        let folder = temporary_folder().map_err(|e| no_room(file, &e))?;
        let path = folder.path().join("algorithm.so");
        fs::write(&path, &source.object).map_err(|e| no_room(file, &e))?;
        let fail = |e: libloading::Error| {
            LoadError::new(format!("{file}: cannot load what was compiled: {e}"), RULES)
        };
        // SAFETY: the object has no code that runs when it is loaded, which would need what was
        // refused above. That its functions keep to the contract is the user's word; the guard and
        // the checks of each call limit what a mistake does.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(fail)?;
        // SAFETY: the macro that makes a descriptor is that of `host.h`, which `ffi` mirrors.
        let raw = unsafe { library.get::<*const ffi::Algorithm>(name.as_bytes()) }.map_err(fail)?;
        let raw: *const ffi::Algorithm = raw.into_raw().cast();
        mem::forget(library);
        // SAFETY: as above; the library is never closed.
        Ok(unsafe { &*raw })
    }

    /// Checks all that must hold before a descriptor can be read as the built-in ones are.
    fn check_raw(raw: &ffi::Algorithm) -> Result<(), String> {
        if raw.contract != CONTRACT_VERSION {
            let theirs = raw.contract;
            return Err(format!(
                "it was written for version {theirs} of the contract; this is {CONTRACT_VERSION}"
            ));
        }
        let text = |pointer: *const std::ffi::c_char, what: &str| -> Result<(), String> {
            // SAFETY: a pointer in a descriptor is null or a string literal.
            let valid =
                !pointer.is_null() && unsafe { std::ffi::CStr::from_ptr(pointer) }.to_str().is_ok();
            if valid { Ok(()) } else { Err(format!("{what} is not UTF-8 text")) }
        };
        for (pointer, what) in
            [(raw.name, "the name"), (raw.summary, "the summary"), (raw.citation, "the citation")]
        {
            text(pointer, what)?;
        }
        text(raw.observes, "the list of observed values")?;
        // SAFETY: the C descriptor gives the table's length.
        let rows = unsafe { std::slice::from_raw_parts(raw.params, raw.n_params as usize) };
        for (n, row) in rows.iter().enumerate() {
            for pointer in [row.name, row.alias, row.choices, row.source, row.help] {
                text(pointer, &format!("a text of parameter {}", n + 1))?;
            }
            if row.kind > 5 || [row.min, row.max, row.def].iter().any(|v| *v > u32::MAX.into()) {
                return Err(format!("parameter {} has no such kind, or needs 64 bits", n + 1));
            }
        }
        Ok(())
    }
}
