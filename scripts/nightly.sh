#!/usr/bin/env bash
# Runs the checks that take too long for every change, as root on an idle machine.
# target/nightly/STEP.log has the output of a step. A step that is run again replaces its reports; kept runs serve it
# again. After a step that fails the others still run, and the exit code is 1.
#
#   scripts/nightly.sh [STEP ...]    these steps, or all
#
#   prove      every proof, recorded or not; then a bug planted in each algorithm, which must raise an alarm
#   sanitize   the unsafe blocks under AddressSanitizer and LeakSanitizer
#   calls      calls of every algorithm in C, fuzzed for KNEE_NIGHTLY_SECONDS / 6 each
#   read       all readers of files, fuzzed for KNEE_NIGHTLY_SECONDS each, else 3600; the corpus stays for the next night
#   properties every property test with KNEE_NIGHTLY_SEEDS new seeds, else 4; a failure names its seed
#   measured   tests that measure rates and delays of the kernel host in real time: on an idle machine
#   soak       a million connections through the kernel, and 24 simulated days
#   linux      every claim and the quick evaluation of every algorithm on the host linux: ten repetitions, three where
#              runs are long; and the same bytes from two builds of Knee; an interrupted step resumes
#   papers     every claim over QUIC, three repetitions each; an interrupted step resumes
#   newcomer   the commands of the README, the install page and the tutorial on a clean Debian 12 and 13
#
# On two cores and with an hour for each reader it takes about seven hours, with up to an hour more for Ebb's goals on `linux`, and
# without `papers`, whose time is not known.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(realpath -m "${CARGO_TARGET_DIR:-target}")/nightly
seconds=${KNEE_NIGHTLY_SECONDS:-3600}
steps=("$@")
[[ ${#steps[@]} -gt 0 ]] || steps=(prove sanitize calls read properties measured newcomer soak linux papers)

prove() {
	scripts/install-packages.sh frama-c-base why3 z3
	scripts/prove.sh && scripts/prove.sh --planted
}
sanitize() { scripts/sanitize.sh; }
calls() {
	scripts/install-packages.sh gcc libc6-dev clang-19 libclang-rt-19-dev
	KNEE_FUZZ_SECONDS=$(((seconds + 5) / 6)) scripts/fuzz.sh calls
}
read_() {
	scripts/install-packages.sh gcc libc6-dev libfuzzer-19-dev
	KNEE_FUZZ_SECONDS=$seconds scripts/fuzz.sh read
}
# In CI these tests draw the same cases each time (.cargo/config.toml).
properties() {
	local seed
	local -a crates
	mapfile -t crates < <(grep -lE '^proptest\b' crates/*/Cargo.toml | sed -E 's|crates/(.*)/Cargo.toml|--package=\1|')
	for _ in $(seq "${KNEE_NIGHTLY_SEEDS:-4}"); do
		seed=$(od -An -N8 -tu8 /dev/urandom | tr -d ' ')
		echo "seed $seed"
		PROPTEST_RNG_SEED=$seed cargo test --locked --quiet --no-fail-fast "${crates[@]}" || {
			echo "again: PROPTEST_RNG_SEED=$seed cargo test --no-fail-fast ${crates[*]}"
			return 1
		}
	done
}
measured() {
	local -a only=(--ignored --test-threads=1 --skip traces_until_it_is_killed)
	cargo test --locked --quiet -p knee-testbed --tests -- "${only[@]}"
	cargo test --locked --quiet -p knee-kernel --test kernel --test rate -- "${only[@]}"
	cargo test --locked --quiet -p knee --test kernel_host --test testbed -- "${only[@]}"
}
soak() { scripts/soak.sh; }
newcomer() { scripts/test-newcomer.sh; }
linux() {
	scripts/install-packages.sh gcc libc6-dev clang-19 libelf-dev zlib1g-dev pkg-config make flex bison bc xz-utils
	scripts/test-web.sh build
	cargo build --release --locked --quiet -p knee
	cargo build --locked --quiet -p knee
	local target=${CARGO_TARGET_DIR:-target}
	local knee=$target/release/knee build folder
	"$knee" linux build debian:6.12
	rm -rf "$out"/linux-*/

	folder=$(mktemp -d)
	for build in debug release; do
		"$target/$build/knee" run scenarios/chd/coexistence.toml --host linux --repeat 2 --out "$folder/$build"
	done
	diff -r "$folder/debug" "$folder/release"
	rm -r "$folder"

	# Paper, claims, repetitions. 500 Mbit/s and F-TCP's long runs take most of the time.
	while read -r paper claims repetitions; do
		"$knee" reproduce "$paper" --host linux --claim "$claims" --repeat "$repetitions" \
			--keep "$out/kept" --out "$out/linux-$paper-$repetitions" </dev/null
	done <<-END
		chd all 10
		htcp all 10
		hd all 10
		delay-aimd C24,C25,C26,C27,C28,C29,C30,C31,C37 10
		delay-aimd C32,C33,C34,C35,C36 3
		others all 10
		ebb all 10
		ftcp all 3
	END
	"$knee" evaluate --all --quick --host linux --keep "$out/kept" --out "$out/linux-evaluation"
}
papers() {
	scripts/install-packages.sh gcc libc6-dev clang-19 libelf-dev zlib1g-dev pkg-config make
	scripts/test-web.sh build
	cargo build --release --locked --quiet -p knee
	local knee=${CARGO_TARGET_DIR:-target}/release/knee
	rm -rf "$out/papers"
	"$knee" reproduce all --host quic --repeat 3 --keep "$out/kept" --out "$out/papers"
}

for step in "${steps[@]}"; do
	case $step in
	prove | sanitize | calls | read | properties | measured | newcomer | soak | linux | papers) ;;
	*)
		sed -n '2,21s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
done
mkdir -p "$out"
status=0
for step in "${steps[@]}"; do
	began=$SECONDS
	echo "$step: began at $(date -u +%H:%M), $out/$step.log"
	# In a shell of its own: in a condition, this shell would ignore a command of the step that fails.
	function=$step
	[[ $step != read ]] || function=read_
	set +e
	(set -euo pipefail && "$function") >"$out/$step.log" 2>&1
	code=$?
	set -e
	if [[ $code -eq 0 ]]; then
		echo "$step: passed after $((SECONDS - began)) s"
	else
		echo "$step: FAILED after $((SECONDS - began)) s: $(tail -n 1 "$out/$step.log")"
		status=1
	fi
done
exit "$status"
