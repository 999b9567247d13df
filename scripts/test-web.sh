#!/usr/bin/env bash
# Builds the lab's page and tests it.
# It compares the WebAssembly module with the native build, then drives the page in a headless Chromium. Installs the
# Debian packages that it needs (as root). Screenshots of each view are put into target/web/.
# Usage: scripts/test-web.sh [build|run]   `build` makes the page, `run` tests what was built; without either, both. What
# is built after the page contains it, so scripts/test.sh begins with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Other packages of Node.js than Debian's contain npm, and exclude Debian's.
node_and_npm() { command -v npm >/dev/null || scripts/install-packages.sh nodejs npm; }

if [[ ${1:-build} == build ]]; then
	scripts/install-packages.sh clang-19 llvm-19
	node_and_npm
	if [[ ! -d $(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib ]]; then
		scripts/install-packages.sh rustc-web cargo-web rust-web-src lld-19
	fi
	scripts/build-web.sh
	scripts/build-widget.sh
fi
if [[ ${1:-run} == run ]]; then
	scripts/install-packages.sh chromium
	node_and_npm
	# With the features that the other tests have, so that their builds are used.
	cargo build --locked --quiet --workspace --bin knee --example answer
	built=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
	export KNEE_ANSWER=$built/examples/answer KNEE=$built/knee
	cd web
	node --test tests/
fi
