//! Builds the path (`crates/knee-linux-guest`), a library that the process of a kernel loads.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Folders from which the path is built, from the workspace's root.
const SOURCES: [&str; 6] = [
    "cc",
    "crates/knee-cc",
    "crates/knee-linux-guest",
    "crates/knee-model",
    "crates/knee-net",
    "crates/knee-units",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    println!("cargo:rerun-if-changed=kernel");
    let library = out.join("path.so");
    // The kernel is one for x86-64 Linux.
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" || env::var("CARGO_CFG_TARGET_ARCH")? != "x86_64"
    {
        return Ok(fs::write(&library, [])?);
    }
    let target = out.join("guest");
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo.args(["build", "--release", "--offline", "--locked", "--package", "knee-linux-guest"]);
    cargo.arg("--manifest-path").arg(root.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(&target).args(["--target", &env::var("TARGET")?]);
    // The path takes a hundredth of a run's time: it need not be optimised as a whole.
    for setting in ["panic=\"abort\"", "debug=false", "strip=true", "lto=false", "codegen-units=16"]
    {
        cargo.arg("--config").arg(format!("profile.release.{setting}"));
    }
    // Sanitizers, coverage and checks of the outer build have no place in a kernel.
    for name in
        ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_TARGET_DIR"]
    {
        cargo.env_remove(name);
    }
    let status = cargo.status().map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err(format!("cargo build --package knee-linux-guest: {status}").into());
    }
    fs::copy(target.join(env::var("TARGET")?).join("release/libknee_linux_guest.so"), &library)?;
    Ok(())
}
