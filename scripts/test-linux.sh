#!/usr/bin/env bash
# Tests the host `linux`, then judges CHD's claims in their short form on it.
# Builds its kernel if the cache has none: needs apt's lists, the packages below and 3 GB of disk space; no root if the
# packages are there. A cache of $XDG_CACHE_HOME/knee/linux (or ~/.cache/knee/linux) between runs saves the build: the
# kernel depends on cc/host/linux, cc/host/module, the contract and crates/knee-linux/kernel, not on the rest of Knee.
# Usage: scripts/test-linux.sh [FOLDER [KERNEL...]]   The claims' reports go to FOLDER. The tests run in debian:6.12, and in
# each KERNEL, such as debian:6.1 or debian:7.2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
scripts/install-packages.sh gcc libc6-dev make flex bison bc xz-utils

folder=${1:-$target/reports/linux}

cargo build --locked --quiet -p knee
for kernel in debian:6.12 "${@:2}"; do
	"$target/debug/knee" linux build "$kernel"
	KNEE_LINUX_TEST_KERNEL=$kernel cargo test --locked --quiet -p knee-linux -- --include-ignored
done
"$target/debug/knee" reproduce chd --host linux --short --claim all --out "$folder"
