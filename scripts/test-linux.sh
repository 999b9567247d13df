#!/usr/bin/env bash
# Tests the host `linux`: builds its kernel if the cache has none, then runs in it. Needs the packages below, apt's lists
# and 3 GB of disk space; no root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-packages.sh gcc libc6-dev make flex bison bc xz-utils
cargo test --locked --quiet -p knee-linux -- --nocapture "$@"
