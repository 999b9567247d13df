#!/usr/bin/env bash
# Fuzzes the algorithms and the readers of files (docs/evidence/robustness.md).
#
#   scripts/fuzz.sh calls [NAME ...]    calls of these algorithms, or of all, in C with clang's sanitizers
#   scripts/fuzz.sh planted [NAME ...]  the same of the bugs in proofs/planted/, which it should find
#   scripts/fuzz.sh read [TARGET ...]   the readers of files: these targets of crates/knee-fuzz, or all
#
# The same inputs each time: KNEE_FUZZ_RUNS of each, else 20000. With KNEE_FUZZ_SECONDS each is fuzzed for so many
# seconds of processor time instead, from another seed, and new inputs stay in target/fuzz/corpus/ for the next
# time. An input that fails is kept in target/fuzz/found/; it belongs into fuzz/corpus/ once the bug is fixed.
# KNEE_FUZZ_JOBS: number of fuzzers at a time, else one per core.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz
mkdir -p "$out/found" "$out/corpus"
jobs=${KNEE_FUZZ_JOBS:-$(nproc)}

usage() {
	sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

# build ROOT NAME PROGRAM: the algorithm under ROOT as a fuzzer, next to gcc's build of it.
build() {
	local root=$1 name=$2 program=$3 own=(-std=c11 "-I$1/cc/include" "-I$1/cc/host/native")
	gcc "${own[@]}" -O2 -ffreestanding -c "$root/cc/algorithms/$name.c" -o "$program.o"
	objcopy --redefine-sym "knee_$name=other_$name" "$program.o"
	clang-19 "${own[@]}" -g -O1 -Wall -Wextra -Werror -fno-sanitize-recover=all \
		-fsanitize=fuzzer,address,undefined,integer -fsanitize-ignorelist=fuzz/arithmetic.txt \
		-DKNEE_ALGORITHM_FILE="\"$root/cc/algorithms/$name.c\"" \
		-DFUZZ_ONE="knee_$name" -DFUZZ_OTHER="other_$name" -I. fuzz/calls.c "$program.o" -o "$program"
}

# longest NAME: largest input of a target of crates/knee-fuzz, bytes.
longest() {
	local bytes
	bytes=$(awk -v name="name: \"$1\"" 'index($0, name) { on = 1 }
		on && sub(/.*longest_bytes: */, "") { sub(/,.*/, ""); print; exit }' crates/knee-fuzz/src/lib.rs)
	echo $((bytes))
}

# fuzz PROGRAM NAME CORPUS LONGEST: the fuzzer's exit code; its words are in $out/NAME.log. Inputs have up to LONGEST
# bytes.
fuzz() {
	local program=$1 name=$2 corpus=$3 new=$out/corpus/$2
	local options=("-max_len=$4" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1)
	options+=("-artifact_prefix=$out/found/$name-")
	local seconds=${KNEE_FUZZ_SECONDS:-}
	if [[ -z $seconds ]]; then
		new=$out/new/$name
		rm -rf "$new"
		options+=("-runs=${KNEE_FUZZ_RUNS:-20000}" -seed=1)
	fi
	mkdir -p "$new"
	local inputs=("$new")
	# A new algorithm has none yet.
	[[ ! -d $corpus ]] || inputs+=("$corpus")
	if [[ -z $seconds ]]; then
		"$program" "${options[@]}" "${inputs[@]}" >"$out/$name.log" 2>&1
		return
	fi
	# libFuzzer's limit is one of elapsed time, of which the program may have waited for a processor.
	local used left=$seconds TIMEFORMAT='%U %S'
	: >"$out/$name.log"
	while [[ $left -gt 0 ]]; do
		{ time "$program" "${options[@]}" "-max_total_time=$left" "${inputs[@]}" >>"$out/$name.log" 2>&1; } \
			2>"$out/$name.time" || return
		used=$(awk '{ printf "%d", $1 + $2 + 0.5 }' "$out/$name.time")
		left=$((left - (used > 0 ? used : 1)))
	done
}

# calls ROOT NAME PREFIX: builds and fuzzes an algorithm.
calls() {
	local root=$1 name=$2 program="$out/$3$2"
	build "$root" "$name" "$program" && fuzz "$program" "$3$name" "fuzz/corpus/calls/$name" 16384
}

# said NAME: inputs, and the edges reached.
said() {
	local runs edges
	runs=$(awk '/^stat::number_of_executed_units:/ { sum += $2 } END { printf "%d", sum }' "$out/$1.log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$out/$1.log" | tail -n 1)
	echo "$1: $runs inputs, $edges edges"
}

failed() {
	echo "$1: FAILED; the input is in $out/found/" >&2
	grep -m 1 -E 'runtime error|ERROR: |panicked at' "$out/$1.log" >&2 || tail -n 20 "$out/$1.log" >&2
}

# one WHAT NAME: builds the program that WHAT needs, fuzzes, reports.
one() {
	local what=$1 name=$2
	case $what in
	calls)
		if calls . "$name" ""; then said "$name"; else failed "$name"; return 1; fi
		;;
	read)
		if KNEE_FUZZ_TARGET=$name fuzz "$out/knee-fuzz" "$name" "fuzz/corpus/$name" "$(longest "$name")"; then
			said "$name"
		else
			failed "$name"
			return 1
		fi
		;;
	planted)
		local tree="$out/planted/$name" algorithm=${name%-invariant}
		rm -rf "$tree"
		mkdir -p "$tree"
		cp -r cc "$tree"
		patch -s -p1 -d "$tree" <"proofs/planted/$name.patch" || return 1
		build "$tree" "$algorithm" "$out/planted-$name"
		local found
		fuzz "$out/planted-$name" "planted-$name" "fuzz/corpus/calls/$algorithm" 16384 || true
		rm -f "$out/found/planted-$name"-*
		# A fuzzer that could not start has found nothing.
		found=$(grep -m 1 -oE 'runtime error: .*|^[a-z_]+: .*: [0-9]+$' "$out/planted-$name.log") || {
			echo "$name: NOT FOUND"
			return 1
		}
		echo "$name: found: $found"
		;;
	esac
}
export -f build longest fuzz calls said failed one
export out

