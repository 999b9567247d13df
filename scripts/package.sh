#!/usr/bin/env bash
# Makes the crates and the Debian package that are published.
# They are target/package/*.crate, from which the program is installed for a test, and target/debian/knee_*.deb with the
# program (stripped), manual pages, completions, BPF objects and scenarios; beside each its SHA256SUMS, and with the
# Debian package a list of all that is in the program (SBOM, CycloneDX). cargo-cyclonedx is built once, into target/tools,
# without optimisation.
# Usage: scripts/package.sh [crates|deb [KNEE]]   both without an argument; KNEE is a program that is built already.
# Needs the packages that the kernel host needs to build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
what=${1:-all}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
scripts/install-packages.sh gcc libc6-dev clang-19 libelf-dev zlib1g-dev pkg-config make

if [[ $what != deb ]]; then
	cargo package --locked --workspace --exclude knee-py --exclude knee-fuzz --no-verify
	(cd "$target/package" && sha256sum -- *.crate >SHA256SUMS)
	ls -lh "$target"/package/*.crate
	# As cargo install does once all are published: the program from the packages and nothing else, in one build.
	# (Cargo's own check rebuilds everything for each package.)
	unpacked=$(mktemp -d)
	trap 'rm -rf "$unpacked"' EXIT
	patches=()
	for crate in "$target"/package/*.crate; do
		tar -xzf "$crate" -C "$unpacked"
		name=$(basename "$crate" .crate)
		patches+=(--config "patch.crates-io.${name%-*}.path='$unpacked/$name'")
	done
	cargo install --debug --path "$unpacked/knee-$version" --root "$unpacked/root" "${patches[@]}"
	"$unpacked/root/bin/knee" list >/dev/null
	# Also the documentation's examples of the libraries that applications use.
	cargo test --doc --manifest-path "$unpacked/knee-quic-$version/Cargo.toml" "${patches[@]}"
fi

if [[ $what != crates ]]; then
	scripts/install-packages.sh dpkg-dev llvm-19
	knee=${2:-}
	if [[ -z $knee ]]; then
		cargo build --locked --profile dist -p knee
		knee=$target/dist/knee
	fi
	architecture=$(dpkg --print-architecture)
	root=$target/debian/knee
	rm -rf "$root"
	mkdir -p "$root"/DEBIAN "$root"/usr/{bin,lib/knee/bpf,share/{doc/knee,knee,man/man1}} \
		"$root"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
	install -s "$knee" "$root/usr/bin/knee"
	"$knee" man "$root/usr/share/man/man1"
	gzip -9n "$root"/usr/share/man/man1/*
	"$knee" completions bash >"$root/usr/share/bash-completion/completions/knee"
	"$knee" completions zsh >"$root/usr/share/zsh/vendor-completions/_knee"
	"$knee" completions fish >"$root/usr/share/fish/vendor_completions.d/knee.fish"
	for source in cc/algorithms/*.c; do
		name=$(basename "$source" .c)
		"$knee" kernel export "$name" --out "$root/usr/lib/knee/bpf/$name.bpf.o" >/dev/null
		# A loader needs BTF; DWARF is most of the file.
		llvm-strip-19 --strip-debug "$root/usr/lib/knee/bpf/$name.bpf.o"
	done
	cp -r scenarios "$root/usr/share/knee/"
	cp README.md CHANGELOG.md "$root/usr/share/doc/knee/"
	gzip -9n "$root/usr/share/doc/knee/CHANGELOG.md"
	{
		printf 'The program: MIT OR Apache-2.0. The C of the algorithms (usr/lib/knee/bpf): BSD-2-Clause OR GPL-2.0-only.\n'
		printf 'On Debian systems, Apache-2.0 and GPL-2 are in /usr/share/common-licenses.\n\nMIT:\n\n'
		cat LICENSE-MIT
		printf '\ncc/LICENSE:\n\n'
		cat cc/LICENSE
	} >"$root/usr/share/doc/knee/copyright"
	# dpkg-shlibdeps finds the packages of the shared libraries; it wants a source package next to it.
	mkdir -p "$target/debian/debian"
	printf 'Source: knee\n\nPackage: knee\nArchitecture: any\n' >"$target/debian/debian/control"
	depends=$(cd "$target/debian" && dpkg-shlibdeps -O knee/usr/bin/knee 2>/dev/null | sed 's/^shlibs:Depends=//')
	cat >"$root/DEBIAN/control" <<-END
		Package: knee
		Version: $version
		Architecture: $architecture
		Maintainer: The Knee contributors
		Section: net
		Priority: optional
		Depends: $depends
		Installed-Size: $(du -sk "$root/usr" | cut -f 1)
		Description: delay-based TCP congestion control: simulate, reproduce, use
		 Knee writes each congestion control algorithm once, in freestanding C, and runs it in a
		 deterministic simulator, in the unpatched Linux kernel (eBPF) and in QUIC.
	END
	dpkg-deb --root-owner-group --build "$root" "$target/debian/knee_${version}_$architecture.deb"
	cyclonedx=$target/tools/bin/cargo-cyclonedx
	[[ -x $cyclonedx ]] || cargo install cargo-cyclonedx --version 0.5.9 --locked --quiet --debug \
		--root "$target/tools" --target-dir "$target/tools/target"
	# It writes next to the manifest of each package of the workspace.
	sbom=knee_${version}_$architecture.cdx
	"$cyclonedx" cyclonedx --manifest-path crates/knee/Cargo.toml --format json --override-filename "$sbom"
	# Without this folder's name.
	sed "s|$PWD|.|g" "crates/knee/$sbom.json" >"$target/debian/$sbom.json"
	find crates bench -name "$sbom.json" -delete
	(cd "$target/debian" && sha256sum -- *.deb *.cdx.json >SHA256SUMS)
	ls -lh "$root/usr/bin/knee" "$target"/debian/*.deb "$target/debian/$sbom.json"
fi
