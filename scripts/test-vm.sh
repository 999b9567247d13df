#!/usr/bin/env bash
# Tests of the host vm: the same bytes whatever the load, nothing left of a killed run. Not part of scripts/test.sh: they
# need a release build (QEMU executes every instruction of the guest's knee), some minutes, and a kernel in this user's
# cache. Installs QEMU (as root) and fetches the kernel.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install-packages.sh qemu-system-x86 clang-19 libelf-dev zlib1g-dev pkg-config make
cargo build --release --locked --quiet -p knee
"${CARGO_TARGET_DIR:-target}/release/knee" vm fetch debian:6.12
cargo test --release --locked -p knee --features vm-tests --test vm
