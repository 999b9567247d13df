#!/usr/bin/env bash
# Runs every command of docs/tutorial.md in a copy of the repository (target/tutorial), as the reader would; those that
# need root, only as root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install-packages.sh clang-19 libelf-dev zlib1g-dev pkg-config qemu-system-x86
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
copy=$target/tutorial
mkdir -p "$copy"
find "$copy" -mindepth 1 -delete
git ls-files -z | tar --null -T - -c | tar -x -C "$copy"
# Another version: both are built in one target folder, and Cargo would take the copy's crates for the repository's.
sed -i 's/^version = "\(.*\)"/version = "\1+tutorial"/' "$copy/Cargo.toml"

# Each block of the page becomes what the comment above it says: a file, or commands.
awk -v root="$(id -u)" '
	/^<!-- file: / { file = $3; next }
	/^<!-- root -->$/ { privileged = 1; next }
	/^```$/ && inside { inside = 0; if (file) { print "END_OF_FILE"; file = "" } else if (skip) { print ":" } privileged = skip = 0; next }
	/^```(sh|c)$/ && !inside {
		inside = 1
		if (file) print "cat >" file " <<'"'END_OF_FILE'"'"
		else if (privileged && root != 0) skip = 1
		next
	}
	inside && file { print; next }
	inside && !skip && NF { quoted = $0; gsub(/'"'"'/, "'"'\\\\''"'", quoted); print "echo '"'"'$ " quoted "'"'"'"; print }
' docs/tutorial.md >"$target/tutorial.sh"

cd "$copy"
# The same target folder, so that dependencies are not built again.
export CARGO_TARGET_DIR=$target PATH=$target/debug:$PATH
bash -euo pipefail "$target/tutorial.sh"
echo "the tutorial's commands work"