what=${1:-}
[[ $# -eq 0 ]] || shift
names=("$@")
case $what in
calls | planted)
	[[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(cd cc/algorithms && printf '%s\n' *.c | sed 's/\.c$//')
	for name in "${names[@]}"; do
		[[ -f cc/algorithms/$name.c ]] || { echo "$name: no such algorithm" >&2; exit 2; }
	done
	[[ $what == calls ]] || for name in "${names[@]}"; do
		[[ ! -f proofs/planted/$name-invariant.patch ]] || names+=("$name-invariant")
	done
	;;
read)
	[[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(sed -n 's/.*name: "\([a-z-]*\)",.*/\1/p' crates/knee-fuzz/src/lib.rs)
	# Everything is compiled again, with counters for libFuzzer.
	flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Ccodegen-units=1"
	flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
	flags+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Clink-arg=-lstdc++"
	flags+=" -Clink-arg=/usr/lib/llvm-19/lib/libFuzzer.a"
	host=$(rustc -vV | sed -n 's/^host: //p')
	RUSTFLAGS=$flags cargo build --locked --target "$host" --target-dir "$out/rust" -p knee-fuzz \
		--features engine --bin knee-fuzz
	cp "$out/rust/$host/debug/knee-fuzz" "$out/knee-fuzz"
	;;
*)
	usage
	;;
esac

status=0
# shellcheck disable=SC2016 # the inner shell expands
printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I{} bash -c 'one "$1" "$2" || exit 1' _ "$what" {} || status=1
echo "$what: ${#names[@]} targets in $SECONDS s"
exit "$status"
