#!/usr/bin/env bash
# Builds the script of the notebook's charts (knee.widget) into python/knee/static, from where a wheel takes it.
# Needs Node.js and npm; the rest of the package needs neither.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../web"
command -v npm >/dev/null || {
	echo "npm is missing: apt-get install nodejs npm, or see https://nodejs.org" >&2
	exit 1
}
[[ -d node_modules ]] || npm ci --no-audit --no-fund
npm run --silent widget
