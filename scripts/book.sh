#!/usr/bin/env bash
# Builds the documentation as a book: target/book/index.html. Adds to each algorithm's page its parameters and what it
# does alone and beside NewReno, to each paper's page its verdicts and figures, to the lab's page its screenshots, and
# checks every link.
# Usage: scripts/book.sh [KNEE [REPORTS]]   KNEE is the program to run; without it, a release build is made. REPORTS is a
# folder with what `knee reproduce PAPER --out REPORTS/PAPER` wrote; papers that are not there are run. Where
# scripts/test-web.sh has left no screenshots, it is run.
# Needs jq. mdbook is built once, into target/tools, without optimisation: it is run once or twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
scripts/install-packages.sh jq
if [[ $# -gt 0 ]]; then
	knee=$1
else
	cargo build --profile quick --locked --quiet -p knee --no-default-features
	knee=$target/quick/knee
fi
mdbook=$target/tools/bin/mdbook
[[ -x $mdbook ]] || cargo install mdbook --version 0.5.4 --locked --quiet --debug \
	--no-default-features --features search --root "$target/tools" --target-dir "$target/tools/target"

src=$target/book-src
rm -rf "$src"
cp -r docs "$src"
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
"$knee" list --format json >"$runs/list.json"
mapfile -t algorithms < <(jq -r '.algorithms[].name' "$runs/list.json")

# The table of an algorithm's parameters, as Markdown.
parameters() {
	jq -r --arg name "$1" '
		def text: gsub("\\|"; "\\|");
		.algorithms[] | select(.name == $name) |
		(if .params == [] then "None." else
			"| parameter | range | default | meaning | source of the default |", "|---|---|---|---|---|",
			(.params[] |
				(if .choices == [] then "`\(.typed.min)` to `\(.typed.max)`"
				 else [.choices[] | "`\(.)`"] | join(", ") end) as $range |
				"| `\(.name)`\(if .alias then " (FreeBSD: `\(.alias)`)" else "" end) | \($range) | `\(.typed.default)` | \(.help | text) | \(.source | text) |")
		end),
		(if .rules == [] then empty else "", "Conditions: \([.rules[] | "`\(.)`"] | join(", ")).", "" end),
		(if .observes == [] then empty else "", "Observed values: \([.observes[] | "`\(.)`"] | join(", "))." end)
	' "$runs/list.json"
}

# Runs the algorithm in both scenarios, keeps the figures, prints the section.
behaviour() {
	local name=$1 figures=$src/reference/algorithms/figures
	"$knee" run scenarios/book/alone.toml --set "flow.0.cc=$name" --out "$runs/$name-alone" >/dev/null 2>&1
	"$knee" run scenarios/book/beside-newreno.toml --set "flow.0.cc=$name" --out "$runs/$name-beside" >/dev/null 2>&1
	mkdir -p "$figures"
	for run in alone beside; do
		for figure in goodput cwnd queue; do
			cp "$runs/$name-$run/figures/$figure.svg" "$figures/$name-$run-$figure.svg"
		done
	done
	printf '10 Mbit/s, 40 ms, 84 packets of drop-tail queue (2.5 times the bandwidth-delay product), 60 s, '
	printf 'in the simulator with the default parameters.\n\n### Alone\n\n'
	jq -r '.runs[0] | "Goodput \(.flows[0].goodput_bps / 1e6 * 100 | round / 100) Mbit/s, mean queueing delay \(.queue.delay.mean_ms * 10 | round / 10) ms, \(.queue.dropped_pkts) packets dropped."' "$runs/$name-alone/summary.json"
	printf '\n![congestion window](figures/%s-alone-cwnd.svg)\n\n![queueing delay](figures/%s-alone-queue.svg)\n' "$name" "$name"
	printf '\n### Beside NewReno, which joins after 10 s\n\n'
	jq -r '.runs[0] | "Goodput \(.flows[0].goodput_bps / 1e6 * 100 | round / 100) Mbit/s, NewReno \(.flows[1].goodput_bps / 1e6 * 100 | round / 100) Mbit/s (each over its life), mean queueing delay \(.queue.delay.mean_ms * 10 | round / 10) ms."' "$runs/$name-beside/summary.json"
	printf '\n![goodput](figures/%s-beside-goodput.svg)\n\n![queueing delay](figures/%s-beside-queue.svg)\n\n' "$name" "$name"
	printf 'To repeat this: `knee run scenarios/book/alone.toml --set flow.0.cc=%s`, ' "$name"
	printf '`knee run scenarios/book/beside-newreno.toml --set flow.0.cc=%s`.\n' "$name"
}

# What stands in the page for a marker.
insert() { # MARKER FILE PAGE
	grep -qxF "<!-- generated: $1 -->" "$3" || { echo "$3: no line \"<!-- generated: $1 -->\"" >&2 && return 1; }
	sed -i -e "/^<!-- generated: $1 -->\$/{r $2" -e 'd}' "$3"
}

for page in "$src"/reference/algorithms/*.md; do
	name=$(basename "$page" .md)
	[[ $name == README ]] || printf '%s\n' "${algorithms[@]}" | grep -qx "$name" || {
		echo "docs/reference/algorithms/$name.md: no algorithm has this name" >&2
		exit 1
	}
done
for name in "${algorithms[@]}"; do
	page=$src/reference/algorithms/$name.md
	if [[ ! -e $page ]]; then
		jq -r --arg name "$name" '.algorithms[] | select(.name == $name) |
			"# \(.name)\n\n\(.summary)\n\n**Published in** \(.source)\n\n## Parameters\n\n<!-- generated: parameters -->\n\n## What it does\n\n<!-- generated: plots -->"' \
			"$runs/list.json" >"$page"
		echo "  - [$name](reference/algorithms/$name.md)" >>"$src/SUMMARY.md"
	fi
	parameters "$name" >"$runs/parameters.md"
	insert parameters "$runs/parameters.md" "$page"
	behaviour "$name" >"$runs/plots.md"
	insert plots "$runs/plots.md" "$page"
done

# A paper's verdicts, from claims.json, as Markdown.
verdicts() {
	jq -r '
		def n: if . == null then "–" elif (. | fabs) >= 100 then round else . * 1000 | round / 1000 end;
		def range: "\(if .[0] == null then "" else .[0] | n end) to \(if .[1] == null then "" else .[1] | n end)";
		def spread: if .n > 1 then "\(.p50 | n) [\(.p20 | n), \(.p80 | n)]" else "\(.p50 | n)" end;
		def text: gsub("\\|"; "\\|") | gsub("\n"; " ");
		def verdict: if .holds then "holds" elif .cause.shown then "**explained**" else "**does not hold**" end;
		"| claim | figure | statement | paper | accepted | measured | verdict |", "|---|---|---|---|---|---|---|",
		(.claims[] | "| \(.id) | \(.figure) | \(.statement | text) | \(.paper_value | text) | \(.accepted | range) | \(.measured | spread) \(.unit | text) | \(verdict) |"),
		"",
		(.claims[] | select(.cause.shown) | "**\(.id) is explained.** \(.cause.statement). \(if .cause.changes == "" then "Derived" else "Run with \(.cause.changes)" end): \(.cause.measured | spread) \(.cause.unit), accepted \(.cause.accepted | range).", "")
	' "$1"
}

# Figures side by side: FOLDER PAPER NUMBER ...
figures() {
	local folder=$1 paper=$2 number
	shift 2
	echo '<div class="figures">'
	for number in "$@"; do
		cp "$folder/figures/$paper-figure-$number.svg" "$src/evidence/papers/figures/"
		printf '<img src="figures/%s-figure-%s.svg" alt="Figure %s">\n' "$paper" "$number" "$number"
	done
	echo '</div>'
}

mkdir -p "$src/evidence/papers/figures"
for page in "$src"/evidence/papers/*.md; do
	paper=$(basename "$page" .md)
	reports=${2:-$runs}
	if [[ ! -e $reports/$paper/claims.json ]]; then
		reports=$runs
		"$knee" reproduce "$paper" --out "$runs/$paper" >"$runs/$paper.txt" 2>&1 || {
			cat "$runs/$paper.txt" >&2
			exit 1
		}
	fi
	verdicts "$reports/$paper/claims.json" >"$runs/verdicts.md"
	insert verdicts "$runs/verdicts.md" "$page"
	{ grep -oP '^<!-- generated: figures \K.*(?= -->$)' "$page" || true; } | while read -ra numbers; do
		figures "$reports/$paper" "$paper" "${numbers[@]}" >"$runs/figures.md"
		insert "figures ${numbers[*]}" "$runs/figures.md" "$page"
	done
done

# The lab's views, side by side; each leads to its picture in full size.
page=$src/how-to/teach-with-the-lab.md
read -ra views < <(grep -oP '^<!-- generated: screenshots \K.*(?= -->$)' "$page")
mkdir -p "$src/how-to/screenshots"
for view in "${views[@]}"; do
	[[ -e $target/web/$view.png ]] || scripts/test-web.sh
	cp "$target/web/$view.png" "$src/how-to/screenshots/"
done
{
	echo '<div class="figures">'
	for view in "${views[@]}"; do
		printf '<a href="screenshots/%s.png"><img src="screenshots/%s.png" alt="The lab: %s"></a>\n' "$view" "$view" "$view"
	done
	echo '</div>'
} >"$runs/screenshots.md"
insert "screenshots ${views[*]}" "$runs/screenshots.md" "$page"

"$mdbook" build "$src" --dest-dir "$target/book"

# Every page is in the summary, and every link of the pages, and of the README, leads somewhere.
broken=0
complain() {
	echo "$*" >&2
	broken=1
}
while read -r page; do
	[[ $page == SUMMARY.md ]] || grep -qF "($page)" "$src/SUMMARY.md" || complain "docs/SUMMARY.md: $page is missing"
	# The index names those that are not listed on a page of their own.
	[[ $page == */* || $page == SUMMARY.md || $page == README.md ]] ||
		grep -qF "($page)" "$src/README.md" || complain "docs/README.md: $page is missing"
