#!/usr/bin/env bash
# Everything that must pass: format, lints, licences, C warnings, all tests (some load the algorithms into this kernel,
# which needs root), the book, the recorded claims, and the tutorial. Installs the Debian packages it needs (as root),
# and builds two Rust tools once, into target/tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
step() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }

step "packages"
scripts/install-packages.sh gcc libc6-dev clang-19 clang-format-19 \
	libclang-rt-19-dev libelf-dev zlib1g-dev pkg-config make iproute2 jq

step "the lab's page, which the programs contain"
scripts/test-web.sh build

step "format and lints"
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

step "licences and sources of dependencies"
scripts/check-dependencies.sh

step "C sources"
scripts/check-c.sh

step "proof of no runtime errors: the lemmas, and what is not on record as proved"
scripts/install-packages.sh frama-c-base why3 z3
KNEE_PROVE_BUDGET=180 scripts/prove.sh --due

step "fuzzing: calls of every algorithm, under clang's sanitizers"
scripts/fuzz.sh calls

step "tests"
cargo test --locked --workspace --quiet

step "speed: instructions per packet, against the record"
scripts/bench-instructions.sh

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

# The tests' own build: it checks its assertions too, and another one would take minutes.
knee=${CARGO_TARGET_DIR:-target}/debug/knee

step "recorded claims of the CHD paper, and the README's figures"
# The reports are kept there, each with its figures.
out=${CARGO_TARGET_DIR:-target}/reports
rm -rf "$out"
mkdir -p "$out"
"$knee" reproduce chd --out "$out/chd"
for figure in docs/figures/*.svg; do
	cmp "$figure" "$out/chd/figures/$(basename "$figure")" || {
		echo "$figure is not what reproduce draws: scripts/update-figures.sh" >&2
		exit 1
	}
done

step "recorded claims of the other papers, and the goals of Ebb"
for paper in delay-aimd htcp hd ebb; do
	"$knee" reproduce "$paper" --out "$out/$paper"
done
# Its paths are fast and its runs long: one repetition tells enough.
"$knee" reproduce ftcp --repeat 1 --out "$out/ftcp"

step "the lab: the module against the native build, the page in a browser"
scripts/test-web.sh run

step "book: every algorithm's page, every paper's, the lab's, every link"
scripts/book.sh "$knee" "$out"

step "the host vm"
scripts/test-vm.sh

step "claims on real TCP and over QUIC: those of the short form, in virtual time"
"$knee" reproduce chd --host vm,quic --short --claim all --out "$out/hosts"

step "the Python package"
scripts/test-python.sh

step "charts in JupyterLab and marimo"
scripts/test-notebooks.sh

step "criteria of RFC 9743: the quick form for every algorithm, against the record"
"$knee" evaluate --all --quick --out "$out/scorecard"

step "tutorial: every command"
scripts/tutorial.sh

echo "all passed, after $SECONDS s"
