#!/usr/bin/env bash
# The long tests: a million connections through the kernel while algorithms come and go under them (as root), with the
# kernel's memory before and after; and 24 simulated days with 2 x 10^9 packets, every check of the debug build on.
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
