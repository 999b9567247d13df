#!/usr/bin/env bash
# Tests of the host vm: the same bytes whatever the load, errors name missing parts, nothing is left of a killed
# run. Installs QEMU (as root) and fetches kernels into this user's cache. 7.2 is in Debian's sid until a newer one
# replaces it: then this script fails, unless the cache has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install-packages.sh qemu-system-x86 clang-19 libelf-dev zlib1g-dev pkg-config make
cargo test --locked --quiet --workspace --test vm --no-run
"${CARGO_TARGET_DIR:-target}/debug/knee" vm fetch debian:6.12
"${CARGO_TARGET_DIR:-target}/debug/knee" vm fetch debian:6.1
"${CARGO_TARGET_DIR:-target}/debug/knee" vm fetch debian:7.2
cargo test --locked --quiet --workspace --test vm -- --ignored
