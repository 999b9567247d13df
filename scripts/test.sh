#!/usr/bin/env bash
# Runs the tests; with --all, everything that must pass.
#
#   scripts/test.sh          format, lints and tests of everything that needs no privileges and no package besides Rust
#                            and a C compiler: algorithms, simulator, QUIC, scenarios, results, reports, command line.
#                            Installs nothing. A few minutes after the build.
#   scripts/test.sh --all    everything that must pass, as CI runs it: also the kernel, virtual machines, proofs, fuzzing,
#                            all claims, the lab, the book and the Python package. Run it as root: it installs the Debian
#                            packages that it needs and loads the algorithms into the running kernel. It builds two Rust
#                            tools once, into target/tools, and rustup installs the oldest Rust that Cargo.toml declares.
#                            It builds a kernel for the host linux (3 GB of disk). Takes 45 to 60 minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
step() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }

# The crates and features that build without further packages.
portable=(--workspace --exclude knee-kernel --exclude knee-testbed --exclude knee-vm --exclude knee-py
	--exclude knee-linux --exclude knee-linux-guest --no-default-features --features knee/portable,knee-fluid/default)

without_privileges() {
	step "format and lints"
	! command -v python3 >/dev/null || { scripts/language.py && scripts/check-cycles.py; }
	cargo fmt --all --check
	cargo clippy --locked "${portable[@]}" --all-targets --quiet -- -D warnings

	step "build of the tests"
	cargo test --locked "${portable[@]}" --quiet --no-run

	step "tests"
	cargo test --locked "${portable[@]}" --quiet
	echo "all passed, after $SECONDS s; scripts/test.sh --all also tests the kernel, the lab and Python"
}

everything() {
	step "packages"
	scripts/install-packages.sh gcc libc6-dev clang-19 clang-format-19 \
		libclang-rt-19-dev libelf-dev zlib1g-dev pkg-config make iproute2 jq

	step "the lab's page, which the programs contain"
	scripts/test-web.sh build

	step "format and lints"
	scripts/language.py
	scripts/check-cycles.py
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

	step "the oldest Rust that Cargo.toml declares"
	scripts/check-rust-version.sh

	step "licences and sources of dependencies"
	scripts/check-dependencies.sh

	step "C sources"
	scripts/check-c.sh

	step "proof of no runtime errors: the lemmas, and the files without a recorded proof"
	scripts/install-packages.sh frama-c-base why3 z3
	KNEE_PROVE_BUDGET=180 scripts/prove.sh --due

	step "fuzzing: calls of every algorithm, under clang's sanitizers"
	scripts/fuzz.sh calls

	step "tests"
	cargo test --locked --workspace --quiet
	cargo test --locked --workspace --quiet --test newcomer -- --ignored

	step "speed: instructions per packet, compared with bench/instructions.tsv"
	scripts/bench-instructions.sh

	step "documentation"
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

	step "the first result: the README's command, and what its build says about the commands that it lacks"
	scripts/test-first-result.sh

	step "recipes of CONTRIBUTING.md, in a scratch tree"
	scripts/test-recipes.sh

	# The tests' own build: it checks its assertions too, and another one would take minutes.
	local knee=${CARGO_TARGET_DIR:-target}/debug/knee

	step "recorded claims of the papers, and the goals of Ebb"
	# The reports are kept there, each with its figures.
	local out=${CARGO_TARGET_DIR:-target}/reports
	rm -rf "$out"
	mkdir -p "$out"
	local paper
	for paper in chd delay-aimd htcp hd others ebb; do
		"$knee" reproduce "$paper" --out "$out/$paper"
	done
	# Its paths are fast and its runs long: one repetition is enough.
	"$knee" reproduce ftcp --repeat 1 --out "$out/ftcp"

	step "the lab: the module against the native build, the page in a browser"
	scripts/test-web.sh run

	step "documentation: generated blocks"
	scripts/update-docs.sh --check "$knee" "$out"

	step "book: every page, every link"
	scripts/book.sh

	step "the host vm"
	scripts/test-vm.sh

	step "the host linux: its kernel, its tests, the short claims"
	scripts/test-linux.sh "$out/linux"

	step "claims over QUIC: those of the short form, in virtual time"
	"$knee" reproduce chd --host quic --short --claim all --out "$out/hosts"

	step "the Python package"
	scripts/test-python.sh

	step "charts in JupyterLab and marimo"
	scripts/test-notebooks.sh

	step "criteria of RFC 9743: the quick form for every algorithm, compared with the expected verdicts"
	"$knee" evaluate --all --quick --out "$out/scorecard"

	step "tutorial: every command"
	scripts/tutorial.sh

	echo "all passed, after $SECONDS s"
}

case "$*" in
"") without_privileges ;;
--all) everything ;;
*)
	echo "usage: scripts/test.sh [--all]" >&2
	exit 2
	;;
esac
