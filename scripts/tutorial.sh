#!/usr/bin/env bash
# Runs every command of the pages in docs/tutorials, as the reader would. Commands that need root run only as root. Those
# that need the Python package run where scripts/test-python.sh has installed it (target/python).
# Usage: scripts/tutorial.sh [KNEE]   With KNEE, a program that is built already with all hosts, nothing is built.
# Files that the commands write stay in memory and vanish afterwards: an overlay that only this script's processes see
# covers the folder. So Cargo does not rebuild the tests' builds. The pages' first build has other features, and
# rebuilds only the crates that depend on them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# In the order in which a reader takes them: later pages use the first page's build.
pages=(docs/tutorials/{first-experiment,your-own-algorithm,reproduce-a-paper,notebook}.md)
if [[ ${1:-} != in-overlay ]]; then
	for page in docs/tutorials/*.md; do
		[[ " ${pages[*]} " == *" $page "* ]] || {
			echo "scripts/tutorial.sh does not run $page" >&2
			exit 1
		}
	done
	scripts/install-packages.sh util-linux
	# The first build needs no packages. Here they may be installed, so that the build alone does not show it.
	if cargo tree --locked -p knee --no-default-features --features portable --edges normal,build --prefix none |
		grep -E '^(libbpf-sys|knee-kernel) '; then
		echo "the tutorial's first build needs packages that its pages name later" >&2
		exit 1
	fi
	namespaces=(--mount)
	if ((EUID != 0)); then
		namespaces+=(--user --map-root-user)
		# Packages cannot be installed in there.
		read -ra packages < <(sed -n 's/^sudo apt-get install //p' "${pages[@]}")
		scripts/install-packages.sh "${packages[@]}"
	fi
	exec unshare "${namespaces[@]}" scripts/tutorial.sh in-overlay "$EUID" "${1:+$(realpath "$1")}"
fi
user=$2
knee=$3
repository=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
memory=$target/tutorial
python=$target/python/bin
[[ -x $python/python3 ]] && "$python/python3" -c 'import knee' 2>/dev/null || python=
mkdir -p "$memory"
mount -t tmpfs tutorial "$memory"
mkdir "$memory/written" "$memory/work"
mount -t overlay -o "lowerdir=$repository,upperdir=$memory/written,workdir=$memory/work" tutorial "$repository"

# Each block of a page becomes a file or commands, as the comment above it says. Packages are installed where the page
# says so, if they are missing.
awk -v user="$user" -v knee="$knee" -v python="$python" '
	/^<!-- file: / { file = $3; next }
	/^<!-- root -->$/ { unless = user != 0; next }
	/^<!-- python -->$/ { unless = python == ""; next }
	/^<!-- python: install -->$/ { unless = 1; next }
	/^```$/ && inside {
		inside = 0
		if (file) { print "END_OF_FILE"; file = "" }
		else if (unless) { print ":"; skipped++ }
		unless = 0
		next
	}
	/^```(sh|c|python|toml)$/ && !inside && (file || $0 == "```sh") {
		inside = 1
		if (file) print "cat >" file " <<'"'END_OF_FILE'"'"
		next
	}
	inside && file { print; next }
	inside && knee != "" && /^cargo build / { next }
	inside && !unless && NF { quoted = $0; gsub(/'"'"'/, "'"'\\\\''"'", quoted); print "echo '"'"'$ " quoted "'"'"'"; sub(/^sudo apt-get install/, "scripts/install-packages.sh"); print }
	END { if (skipped) print "echo \"blocks left out (root, or the Python package): " skipped "\"" }
' "${pages[@]}" >"$memory/tutorial.sh"

cd "$repository"
# The pages take the program from its default place, and add that to the PATH.
program=$target/debug
if [[ -n $knee ]]; then
	program=$memory/bin
	mkdir -p "$program"
	ln -s "$knee" "$program/knee"
	sed -i '/^export PATH=/d' "$memory/tutorial.sh"
fi
export PATH=$program:${python:+$python:}$PATH
bash -euo pipefail "$memory/tutorial.sh"
echo "the tutorials' commands work"
