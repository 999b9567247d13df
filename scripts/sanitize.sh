#!/usr/bin/env bash
# The tests that reach the unsafe blocks, under AddressSanitizer and LeakSanitizer, C included; of the algorithms' C
# undefined behaviour is looked for too. docs/safety.md says which block is reached by which. Needs root, as these tests
# do. Everything is built anew, into target/sanitize.
# Usage: scripts/sanitize.sh [CRATE ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
crates=("$@")
[[ ${#crates[@]} -gt 0 ]] || crates=(knee-cc knee-sim knee-kernel knee-testbed knee-vm knee)
scripts/install-packages.sh gcc libc6-dev clang-19 libclang-rt-19-dev llvm-19 libelf-dev zlib1g-dev pkg-config make \
	iproute2

host=$(rustc -vV | sed -n 's/^host: //p')
# The sanitizers are no stable feature of the compiler; their runtime comes with it.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address"
# For the target only: build scripts and macros stay as they are.
export "CC_${host//-/_}=clang-19"
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-19/bin/llvm-symbolizer

flags="-g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=address"
status=0
for crate in "${crates[@]}"; do
	sanitizers=""
	case $crate in
	# What these link is our own; libbpf computes offsets from null pointers.
	knee-cc | knee-sim) sanitizers=,undefined ;;
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
	env "CFLAGS_${host//-/_}=$flags$sanitizers" \
		cargo test --locked --quiet --target "$host" --target-dir "${CARGO_TARGET_DIR:-target}/sanitize" -p "$crate" \
		--all-features "${tests[@]}" --no-fail-fast || status=1
done
exit "$status"
