#!/usr/bin/env bash
# Builds the lab's page and tests it: the WebAssembly module against the native build, then the page in a
# headless Chromium. Installs the Debian packages that it needs (as root). Screenshots of each view are put
# into target/web/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-packages.sh clang-19 llvm-19 chromium nodejs npm
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib ]]; then
	scripts/install-packages.sh rustc-web cargo-web rust-web-src lld-19
fi
scripts/build-web.sh
cargo build --locked --quiet --package knee-web --example answer --package knee --bin knee
built=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
export KNEE_ANSWER=$built/examples/answer KNEE=$built/knee
cd web
node --test tests/
