#!/usr/bin/env bash
# Runs the tests that reach the unsafe blocks under AddressSanitizer and LeakSanitizer, C included.
# UndefinedBehaviorSanitizer checks the algorithms' C too. docs/evidence/robustness.md says which test reaches which
# block. Needs root, as these tests do. Builds everything into target/sanitize.
# Usage: scripts/sanitize.sh [CRATE ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
crates=("$@")
[[ ${#crates[@]} -gt 0 ]] || crates=(knee-cc knee-sim knee-kernel knee-testbed knee-vm knee knee-fuzz knee-py)
scripts/install-packages.sh gcc libc6-dev clang-19 libclang-rt-19-dev libfuzzer-19-dev llvm-19 libelf-dev zlib1g-dev \
	pkg-config make iproute2 python3 python3-venv
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/sanitize

host=$(rustc -vV | sed -n 's/^host: //p')
# The sanitizers are no stable feature of the compiler; their runtime comes with it.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address"
# For the target only: build scripts and macros stay as they are.
export "CC_${host//-/_}=clang-19"
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-19/bin/llvm-symbolizer

# fuzz: every target of knee-fuzz on its corpus and on mutations of it, by libFuzzer.
fuzz() {
	local name inputs program=$target/$host/debug/knee-fuzz failed=0
	cargo rustc --locked --quiet --target "$host" --target-dir "$target" -p knee-fuzz --features engine --bin knee-fuzz -- \
		-Clink-arg=-lstdc++ -Clink-arg=/usr/lib/llvm-19/lib/libFuzzer.a || return 1
	while read -r name; do
		inputs=("$(mktemp -d)")
		# Some have no corpus of their own.
		[[ ! -d fuzz/corpus/$name ]] || inputs+=("fuzz/corpus/$name")
		if KNEE_FUZZ_TARGET=$name "$program" -runs=2000 -seed=1 -max_len=4096 -rss_limit_mb=4096 -print_final_stats=1 \
			"-artifact_prefix=$target/$name-" "${inputs[@]}" >"$target/$name.log" 2>&1; then
			echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$target/$name.log") inputs, no finding"
		else
			tail -n 40 "$target/$name.log"
			failed=1
		fi
		rm -r "${inputs[0]}"
	done < <(sed -n 's/.*name: "\([a-z-]*\)",.*/\1/p' crates/knee-fuzz/src/lib.rs)
	return "$failed"
}

# py: the module, in a Python that is not built for sanitizers itself: it gets their runtime first. Memory that Python
# keeps until it ends is no leak of ours.
py() {
	local venv=$target/python
	[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check pytest numpy cffi gymnasium typing_extensions
	PYO3_PYTHON=$venv/bin/python cargo build --locked --quiet --target "$host" --target-dir "$target" -p knee-py || return 1
	rm -rf "$target/package"
	mkdir -p "$target/package"
	cp -r python/knee "$target/package/"
	cp "$target/$host/debug/lib_knee.so" "$target/package/knee/_knee.abi3.so"
	LD_PRELOAD=$(clang-19 -print-file-name=libclang_rt.asan-x86_64.so) ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
		PYTHONPATH=$target/package PYTHONMALLOC=malloc "$venv/bin/python" -m pytest --quiet -p no:cacheprovider \
		python/tests/test_algorithm.py python/tests/test_gym.py
}

flags="-g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=address"
status=0
for crate in "${crates[@]}"; do
	sanitizers=""
	case $crate in
	# The code that these link is our own; libbpf computes offsets from null pointers.
	knee-cc | knee-sim | knee-fuzz) sanitizers=,undefined ;;
	esac
	case $crate in
	knee-cc) tests=(--lib --test invariants --test tables) ;;
	knee-sim) tests=(--lib --test tcp) ;;
	knee-kernel) tests=(--lib --test kernel --test trace --test rate) ;;
	knee-testbed) tests=(--lib --test path --test killed) ;;
	knee-vm) tests=(--lib) ;;
	knee) tests=(--test own) ;;
	*) tests=(--lib --bins --tests) ;;
	esac
	echo "== $crate"
	export "CFLAGS_${host//-/_}=$flags$sanitizers"
	began=$SECONDS
	case $crate in
	knee-fuzz) fuzz || status=1 ;;
	knee-py) py || status=1 ;;
	*)
		cargo test --locked --quiet --target "$host" --target-dir "$target" -p "$crate" --all-features "${tests[@]}" \
			--no-fail-fast || status=1
		;;
	esac
	echo "== $crate: $((SECONDS - began)) s"
done
exit "$status"
