#!/usr/bin/env bash
# Tests the host `linux`, then judges CHD's claims in their short form on it.
# Builds its kernel if the cache has none: needs apt's lists, the packages below and 3 GB of disk space; no root if the
# packages are there. A cache of $XDG_CACHE_HOME/knee/linux (or ~/.cache/knee/linux) between runs saves the build: the
# kernel depends on cc/host/linux, cc/host/module, the contract and crates/knee-linux/kernel, not on the rest of Knee.
# Usage: scripts/test-linux.sh [FOLDER]   The claims' reports go to FOLDER.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
scripts/install-packages.sh gcc libc6-dev make flex bison bc xz-utils

cargo build --locked --quiet -p knee
"$target/debug/knee" linux build debian:6.12
cargo test --locked --quiet -p knee-linux -- --include-ignored
"$target/debug/knee" reproduce chd --host linux --short --claim all --out "${1:-$target/reports/linux}"
