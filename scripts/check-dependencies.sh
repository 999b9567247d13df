#!/usr/bin/env bash
# Checks every dependency: its licence is one that deny.toml allows, its source is crates.io. Needs jq.
# `cargo deny check bans licenses sources` checks the same and more, but takes long to build; it runs instead if it is
# installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if command -v cargo-deny >/dev/null; then
	exec cargo deny --log-level warn check bans licenses sources
fi
mapfile -t allowed < <(sed -n '/^allow = \[/,/^\]/s/^ *"\(.*\)",$/\1/p' deny.toml)
[[ ${#allowed[@]} -gt 0 ]]
# A licence expression is a conjunction of alternatives; one of each must be allowed. Our own C sources are
# "BSD-2-Clause OR GPL-2.0-only".
cargo metadata --locked --format-version 1 | jq -r '
	$ARGS.positional as $allowed |
	def fits: gsub("[()]"; "") | split(" AND ") |
		all(split(" OR |/"; null) | any(rtrimstr("+") as $one | $allowed | index($one) != null));
	[.packages[] |
		(if .license == null then "\(.name) \(.version): no licence"
		 elif (.license | fits | not) then "\(.name) \(.version): licence \(.license)" else empty end),
		(if .source == null or .source == "registry+https://github.com/rust-lang/crates.io-index" then empty
		 else "\(.name) \(.version): from \(.source)" end)] as $wrong |
	if $wrong == [] then "\(.packages | length) packages: licences and sources are as deny.toml allows"
	else $wrong + ["deny.toml does not allow these"] | join("\n") + "\n" | halt_error(1) end
' --args "${allowed[@]}"
