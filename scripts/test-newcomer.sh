#!/usr/bin/env bash
# Follows the documentation on a clean Debian, as a newcomer does. Run it as root.
# It runs every command of the install page, the README and the first tutorial, as printed, then builds and imports the
# Python wheel.
#
#   scripts/test-newcomer.sh [SUITE ...]      bookworm and trixie, unless suites are named
#
# Each suite has a root of its own, made by debootstrap, with a clone of the last commit. Packages come only from the
# `sudo apt-get install` lines of the pages, in their order. All other commands run as an unprivileged user without a
# network; the Rust toolchain and the crates of this machine are there, read-only. The script lists commands that need
# root or a second machine, and does not run them. It prints one line for each command. Exit code 1: at least one failed.
# Environment: KNEE_NEWCOMER_PAGES, the pages; KNEE_NEWCOMER_ONLY, a pattern (grep -E) of the commands to run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/newcomer
read -ra pages <<<"${KNEE_NEWCOMER_PAGES:-docs/how-to/install.md README.md docs/tutorials/first-experiment.md}"

if [[ ${1:-} != in-namespace ]]; then
	[[ $EUID -eq 0 ]] || { echo "run this as root: debootstrap and chroot need it" >&2; exit 1; }
	scripts/install-packages.sh debootstrap debian-archive-keyring util-linux iproute2 git python3-pip
	[[ $# -gt 0 ]] || set -- bookworm trixie
	mkdir -p "$work"
	status=0 child=
	folder=$(mktemp -d "$work/XXXXXX")
	# Mounts and processes live in namespaces of their own, which end with the child: what remains is one folder.
	trap 'trap "" INT TERM HUP
		[[ -z $child ]] || kill -KILL "$child" 2>/dev/null || true
		[[ -z $child ]] || wait "$child" 2>/dev/null || true
		rm -rf --one-file-system "$folder"' EXIT
	trap 'exit 130' INT TERM HUP
	for suite in "$@"; do
		echo "== Debian $suite"
		unshare --mount --pid --fork --kill-child --propagation private \
			"$0" in-namespace "$suite" "$folder/$suite" </dev/null &
		child=$!
		wait "$child" || status=1
		child=
		rm -rf --one-file-system "${folder:?}/$suite"
	done
	exit "$status"
fi

suite=$2 root=$3 log=$work/$2.log
: >"$log"
debootstrap --variant=minbase --cache-dir="$(mkdir -p "$work/cache" && echo "$work/cache")" "$suite" "$root" >>"$log" 2>&1 ||
	{ tail -n 5 "$log" >&2; echo "FAILED debootstrap: $log"; exit 1; }
readonly_bind() { mkdir -p "$2" && mount --bind "$1" "$2" && mount -o remount,bind,ro "$2"; }
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/99-yes"
chroot "$root" useradd --create-home --shell /bin/bash newcomer
home=$root/home/newcomer
readonly_bind "$(rustc --print sysroot)" "$root/opt/rust"
readonly_bind "${CARGO_HOME:-$HOME/.cargo}/registry" "$home/.cargo/registry"
# `knee vm fetch` and pip find here what they would fetch from a network.
kernels=${XDG_CACHE_HOME:-$HOME/.cache}/knee/kernels
mkdir -p "$home/.cache/knee/kernels"
find "$kernels" -maxdepth 1 -name 'linux-image-*' -exec cp -r -t "$home/.cache/knee/kernels" {} + 2>>"$log" || true
pip download --quiet --disable-pip-version-check --no-deps --dest "$root/opt/wheels" 'maturin>=1.8,<2' >>"$log" 2>&1 ||
	echo "no maturin for the wheel: $log"
git clone --quiet --bare "file://$repository" "$root/srv/knee.git"
git -C "$root/srv/knee.git" update-ref HEAD "$(git -C "$repository" rev-parse HEAD)"
url=$(cat "${pages[@]}" 2>/dev/null | grep -oE '^git clone [^ ]+' | head -n 1 | cut -d' ' -f3 || true)
printf '[url "/srv/knee.git"]\n\tinsteadOf = %s\n[safe]\n\tdirectory = *\n' "${url:-https://knee.invalid}" >"$home/.gitconfig"
chroot "$root" chown -R newcomer: /srv/knee.git
find "$root/home/newcomer" -xdev -path "$home/.cargo/registry" -prune -o -exec chown -h --reference="$home" {} +

as_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@" >>"$log" 2>&1; }
# Runs one command in a shell that has the folder and the variables which the command before left.
as_user() {
	printf '%s\n' "$1" >"$root/tmp/command"
	unshare --net bash -c 'ip link set lo up; exec "$@"' - chroot --userspec=newcomer "$root" /usr/bin/env -i \
		HOME=/home/newcomer USER=newcomer LANG=C.UTF-8 PATH=/home/newcomer/.cargo/bin:/opt/rust/bin:/usr/bin:/bin \
		CARGO_NET_OFFLINE=true PIP_NO_INDEX=1 PIP_FIND_LINKS=/opt/wheels bash -c '
			cd
			[[ ! -f ~/.state ]] || source ~/.state
			set -e
			source /tmp/command
			wait
			{ declare -px | grep -v "declare -[a-z]*r"; printf "cd %q\n" "$PWD"; } >~/.state' </dev/null >>"$log" 2>&1
}
failed=0
# Prints the outcome of a command; the log has its output.
step() {
	local where=$1 began=$SECONDS code=0 shown
	shift
	shown=${2//$'\n'/ …}
	printf '\n$ %s\n' "$2" >>"$log"
	"$@" || code=$?
	if [[ $code -eq 0 ]]; then
		printf 'ok      %5d s  %s: %s\n' $((SECONDS - began)) "$where" "${shown:0:110}"
	else
		printf 'FAILED  %5d s  %s: %s\n                 %s\n' $((SECONDS - began)) "$where" "${shown:0:110}" "$(tail -n 1 "$log")"
		failed=1
	fi
}
apt() { as_root bash -c "${1//sudo /}"; } # the line as printed

# The commands of a page's `sh` blocks: "run" or why not, a tab, and the command with its further lines. A file block of
# the tutorial becomes one command that writes the file.
commands_of() {
	awk '
		function out(kind, text) { printf "%s\t%s%c", kind, text, 0 }
		/^<!-- file: / { file = $3; next }
		/^<!-- root -->$/ { privileged = 1; next }
		/^```/ && inside {
			if (file) out("run", "cat >" file " <<\"END_OF_FILE\"\n" body "END_OF_FILE")
			else { if (body != "") commands[++n] = body; for (i = 1; i <= n; i++) out(privileged ? "root" : "run", commands[i]) }
			inside = n = privileged = 0; file = body = ""; next
		}
		/^```(sh|c)$/ && !inside { if ($0 == "```sh" || file) inside = 1; next }
		!inside { next }
		file { body = body $0 "\n"; next }
		!NF || /^#/ || /^[ \t]+#/ { next }
		/^knee (kernel load|trace|testbed)/ { privileged = 1 }
		{ body = body (body == "" ? "" : "\n") $0; if ($0 !~ /\\$/) { commands[++n] = body; body = "" } }
	' "$1"
}

step "packages" apt "apt-get update"
if ! grep -qs '^git clone' "${pages[@]}"; then
	# No page clones yet: the README names git and a C compiler in a sentence.
	step "packages" apt "apt-get install git gcc"
	step "clone" as_user "git clone -q /srv/knee.git knee && cd knee"
fi
for page in "${pages[@]}"; do
	[[ -f $page ]] || { echo "absent           $page"; continue; }
	# A page that clones starts in the home folder, any other one in the clone.
	grep -qs '^git clone' "$page" && start='~' || start='~/knee'
	as_user "cd $start" || true
	while IFS=$'\t' read -r -d '' kind command; do
		case $command in
		"sudo apt-get "* | "apt-get "*) step "$page" apt "$command"; continue ;;
		"sudo "* | "scripts/test.sh --all"*) kind=root ;;
		*rustup* | *"knee lab"* | *iperf3* | *crates.io* | xdg-open*) kind="other machine" ;;
		esac
		[[ $command =~ ${KNEE_NEWCOMER_ONLY:-.} ]] || kind="not wanted"
		if [[ $kind == run ]]; then
			step "$page" as_user "$command"
		else
			echo "skipped ($kind)  $page: ${command%%$'\n'*}"
		fi
	done < <(commands_of "$page")
done
step "wheel" as_user 'cd ~/knee && python3 -m venv ~/wheel && ~/wheel/bin/pip install --quiet . && cd ~ &&
	~/wheel/bin/python -c "import knee; assert knee.run(\"knee/scenarios/chd/coexistence.toml\", repeat=1).goodput()"'
echo "log: $log"
exit "$failed"