done < <(cd "$src" && find . -name '*.md' -printf '%P\n')
while read -r page; do
	while read -r link; do
		file=${link%%#*}
		anchor=
		[[ $link == *'#'* ]] && anchor=${link#*#}
		to=$(realpath -m --relative-to="$src" "$(dirname "$src/$page")/${file:-$(basename "$page")}")
		[[ -e $src/$to ]] || { complain "docs/$page: $link leads nowhere" && continue; }
		html=$target/book/$(sed -E 's/(^|\/)README\.md$/\1index.md/; s/\.md$/.html/' <<<"$to")
		[[ -z $anchor ]] || grep -qF "id=\"$anchor\"" "$html" || complain "docs/$page: $link: no such heading"
	done < <(sed '/^```/,/^```/d' "$src/$page" | grep -oP '\]\(\K[^)]+(?=\))' | grep -Ev '^https?:' || true)
done < <(cd "$src" && find . -name '*.md' -printf '%P\n')
while read -r link; do
	[[ -e ${link%%#*} ]] || complain "README.md: $link leads nowhere"
done < <(grep -ohP '\]\(\K[^)]+(?=\))' README.md CONTRIBUTING.md | grep -Ev '^https?:')
[[ $broken -eq 0 ]] || exit 1
echo "$target/book/index.html"
