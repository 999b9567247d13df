#!/usr/bin/env bash
# Runs every command of docs/tutorials/first-experiment.md in this repository, as the reader would; those that need root, only as root.
# What they write goes into memory and is gone afterwards: the folder is covered by an overlay that only this script's
# processes see. So what the tests have built is not built again: the page's first build has other features, and makes only
# the crates anew that depend on them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ${1:-} != in-overlay ]]; then
	scripts/install-packages.sh util-linux
	# The page's first build needs no packages. Here they may be there, so that the build alone does not show it.
	if cargo tree --locked -p knee --no-default-features --features quic --edges normal,build --prefix none |
		grep -E '^(libbpf-sys|knee-kernel) '; then
		echo "the tutorial's first build needs packages that its page names later" >&2
		exit 1
	fi
	namespaces=(--mount)
	if ((EUID != 0)); then
		namespaces+=(--user --map-root-user)
		# Packages cannot be installed in there.
		read -ra packages < <(sed -n 's/^sudo apt-get install //p' docs/tutorials/first-experiment.md)
		scripts/install-packages.sh "${packages[@]}"
	fi
	exec unshare "${namespaces[@]}" scripts/tutorial.sh in-overlay "$EUID"
fi
user=$2
repository=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
memory=$target/tutorial
mkdir -p "$memory"
mount -t tmpfs tutorial "$memory"
mkdir "$memory/written" "$memory/work"
mount -t overlay -o "lowerdir=$repository,upperdir=$memory/written,workdir=$memory/work" tutorial "$repository"

# Each block of the page becomes what the comment above it says: a file, or commands. Packages are installed where the page
# says so, those that are missing.
awk -v user="$user" '
	/^<!-- file: / { file = $3; next }
	/^<!-- root -->$/ { privileged = 1; next }
	/^```$/ && inside { inside = 0; if (file) { print "END_OF_FILE"; file = "" } else if (skip) { print ":" } privileged = skip = 0; next }
	/^```(sh|c)$/ && !inside {
		inside = 1
		if (file) print "cat >" file " <<'"'END_OF_FILE'"'"
		else if (privileged && user != 0) skip = 1
		next
	}
	inside && file { print; next }
	inside && !skip && NF { quoted = $0; gsub(/'"'"'/, "'"'\\\\''"'", quoted); print "echo '"'"'$ " quoted "'"'"'"; sub(/^sudo apt-get install/, "scripts/install-packages.sh"); print }
' docs/tutorials/first-experiment.md >"$memory/tutorial.sh"

cd "$repository"
# The page says where it is by default.
export PATH=$target/debug:$PATH
bash -euo pipefail "$memory/tutorial.sh"
echo "the tutorial's commands work"
