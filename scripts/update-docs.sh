#!/usr/bin/env bash
# Writes the generated parts of the documentation into README.md and docs/.
# They are parameter tables and plots of every algorithm, verdict tables and figures of every paper, the reference of the
# command line and of the Python package, and measured values in prose. scripts/docs/update.py says which markers there
# are.
#
#   scripts/update-docs.sh [KNEE [REPORTS]]           writes the stale files
#   scripts/update-docs.sh --check [KNEE [REPORTS]]   writes nothing; fails and names each stale file
#   scripts/update-docs.sh --values [KNEE [REPORTS]]  lists the values that a page can name
#
# KNEE is a program with all commands; without it, one is built. REPORTS is a folder with the files of `knee reproduce
# PAPER --out REPORTS/PAPER` (ftcp: with --repeat 1); papers that are not there are run, which takes about ten minutes.
# Needs Python 3.11 or newer. scripts/update-figures.sh makes the screenshots.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 scripts/docs/update.py "$@"
