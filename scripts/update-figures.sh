#!/usr/bin/env bash
# Draws the README's figures anew, and its picture of the lab. Installs the Debian packages that this needs (as root).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo build --profile quick --locked --quiet -p knee --no-default-features
"${CARGO_TARGET_DIR:-target}/quick/knee" reproduce chd --out "$out/chd" || true
mkdir -p docs/figures
cp "$out"/chd/figures/{chd-figure-4a,chd-figure-7b,chd-figure-8d}.svg docs/figures/
scripts/test-web.sh build
scripts/install-packages.sh chromium
node web/screenshot.mjs docs/figures/lab.png
