#!/usr/bin/env bash
# Tests the host `linux`: its own tests, the same bytes for another user, agreement with the host `vm` if that has a
# kernel, and CHD's claims in their short form.
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

# The hosts `vm` and `linux` agree.
if compgen -G "${XDG_CACHE_HOME:-$HOME/.cache}/knee/kernels/*6.12*" >/dev/null; then
	compared=$("$target/debug/knee" compare scenarios/book/alone.toml --host vm,linux --kernel debian:6.12 --format json)
	if ! grep -q '"agrees": true' <<<"$compared" || grep -q '"agrees": false' <<<"$compared"; then
		echo "vm and linux differ: $compared" >&2
		exit 1
	fi
fi
