#!/usr/bin/env bash
# Makes what is published: target/package/*.crate, each built from its own package, and target/debian/knee_*.deb with
# the program (stripped), manual pages, completions, BPF objects and scenarios.
# Usage: scripts/package.sh [crates|deb]   both without an argument.
# Needs what the kernel host needs to build. cargo-deb is built once, into target/tools (a few minutes).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
what=${1:-all}
scripts/install-packages.sh gcc libc6-dev clang-19 libelf-dev zlib1g-dev pkg-config make

if [[ $what != deb ]]; then
	cargo package --locked --workspace
	ls -lh "$target"/package/*.crate
fi

if [[ $what != crates ]]; then
	scripts/install-packages.sh dpkg-dev
	export PATH=$target/tools/bin:$PATH
	command -v cargo-deb >/dev/null || cargo install cargo-deb --version 3.7.0 --locked --quiet \
		--root "$target/tools" --target-dir "$target/tools/target"
	cargo build --locked --profile dist -p knee
	knee=$target/dist/knee
	files=$target/dist/package
	rm -rf "$files"
	mkdir -p "$files"/{man,completions,bpf}
	"$knee" man "$files/man"
	for shell in bash zsh fish; do
		"$knee" completions "$shell" >"$files/completions/$shell"
	done
	for source in cc/algorithms/*.c; do
		name=$(basename "$source" .c)
		"$knee" kernel export "$name" --out "$files/bpf/$name.bpf.o" >/dev/null
	done
	cargo deb --locked -p knee --profile dist --no-build --no-strip
	ls -lh "$knee" "$target"/debian/*.deb
fi
