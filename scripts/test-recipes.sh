#!/usr/bin/env bash
# Carries out the recipes of CONTRIBUTING.md in a scratch tree: applies each patch of scripts/recipes to a copy of
# the sources, and runs the test that the patch adds.
# Usage: scripts/test-recipes.sh   Builds in target/recipes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}/recipes")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# carry_out NAME FILES CRATE TEST: the patch changes at most FILES files besides its test.
carry_out() {
	local patch=$PWD/scripts/recipes/$1.patch files
	files=$(grep '^+++ b/' "$patch" | grep -vc '/tests/')
	if [[ $files -gt $2 ]]; then
		echo "$patch changes $files files; the recipe promises at most $2" >&2
		exit 1
	fi
	mkdir "$work/$1"
	git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$work/$1"
	(
		cd "$work/$1"
		git init -q
		git apply "$patch"
		CARGO_TARGET_DIR=$target cargo test --locked --quiet -p "$3" --test "$4"
	)
	echo "recipe $1: $files files and a test"
}

carry_out queue-discipline 4 knee-scenario step
