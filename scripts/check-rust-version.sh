#!/usr/bin/env bash
# Builds every crate with the oldest Rust that Cargo.toml declares (`rust-version`).
# rustup installs that toolchain if it is missing. Tests and benchmarks are left out: users of the oldest Rust do not build
# them. `cargo check` compiles into target/rust-version, and links nothing. Needs the packages of the kernel host.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
command -v rustup >/dev/null || {
	echo "no rustup here: it installs Rust $version, with which this check builds (https://rustup.rs)" >&2
	exit 1
}
rustup run "$version" rustc --version 2>/dev/null ||
	rustup toolchain install "$version" --profile minimal --no-self-update || {
	echo "NOT CHECKED: Rust $version is not installed, and rustup cannot get it" >&2
	exit 0
}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/rust-version
CARGO_TARGET_DIR=$target rustup run "$version" cargo check --locked --workspace --quiet
echo "rust-version: all crates build with $(rustup run "$version" rustc --version)"
