#!/usr/bin/env bash
# Carries out the recipes of CONTRIBUTING.md in a copy of the sources.
# It applies each patch of scripts/recipes and runs the test that the patch adds. Last it removes the accelerators, and
# compares the results of every scenario.
# Usage: scripts/test-recipes.sh   The copy is target/recipes/tree; it stays, so that the next run builds less.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
recipes=$PWD/scripts/recipes
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/recipes
tree=$work/tree
# Cargo would take artifacts of the copy for those of the original.
export CARGO_TARGET_DIR=$work/target
rm -rf "$tree"
mkdir -p "$tree"
git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$tree"
cd "$tree"
git init -q

# carry_out NAME FILES CRATE TEST [OPTION ...]: the patch changes at most FILES files besides its test, and a crate of its
# own.
carry_out() {
	local name=$1 most=$2 crate=$3 test=$4 files
	shift 4
	files=$(grep '^+++ b/' "$recipes/$name.patch" | grep -v '/tests/' | grep -vc '/knee-lossless/') || true
	if [[ $files -gt $most ]]; then
		echo "$name.patch changes $files files; the recipe promises at most $most" >&2
		exit 1
	fi
	git apply "$recipes/$name.patch"
	cargo test --offline --quiet -p "$crate" --test "$test" "$@"
	echo "recipe $name: $files files and a test"
}

carry_out queue-discipline 4 knee-scenario step
carry_out traffic-source 4 knee-scenario periodic
carry_out host 3 knee lossless --no-default-features

rm crates/knee-sim/src/sender/fast_path.rs
sed -i -e '/^mod fast_path;$/d' -e '/if self.is_in_order(ack, sack) {/,/}/d' crates/knee-sim/src/sender.rs
cargo test --offline --quiet -p knee-scenario --test results
echo "without the fast path: the results of every scenario are the same"
