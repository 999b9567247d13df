#!/usr/bin/env bash
# Builds Knee and reproduces the papers in the simulator. Needs Rust and a C compiler; no privileges. Arguments go to
# `knee reproduce`: a paper, and options such as --figure 4; all papers if none.
# The build takes the profile `quick` and no optional feature, so that the first result comes soon.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
echo "building (one to three minutes the first time) ..."
cargo build --profile quick --locked --quiet -p knee --no-default-features
[[ $# -gt 0 ]] || set -- all
exec "${CARGO_TARGET_DIR:-target}/quick/knee" reproduce "$@"
