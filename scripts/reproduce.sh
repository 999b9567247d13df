#!/usr/bin/env bash
# The main job: builds Knee and reproduces the CHD paper in the simulator. Needs Rust and a C
# compiler; no privileges. Arguments go to `knee reproduce chd`, such as --figure 4.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
echo "building (a few minutes the first time) ..."
cargo build --release --locked --quiet -p knee --no-default-features
exec "${CARGO_TARGET_DIR:-target}/release/knee" reproduce chd "$@"
