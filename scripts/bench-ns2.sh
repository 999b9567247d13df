#!/usr/bin/env bash
# Speed against ns-2 on the same dumbbell (16 flows, 100 Mb/s, 40 ms, 333 packets, 60 s; SACK), whole
# processes, one after the other in turn, so that a change in the machine's speed hits both.
# Usage: scripts/bench-ns2.sh [PAIRS]   Needs ns (Debian package ns2); installs it if root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pairs=${1:-9}
if ! command -v ns >/dev/null; then
	apt-get update -q && apt-get install -qy --no-install-recommends ns2
fi
cargo build --release --locked --quiet -p knee --no-default-features
knee=("${CARGO_TARGET_DIR:-target}/release/knee" bench dumbbell --flows 16 --rate 100mbit --rtt 40ms --queue 333p --duration 60s)
peer=(ns bench/ns2-dumbbell.tcl sack 16 100 40 333 60)

# Wall-clock seconds of a command.
seconds() {
	local start end
	start=$(date +%s%N)
	"$@" >/dev/null
	end=$(date +%s%N)
	awk -v ns=$((end - start)) 'BEGIN { printf "%.6f", ns / 1e9 }'
}
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

seconds "${knee[@]}" >/dev/null # warm-up
ratios=()
for ((i = 0; i < pairs; i++)); do
	a=$(seconds "${peer[@]}")
	b=$(seconds "${knee[@]}")
	ratios+=("$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.2f", a / b }')")
	echo "ns-2 $a s, knee $b s, ratio ${ratios[-1]}"
done
echo "median ratio over $pairs pairs: $(printf '%s\n' "${ratios[@]}" | median)"
