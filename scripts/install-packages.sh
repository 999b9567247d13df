#!/usr/bin/env bash
# Installs those of the given Debian packages that are missing; needs root for that, and says so.
# Usage: scripts/install-packages.sh PACKAGE...
set -euo pipefail
missing=()
for package in "$@"; do
	dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
		missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0
echo "installing Debian packages: ${missing[*]}"
if [[ $(id -u) -ne 0 ]]; then
	echo "root is needed for that: sudo apt-get install ${missing[*]}" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -qy --no-install-recommends "${missing[@]}"
