// Compiles algorithms for BPF; used by the build and by the tests of `knee-cc`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Debian package and the way out, for errors.
const REMEDY: &str = "install the Debian package clang-19, or set KNEE_CLANG to a clang that knows \
                      BPF (version 18 or newer)";

/// Options of every compilation of `cc/algorithms/`, native or BPF.
const COMMON: &str = "-std=c11 -g -Wall -Wextra -Werror -Wconversion -ffreestanding";
/// Options that make the object that the kernel loads. Debug information names no folder of the
/// machine that built it. Every function of an algorithm is compiled into its callers.
pub const BPF: [&str; 7] = [
    "-target",
    "bpf",
    "-mcpu=v4",
    "-Icc/host/bpf",
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

/// `-O1` for algorithms of profile RATE. `-O2` keeps what it knows in registers where `-O1` reads it
/// from memory, so that the kernel's verifier sees more states that differ: it looks at 907 000
/// instructions of one algorithm (its limit is a million) instead of 22 000, at code of the same size.
fn optimisation(source: &Path) -> Result<&'static str, String> {
    let text = fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let is_rate = text.lines().any(|line| line.starts_with("KNEE_RATE_ALGORITHM("));
    Ok(if is_rate { "-O1" } else { "-O2" })
}

/// Compiles `source`, relative to the workspace `root`, into `object`.
pub fn compile(root: &Path, source: &Path, object: &Path, target: &[&str]) -> Result<(), String> {
    let mut command = Command::new(clang()?);
    command.current_dir(root);
    command.args(COMMON.split(' ')).arg(optimisation(&root.join(source))?).args(target);
    command.arg("-Icc/include").arg("-c").arg(source).arg("-o").arg(object);
    let output = command.output().map_err(|e| format!("{command:?}: {e}; {REMEDY}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}\n{said}")) }
}
