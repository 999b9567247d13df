//! Compiles every algorithm of `cc/algorithms/` for the native host and lists them in a registry.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    // A link to the repository's sources; in a published crate it is a folder.
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("cc").canonicalize()?;
    let mut names = Vec::new();
    let mut build = cc::Build::new();
    build
        .std("c11")
        .opt_level(3)
        .warnings_into_errors(true)
        .extra_warnings(true)
        .flag("-Wconversion")
        .flag("-ffreestanding")
        // Loops are short: over what fits the state.
        .flag("-fno-tree-vectorize")
        .include(root.join("include"))
        .include(root.join("host/native"));
    for entry in fs::read_dir(root.join("algorithms"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "c") {
            names.extend(path.file_stem().and_then(|s| s.to_str()).map(str::to_owned));
            build.file(path);
        }
    }
    build.file(root.join("host/native/layout.c"));
    names.sort();
    build.compile("knee_algorithms");
    println!("cargo:rustc-check-cfg=cfg(can_load)");
    if env::var_os("CARGO_FEATURE_LOAD").is_some() && env::var("CARGO_CFG_TARGET_OS")? == "linux" {
        println!("cargo:rustc-cfg=can_load");
        println!("cargo:rerun-if-changed=src/guard.c");
        let mut guard = cc::Build::new();
        guard.file("src/guard.c").std("gnu11").warnings_into_errors(true).compile("knee_guard");
    }

    let mut code = String::from("unsafe extern \"C\" {\n");
    for name in &names {
        writeln!(code, "    static knee_{name}: ffi::Algorithm;")?;
    }
    writeln!(code, "}}\nstatic ALGORITHMS: [Algorithm; {}] = [", names.len())?;
    for name in &names {
        writeln!(code, "    // SAFETY: constant data that the C file of this name defines.")?;
        writeln!(code, "    Algorithm {{ raw: unsafe {{ &knee_{name} }}, own: None }},")?;
    }
    code.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("registry.rs"), code)?;
    println!("cargo:rerun-if-changed={}", root.display());
    Ok(())
}
