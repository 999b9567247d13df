#!/usr/bin/env bash
# Builds the lab's page into web/dist: the simulator as WebAssembly, and the page around it.
#
# The C sources are compiled by clang. Rust's standard library for wasm32 comes with rustup's target, or
# else from source (Debian's rustc-web, cargo-web, rust-web-src, lld-19).
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
export "CC_wasm32_unknown_unknown=${CC_wasm32_unknown_unknown:-clang-19}"
export "AR_wasm32_unknown_unknown=${AR_wasm32_unknown_unknown:-llvm-ar-19}"
# Apart from the other builds, whose compiler may be another one.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/wasm
options=(build --locked --package knee-web --lib --profile wasm --target "$target")

if [[ -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]]; then
	cargo "${options[@]}"
elif [[ -d $(/usr/bin/rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library ]]; then
	export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
	export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-19
	/usr/bin/cargo "${options[@]}" -Z build-std=std,panic_abort
else
	echo "no Rust for $target: rustup target add $target," >&2
	echo "or on Debian: apt-get install rustc-web cargo-web rust-web-src lld-19" >&2
	exit 1
fi

module=$(realpath "$CARGO_TARGET_DIR/$target/wasm/knee_web.wasm")
cd web
[[ -d node_modules ]] || npm ci --no-audit --no-fund
npm run --silent check
node build.mjs "$module"
