#!/usr/bin/env bash
# Runs the long tests: a million connections through the kernel (as root), and 24 simulated days.
# Algorithms are loaded and unloaded under the connections; the kernel's memory is compared before and after. The
# simulation has 2 x 10^9 packets, with every check of the debug build.
# Usage: scripts/soak.sh [CONNECTIONS]
# The simulation takes two minutes of processor time, the connections far longer. CI makes 10 000 of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
connections=${1:-1000000}
scripts/install-packages.sh gcc libc6-dev clang-19 libelf-dev zlib1g-dev pkg-config make
cargo build --locked --quiet -p knee
cargo test --locked --quiet -p knee-kernel --test soak --no-run
knee=${CARGO_TARGET_DIR:-target}/debug/knee
memory() { grep -E '^(MemAvailable|SUnreclaim|Percpu):' /proc/meminfo; }

echo "kernel: $connections connections; its memory before"
memory
time KNEE_SOAK_CONNECTIONS=$connections cargo test --locked --quiet -p knee-kernel --test soak -- --nocapture
echo "its memory after"
memory

for pair in "chd newreno" "bbr cubic" "ebb newreno"; do
	read -r one other <<<"$pair"
	echo "simulator: $one and $other, 8 days"
	time "$knee" run scenarios/book/beside-newreno.toml --set duration=691200s --set record.bin=60min \
		--set path.rate=12mbit --set path.loss_forward=0.0001 --set flow.0.cc="$one" --set flow.1.cc="$other"
done
