//! Builds the path (`crates/knee-linux-guest`) as one object that a kernel can be linked with.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Functions that the kernel calls.
const SYMBOLS: [&str; 11] = [
    "knee_guest_open",
    "knee_guest_variant",
    "knee_guest_flow",
    "knee_guest_advance",
    "knee_guest_send",
    "knee_guest_received",
    "knee_guest_called",
    "knee_guest_first_draw",
    "knee_guest_ended",
    "knee_guest_fail",
    "knee_guest_finish",
];
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
    let object = out.join("path.o");
    // The kernel is one for x86-64 Linux.
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" || env::var("CARGO_CFG_TARGET_ARCH")? != "x86_64"
    {
        return Ok(fs::write(&object, [])?);
    }
    let target = out.join("guest");
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo.arg("build").args(["--release", "--offline", "--package", "knee-linux-guest"]);
    cargo.arg("--manifest-path").arg(root.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(&target).args(["--target", &env::var("TARGET")?]);
    cargo.args([
        "--config",
        "profile.release.panic=\"abort\"",
        "--config",
        "profile.release.debug=false",
    ]);
    // Sanitizers, coverage and checks of the outer build have no place in a kernel.
    for name in
        ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_TARGET_DIR"]
    {
        cargo.env_remove(name);
    }
    run(&mut cargo)?;
    let archive = target.join(env::var("TARGET")?).join("release/libknee_linux_guest.a");
    let whole = out.join("path.whole.o");
    let mut link = Command::new("ld");
    link.args(["-r", "--gc-sections", "-e", SYMBOLS[0]]);
    link.args(SYMBOLS.iter().flat_map(|symbol| ["-u", symbol]));
    run(link.arg("-o").arg(&whole).arg(&archive))?;
    let mut hide = Command::new("objcopy");
    hide.arg("--strip-unneeded");
    hide.args(SYMBOLS.iter().map(|symbol| format!("--keep-global-symbol={symbol}")));
    run(hide.arg(&whole).arg(&object))?;
    Ok(())
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}").into()) }
}
