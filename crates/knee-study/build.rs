//! Hashes what a simulated run depends on: the sources of the simulator, and those of each algorithm. Two builds
//! of the same sources, on whatever machine, give the same hashes.

use sha2::{Digest, Sha256};
use std::{env, error::Error, fmt::Write as _, fs, io, path::Path};

/// Files on which every run depends, from the top of the repository.
const ENGINE: [&str; 12] = [
    "Cargo.lock",
    "cc/host/native",
    "cc/include",
    "crates/knee-cc/build.rs",
    "crates/knee-cc/src",
    "crates/knee-model/src",
    "crates/knee-net/src",
    "crates/knee-results/src",
    "crates/knee-scenario/src",
    "crates/knee-sim/src",
    "crates/knee-study/src/table.rs",
    "crates/knee-units/src",
];
const ALGORITHMS: &str = "cc/algorithms";

fn main() -> Result<(), Box<dyn Error>> {
    let top = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let mut code = String::new();
    // A published crate has no repository around it; there the version says what the sources are.
    let engine = match top.join(ALGORITHMS).is_dir() {
        true => {
            let mut hash = Sha256::new();
            for part in ENGINE {
                add(&mut hash, &top, Path::new(part))?;
            }
            println!("cargo:rerun-if-changed={}", top.join(ALGORITHMS).display());
            hex(&hash.finalize())
        }
        false => format!("version {}", env::var("CARGO_PKG_VERSION")?),
    };
    writeln!(
        code,
        "/// What made the runs, algorithms aside.\npub const ENGINE: &str = {engine:?};"
    )?;
    writeln!(code, "/// Hash of each built-in algorithm's source, by name.")?;
    writeln!(code, "const ALGORITHMS: &[(&str, &str)] = &[")?;
    for path in files(&top.join(ALGORITHMS))? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        writeln!(code, "    ({name:?}, {:?}),", hex(&Sha256::digest(fs::read(path)?)))?;
    }
    writeln!(code, "];")?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("engine.rs"), code)?;
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}

/// Adds a file, or all files below a folder, with their names.
fn add(hash: &mut Sha256, top: &Path, part: &Path) -> io::Result<()> {
    let path = top.join(part);
    println!("cargo:rerun-if-changed={}", path.display());
    if path.is_dir() {
        for below in files(&path)? {
            add(hash, top, &part.join(below.file_name().unwrap_or_default()))?;
        }
        return Ok(());
    }
    let content = fs::read(&path)?;
    let name = part.display().to_string();
    for bytes in [name.as_bytes(), &content] {
        // With their lengths, so that no two lists of files are the same bytes.
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Ok(())
}

fn files(folder: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let mut paths =
        fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
