#!/usr/bin/env bash
# Tests the README's main command, `scripts/reproduce.sh`, with the build that it makes.
# It checks the verdicts, and the errors for the hosts and commands that this build lacks. Each error names the feature
# and the command that installs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
rm -rf "$target/first-result"
scripts/reproduce.sh chd --out "$target/first-result"
knee=$target/quick/knee

# Fails unless `knee ARGUMENTS` ends with exit code 2 and names FEATURE and how to install it.
lacks() {
	local feature=$1 code=0 said
	shift
	said=$("$knee" "$@" 2>&1) || code=$?
	[[ $code -eq 2 && $said == *"feature \`$feature\`"* && $said == *"cargo install --path crates/knee"* ]] || {
		printf 'knee %s: exit code %d, without the feature and its remedy:\n%s\n' "$*" "$code" "$said" >&2
		exit 1
	}
}
scenario=scenarios/chd/coexistence.toml
lacks kernel run "$scenario" --host kernel
lacks quic run "$scenario" --host quic
lacks vm run "$scenario" --host vm
lacks linux run "$scenario" --host linux
lacks linux linux list
lacks vm reproduce chd --host sim,vm
lacks kernel kernel load chd
lacks kernel testbed up "$scenario"
lacks kernel trace --port 5201
lacks vm vm fetch debian:6.12
lacks lab lab
lacks test test ./mine.c
lacks sweep sweep studies/chd-loss/study.toml --out data
echo "the errors for missing hosts and commands name their remedies"
