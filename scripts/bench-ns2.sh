#!/usr/bin/env bash
# Compares Knee's speed with ns-2, and with ns-3 where it is installed.
# All run the same dumbbell (16 flows, 100 Mbit/s, 40 ms, 333 packets, 60 s; SACK): `knee bench peers`, and its build.
# Usage: scripts/bench-ns2.sh [PAIRS]   Needs ns (Debian package ns2); installs it if root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pairs=${1:-9}
if ! command -v ns >/dev/null; then
	apt-get update -q && apt-get install -qy --no-install-recommends ns2
fi
cargo build --release --locked --quiet -p knee --no-default-features
exec "${CARGO_TARGET_DIR:-target}/release/knee" bench peers --pairs "$pairs"
