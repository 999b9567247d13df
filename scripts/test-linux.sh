#!/usr/bin/env bash
# Tests the host `linux`: its own tests, the same bytes for another user, agreement with the host `vm` if that has a
# kernel, and CHD's claims in their short form.
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

# The same bytes as another user if this one is root, from another folder, with a cache of its own, and two runs at once.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/cache/knee"
cp -r "${XDG_CACHE_HOME:-$HOME/.cache}/knee/linux" "$scratch/cache/knee/"
cp "$target/debug/knee" scenarios/chd/coexistence.toml "$scratch/"
other=(env)
if [[ $EUID -eq 0 ]]; then
	chown -R nobody: "$scratch"
	other=(setpriv --reuid nobody --regid nogroup --clear-groups env)
fi
"$target/debug/knee" run scenarios/chd/coexistence.toml --host linux --repeat 2 --jobs 1 --out "$scratch/one" >"$scratch/log"
(cd "$scratch" && "${other[@]}" HOME="$scratch" XDG_CACHE_HOME="$scratch/cache" \
	./knee run coexistence.toml --host linux --repeat 2 --jobs 2 --out other >log.other)
diff -r "$scratch/one" "$scratch/other"

# The simulated machine and the kernel without a machine agree.
if "$target/debug/knee" vm kernels 2>/dev/null | grep -q "6.12"; then
	"$target/debug/knee" compare scenarios/book/alone.toml --host vm,linux --kernel debian:6.12
fi
