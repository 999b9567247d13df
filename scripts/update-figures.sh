#!/usr/bin/env bash
# Makes the picture of the lab in the README and in docs/. scripts/update-docs.sh draws all other figures. Installs the
# Debian packages that this needs (as root).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/test-web.sh build
scripts/install-packages.sh chromium
node web/screenshot.mjs docs/figures/lab.png
