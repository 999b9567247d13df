//! Builds again when there is another page.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=scenarios");
    // The module itself is a part of the page.
    if std::env::var("CARGO_CFG_TARGET_FAMILY").as_deref() != Ok("wasm") {
        println!("cargo:rerun-if-changed=page");
    }
}
