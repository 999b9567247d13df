#!/usr/bin/env bash
# Tests the Python package's charts in JupyterLab and marimo, in a headless Chromium.
# web/tests/notebooks.mjs has the tests. Runs in the environment that scripts/test-python.sh made, with the package in it.
# Installs the Debian packages that it needs (as root).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export PYTHON=$target/python/bin/python KNEE_ANSWER=$target/debug/examples/answer
"$PYTHON" -c 'import knee' 2>/dev/null || {
	echo "the package is not in $target/python: scripts/test-python.sh" >&2
	exit 1
}
scripts/install-packages.sh chromium
command -v npm >/dev/null || scripts/install-packages.sh nodejs npm
"$PYTHON" -m pip install --quiet --disable-pip-version-check jupyterlab ipywidgets anywidget marimo
cargo build --locked --quiet --workspace --bin knee --example answer
cd web
[[ -d node_modules ]] || npm ci --no-audit --no-fund
node --test tests/notebooks.mjs
