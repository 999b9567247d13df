//! Compiles every algorithm of `cc/algorithms/` for the kernel and embeds the objects.

use std::{env, error::Error, fmt::Write as _, fs, path::Path, process::ExitCode};

#[path = "clang.rs"]
mod clang;

fn main() -> ExitCode {
    // Cargo shows what is written to standard error when a build script fails.
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    // `cc` is a link to the repository's sources; in a published crate it is a folder.
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let root = Path::new(&root);
    let out = env::var("OUT_DIR")?;
    println!("cargo:rerun-if-changed={}", root.join("cc").canonicalize()?.display());
    println!("cargo:rerun-if-changed=clang.rs");
    println!("cargo:rerun-if-env-changed=KNEE_CLANG");
    // From the build of libbpf-sys.
    let libbpf = env::var("DEP_BPF_INCLUDE")?;
    println!("cargo:rustc-env=KNEE_LIBBPF={libbpf}");

    let mut list = String::new();
    let mut sources = fs::read_dir(root.join("cc/algorithms"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    sources.retain(|path| path.extension().is_some_and(|e| e == "c"));
    sources.sort();
    for path in &sources {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let object = Path::new(&out).join(format!("{name}.bpf.o"));
        if env::var_os("DOCS_RS").is_some() {
            fs::write(&object, [])?; // no clang there, and nothing is loaded
        } else {
            clang::compile(root, &libbpf, path.strip_prefix(root)?, &object)?;
        }
        writeln!(list, "    ({name:?}, include_bytes!({object:?}) as &[u8]),")?;
    }
    let code = format!("static OBJECTS: [(&str, &[u8]); {}] = [\n{list}];\n", sources.len());
    fs::write(Path::new(&out).join("objects.rs"), code)?;
    Ok(())
}
