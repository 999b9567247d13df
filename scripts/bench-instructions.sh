#!/usr/bin/env bash
# Instructions that the simulator takes per delivered packet (of start-up: per run), by valgrind, against
# the numbers in bench/instructions.tsv. A case that differs by more than 3 % fails, in either
# direction: record gains too, else they could be lost unseen. Other compilers than those
# of the table give other numbers, which are shown and not judged.
# Usage: scripts/bench-instructions.sh [--record]   --record writes the new numbers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
on_record=bench/instructions.tsv
tolerance_percent=3
scripts/install-packages.sh valgrind gcc libc6-dev
compilers="# $(rustc --version), $(cc --version | head -1)"
cargo build --release --locked --quiet -p knee-bench
program=${CARGO_TARGET_DIR:-target}/release/instructions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Instructions and units of one run of a case: "instructions units".
measure() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$work/$1.$2.log" \
		"$program" "$1" "$2" >"$work/$1.$2.units"
	awk '/Collected/ { print $NF }' "$work/$1.$2.log" | paste -d' ' - "$work/$1.$2.units"
}
per_unit() {
	paste -d' ' <(measure "$1" short) <(measure "$1" long) |
		awk -v name="$1" '{ printf "%s\t%.0f\n", name, ($3 - $1) / ($4 - $2) }' >"$work/$1.result"
}
export -f measure per_unit
export program work

mapfile -t cases < <("$program")
printf '%s\0' "${cases[@]}" | xargs -0 -P "$(nproc)" -I{} bash -euo pipefail -c 'per_unit {}'
printf '%s.result\0' "${cases[@]/#/$work/}" | xargs -0 cat >"$work/now.tsv"
if [[ ${1:-} == --record ]]; then
	{ echo "$compilers" && cat "$work/now.tsv"; } | tee "$on_record"
	exit
fi
awk -F'\t' -v limit="$tolerance_percent" '
	/^#/ { next }
	NR == FNR { was[$1] = $2; next }
	!($1 in was) { printf "%-20s %6d          not on record\n", $1, $2; bad = 1; next }
	{
		change = ($2 / was[$1] - 1) * 100
		off = change > limit || change < -limit
		bad = bad || off
		printf "%-20s %6d -> %6d %+6.1f %%%s\n", $1, was[$1], $2, change, off ? "  more than " limit " %" : ""
		delete was[$1]
	}
	END {
		for (name in was) { printf "%-20s on record, but no case\n", name; bad = 1 }
		exit bad
	}' "$on_record" "$work/now.tsv" || {
	if [[ $compilers != "$(head -1 "$on_record")" ]]; then
		echo "not judged: on record are those of $(head -1 "$on_record"), these are of $compilers"
		exit 0
	fi
	echo "instructions per packet are not those on record: if that is meant, scripts/bench-instructions.sh --record" >&2
	exit 1
}
