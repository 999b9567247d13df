#!/usr/bin/env bash
# Stores the new results of duels, scenarios, evaluation and proofs after an intended change, and names claims that differ.
# Read the changes (git diff), and commit them with the change of the algorithm or the simulator and its reason in CHANGELOG.md.
#
#   scripts/record.sh [PAPER ...]    the papers (or `ebb`) whose claims are looked at too: all if none
#
#   - calls in duels, and results of scenarios: the snapshots that tests compare with
#   - verdicts of the quick evaluation: scenarios/evaluation/runs/record.toml
#   - the generated parts of the documentation (scripts/update-docs.sh): plots, verdict tables, figures, values in prose
#   - proofs that are due: proofs/proved.txt
#
# The example of docs/how-to/compare-algorithms.md and claims are not written: each claim that differs needs its reason, in scenarios/PAPER/claims.toml. Then run this again. It takes
# about ten minutes on two cores, more if a proof of Ebb is due. Results on Linux and over QUIC are another matter:
# `knee reproduce PAPER --short --host linux,quic`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-} in -*)
	sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
papers=("$@")
[[ ${#papers[@]} -gt 0 ]] || papers=(chd delay-aimd htcp hd others ebb ftcp)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }

step "calls in duels, and results of scenarios"
INSTA_UPDATE=always cargo test --locked --quiet --workspace --test duels --test bbr --test results

step "the quick evaluation"
cargo build --locked --quiet --workspace --bin knee
knee=${CARGO_TARGET_DIR:-target}/debug/knee
# 1: a verdict differs from the expected one, which is why it is recorded again.
"$knee" evaluate --all --quick --out "$work/evaluation" || [[ $? -eq 1 ]]
cp "$work/evaluation/record.toml" scenarios/evaluation/runs/record.toml

step "claims"
differ=()
for paper in "${papers[@]}"; do
	# As in scripts/test.sh.
	repeat=()
	[[ $paper != ftcp ]] || repeat=(--repeat 1)
	"$knee" reproduce "$paper" "${repeat[@]}" --out "$work/$paper" || differ+=("$paper")
done

step "documentation"
scripts/update-docs.sh "$knee" "$work"

step "proofs"
scripts/prove.sh --due

git status --short
if [[ ${#differ[@]} -gt 0 ]]; then
	echo "claims differ from the record, see above: ${differ[*]}" >&2
	exit 1
fi
