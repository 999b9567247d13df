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
carry_out metric 1 knee metric --no-default-features --features portable
cargo test --offline --quiet -p knee-lab --lib every_metric_is_a_function
cargo build --offline --quiet -p knee-py
cp "$CARGO_TARGET_DIR/debug/lib_knee.so" python/knee/_knee.so
PYTHONPATH=python python3 - <<-'END'
	import sys
	import tempfile

	import knee

	sys.path.insert(0, "scripts/docs")
	import update

	NAME = "retransmitted_fraction"
	scenario = {
	    "duration": "10s",
	    "path": {"rate": "10mbit", "rtt": "40ms", "queue": "84p", "loss_forward": 0.01},
	    "flow": [{"name": "a", "cc": "newreno"}],
	}
	results = knee.run(scenario)
	counters = results.summary["runs"][0]["flows"][0]["counters"]
	by_hand = counters["retransmitted_pkts"] / counters["sent_pkts"]
	assert results.metric(NAME, "a") == by_hand > 0, by_hand
	assert results.percentiles(NAME, "a").p50 == by_hand
	study = {"scenario": scenario, "axes": {"flow.0.cc": ["newreno"]}, "keep": {"metrics": [NAME]}}
	with tempfile.TemporaryDirectory() as folder:
	    assert knee.sweep(study, out=f"{folder}/data").flows.column(NAME) == [by_hand]
	fields = ("name", "of", "unit", "meaning", "windowed")
	listed = [dict(zip(fields, row, strict=True), appears=[]) for row in knee.metrics()]
	assert f"| `{NAME}` | flow |" in update.metrics(listed)
END
echo "recipe metric: formulas, studies, Python and the reference have it"

rm crates/knee-sim/src/sender/fast_path.rs
sed -i -e '/^mod fast_path;$/d' -e '/if self.is_in_order(ack, sack) {/,/}/d' crates/knee-sim/src/sender.rs
cargo test --offline --quiet -p knee-scenario --test results
echo "without the fast path: the results of every scenario are the same"
