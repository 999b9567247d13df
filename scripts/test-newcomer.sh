#!/usr/bin/env bash
# Follows the documentation on a clean Debian, as a newcomer does. Run it as root.
# It runs every command of the install page, the README and the first tutorial, as printed. The install page builds the
# Python package and the Debian package too.
#
#   scripts/test-newcomer.sh [SUITE ...]      bookworm and trixie, unless suites are named
#
# Each suite has a root of its own, made by debootstrap, which clones the last commit. Packages come only from the
# `sudo apt-get` lines of the pages, in their order, and each of these lines runs as root. All other commands run as an
# unprivileged user. The Rust toolchain and the crates of this machine are there, and nothing in the root changes them.
# The script prints one line for each command. It lists the commands that it skips: those that need root or a second
# machine, and blocks after `<!-- newcomer: skip: REASON -->`. Exit code 1: at least one command failed.
# Environment: KNEE_NEWCOMER_PAGES, the pages; KNEE_NEWCOMER_ONLY, a pattern (grep -E) of the commands to run. Cargo takes
# the variables CARGO_PROFILE_*: with CARGO_PROFILE_RELEASE_LTO=off and CARGO_PROFILE_RELEASE_OPT_LEVEL=0 builds are short.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/newcomer
read -ra pages <<<"${KNEE_NEWCOMER_PAGES:-docs/how-to/install.md README.md docs/tutorials/first-experiment.md}"

if [[ ${1:-} != in-namespace ]]; then
	[[ $EUID -eq 0 ]] || { echo "run this as root: debootstrap and chroot need it" >&2; exit 1; }
	scripts/install-packages.sh debootstrap debian-archive-keyring util-linux git
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
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# The sources of a system that Debian's installer has set up.
printf 'deb http://deb.debian.org/%s main\n' "debian $suite" "debian $suite-updates" "debian-security $suite-security" \
	>"$root/etc/apt/sources.list"
echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/99-yes"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
# Authorities that this machine trusts beyond Debian's: the package ca-certificates adds them to the bundle.
cp -r /usr/local/share/ca-certificates "$root/usr/local/share/" 2>>"$log" || true
chroot "$root" useradd --create-home --shell /bin/bash newcomer
home=$root/home/newcomer
mkdir -p "$root/opt/rust" "$home/.cargo/registry" "$root.written" "$root.work"
mount --bind "$(rustc --print sysroot)" "$root/opt/rust"
mount -o remount,bind,ro "$root/opt/rust"
git clone --quiet --bare "file://$repository" "$root/srv/knee.git"
git -C "$root/srv/knee.git" update-ref HEAD "$(git -C "$repository" rev-parse HEAD)"
chroot "$root" chown -R newcomer: /srv/knee.git /home/newcomer
# This machine's crates, in a layer whose changes stay in the root.
chown --reference="$home" "$root.written"
mount -t overlay -o "lowerdir=${CARGO_HOME:-$HOME/.cargo}/registry,upperdir=$root.written,workdir=$root.work" \
	crates "$home/.cargo/registry"
chroot "$root" chown -R newcomer: /home/newcomer/.cargo/registry/index
find "$home/.cargo/registry" -maxdepth 2 -type d -exec chown --reference="$home" {} +

# Runs a printed line as root, in the clone if there is one.
as_root() {
	chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
		bash -c "cd /home/newcomer/knee 2>/dev/null || cd; ${1//sudo /}" </dev/null >>"$log" 2>&1
}
mapfile -t profile < <(env | grep '^CARGO_PROFILE_' || true)
# Runs one command in a shell that has the folder and the variables which the command before left.
as_user() {
	printf '%s\n' "$1" >"$root/tmp/command"
	chroot --userspec=newcomer "$root" /usr/bin/env -i HOME=/home/newcomer USER=newcomer LANG=C.UTF-8 \
		PATH=/home/newcomer/.cargo/bin:/opt/rust/bin:/usr/bin:/bin "${profile[@]}" bash -c '
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

# The commands of a page's `sh` blocks: "run" or why not, a tab, and the command with its further lines. A file block of
# the tutorial becomes one command that writes the file.
commands_of() {
	awk '
		function out(kind, text) { printf "%s\t%s%c", kind, text, 0 }
		/^<!-- file: / { file = $3; next }
		/^<!-- root -->$/ { kind = "root"; next }
		/^<!-- newcomer: skip: / { kind = $0; gsub(/^<!-- newcomer: skip: | -->$/, "", kind); next }
		/^```/ && inside {
			if (file) out("run", "cat >" file " <<\"END_OF_FILE\"\n" body "END_OF_FILE")
			else { if (body != "") commands[++n] = body; for (i = 1; i <= n; i++) out(kind ? kind : "run", commands[i]) }
			inside = n = 0; kind = file = body = ""; next
		}
		/^```(sh|c)$/ && !inside { if ($0 == "```sh" || file) inside = 1; next }
		!inside { next }
		file { body = body $0 "\n"; next }
		!NF || /^#/ || /^[ \t]+#/ { next }
		/^knee (kernel load|trace|testbed)/ { kind = "root" }
		{ sub(/[ \t]+# .*/, ""); body = body (body == "" ? "" : "\n") $0; if ($0 !~ /\\$/) { commands[++n] = body; body = "" } }
	' "$1"
}

step "packages" as_root "apt-get update"
if ! grep -qs '^git clone' "${pages[@]}"; then
	# No page of these clones: the install page has the packages and the command.
	step "packages" as_root "apt-get install git gcc"
	step "clone" as_user "git clone /srv/knee.git knee"
fi
for page in "${pages[@]}"; do
	# In a new shell, and in the clone if an earlier page has made it.
	as_user 'rm -f ~/.state; [[ ! -d ~/knee ]] || cd ~/knee'
	while IFS=$'\t' read -r -d '' kind command; do
		case $command in
		"git clone "*) [[ ! -d $home/knee ]] || kind="cloned above" ;;
		"sudo apt-get "*) ;;
		"sudo "* | "scripts/test.sh --all"*) kind=root ;;
		esac
		[[ $command =~ ${KNEE_NEWCOMER_ONLY:-.} ]] || kind="not wanted"
		if [[ $kind != run ]]; then
			echo "skipped ($kind)  $page: ${command%%$'\n'*}"
		elif [[ $command == "sudo apt-get "* ]]; then
			step "$page" as_root "$command"
		else
			step "$page" as_user "${command//REPOSITORY-URL//srv/knee.git}"
		fi
	done < <(commands_of "$page")
done
echo "log: $log"
exit "$failed"
