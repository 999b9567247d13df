// Compiles algorithms for BPF; used by the build and by tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Debian package and the way out, for errors.
const REMEDY: &str = "install the Debian package clang-19, or set KNEE_CLANG to a clang that knows \
                      BPF (version 18 or newer)";

/// Options of every compilation. libbpf's headers need GNU C. Debug information names no folder of the build
/// machine. Every function of an algorithm is compiled into its callers. Linux 6.1 knows version 3 of the
/// instruction set; version 4 (6.6) would make the code a hundredth shorter.
const OPTIONS: [&str; 16] = [
    "-std=gnu11",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wconversion",
    "-ffreestanding",
    "-target",
    "bpf",
    "-mcpu=v3",
    "-Icc/host/bpf",
    "-Icc/include",
    "-I.",
    "-fdebug-compilation-dir=.",
    "-mllvm",
    "-inline-threshold=100000",
];

/// `KNEE_CLANG`, or the newest clang on the path.
fn clang() -> Result<PathBuf, String> {
    if let Some(given) = env::var_os("KNEE_CLANG") {
        return Ok(given.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let versioned = env::split_paths(&path).filter_map(|d| fs::read_dir(d).ok()).flatten();
    let newest = versioned
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version: u32 = path.file_name()?.to_str()?.strip_prefix("clang-")?.parse().ok()?;
            Some((version, path))
        })
        .max();
    let plain = || env::split_paths(&path).map(|d| d.join("clang")).find(|p| p.is_file());
    newest
        .map(|(_, path)| path)
        .or_else(plain)
        .ok_or_else(|| format!("no clang found, and BPF programs need one: {REMEDY}"))
}

/// The programs of an algorithm's profile, and how to optimise them.
///
/// `-O1` for profile RATE: `-O2` keeps what it knows in registers where `-O1` reads it from memory, so
/// that the kernel's verifier sees more states that differ: it looks at 907 000 instructions of one
/// algorithm (its limit is a million) instead of 22 000, at code of the same size.
fn programs(algorithm: &Path) -> Result<[&'static str; 2], String> {
    let text =
        fs::read_to_string(algorithm).map_err(|e| format!("{}: {e}", algorithm.display()))?;
    let is_rate = text.lines().any(|line| line.starts_with("KNEE_RATE_ALGORITHM("));
    Ok(if is_rate { ["cc/host/bpf/rate.c", "-O1"] } else { ["cc/host/bpf/classic.c", "-O2"] })
}

/// Compiles the algorithm in the file `source`, relative to the workspace `root`, with the programs of
/// its profile into `object`; libbpf's headers are in the folder `libbpf`.
pub fn compile(root: &Path, libbpf: &str, source: &Path, object: &Path) -> Result<(), String> {
    let [programs, optimisation] = programs(&root.join(source))?;
    let file = format!("-DKNEE_ALGORITHM_FILE=\"{}\"", source.display());
    let unnamed = format!("-fdebug-prefix-map={libbpf}=libbpf");
    let options = [optimisation, &file, "-isystem", libbpf, &unnamed];
    run(root, Path::new(programs), object, &options)
}

/// Compiles the C file `source` for BPF, with these options and the common ones.
pub fn run(root: &Path, source: &Path, object: &Path, options: &[&str]) -> Result<(), String> {
    let mut command = Command::new(clang()?);
    command.current_dir(root).args(OPTIONS).args(options);
    command.arg("-c").arg(source).arg("-o").arg(object);
    let output = command.output().map_err(|e| format!("{command:?}: {e}; {REMEDY}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}\n{said}")) }
}
