#!/usr/bin/env bash
# Builds the documentation as a book, target/book/index.html, and checks its pages.
# Every page is listed and says in its first paragraph who it is for; every link leads somewhere. scripts/update-docs.sh
# writes the generated parts of the pages. mdbook is built once, into target/tools, without optimisation: it is run once
# or twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
mdbook=$target/tools/bin/mdbook
[[ -x $mdbook ]] || cargo install mdbook --version 0.5.4 --locked --quiet --debug \
	--no-default-features --features search --root "$target/tools" --target-dir "$target/tools/target"
"$mdbook" build docs --dest-dir "$target/book"

broken=0
complain() {
	echo "$*" >&2
	broken=1
}
# Links and pictures of a page, without those of code blocks.
links() {
	sed '/^```/,/^```/d' "$1" | grep -oP '(\]\(\K[^)]+(?=\))|\bsrc="\K[^"]+)' | grep -Ev '^https?:' || true
}
# Whether the first paragraph below a page's title has `For`.
names_reader() {
	awk '/^# / { titled = 1; next } titled && NF { begun = 1; text = text " " $0 } begun && !NF { exit }
		END { exit text !~ /(^|[^[:alpha:]])For / }' "$1"
}
for page in CONTRIBUTING.md SECURITY.md CHANGELOG.md; do
	names_reader "$page" || complain "$page: the first paragraph does not say who it is for"
done
while read -r page; do
	[[ $page == SUMMARY.md ]] || names_reader "docs/$page" ||
		complain "docs/$page: the first paragraph does not say who it is for"
	[[ $page == SUMMARY.md ]] || grep -qF "($page)" docs/SUMMARY.md || complain "docs/SUMMARY.md: $page is missing"
	while read -r link; do
		file=${link%%#*}
		anchor=
		[[ $link == *'#'* ]] && anchor=${link#*#}
		to=$(realpath -m --relative-to=docs "$(dirname "docs/$page")/${file:-$(basename "$page")}")
		[[ -e docs/$to ]] || { complain "docs/$page: $link leads nowhere" && continue; }
		html=$target/book/$(sed -E 's/(^|\/)README\.md$/\1index.md/; s/\.md$/.html/' <<<"$to")
		[[ -z $anchor ]] || grep -qF "id=\"$anchor\"" "$html" || complain "docs/$page: $link: no such heading"
	done < <(links "docs/$page")
done < <(cd docs && find . -name '*.md' -printf '%P\n' | sort)
for page in README.md CONTRIBUTING.md; do
	while read -r link; do
		[[ -e ${link%%#*} ]] || complain "$page: $link leads nowhere"
	done < <(links "$page")
done
[[ $broken -eq 0 ]] || exit 1
echo "$target/book/index.html"
