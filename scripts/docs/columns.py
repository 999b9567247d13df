"""Tables of columns in docs/reference/results.md, from the definitions in knee-results."""

from __future__ import annotations

import re
from pathlib import Path

from records import table

UNITS = {
    "_bytes_per_s": "bytes/s",
    "_bps": "bit/s",
    "_pkts": "packets",
    "_bytes": "bytes",
    "_us": "µs",
    "_ns": "ns",
    "_s": "s",
}
TYPES = {"U32": "uint32", "U64": "uint64", "F64": "double", "Text": "string", "Bytes": "bytes"}
# A comment, and the code up to the next comment.
ENTRY = re.compile(r"((?:^ *// .*\n)+)((?:(?! *// ).*\n)+)", re.MULTILINE)
TYPE = re.compile(rf"\b(Maybe)?({'|'.join(TYPES)})\b")


def columns(root: Path, name: str) -> str:
    """The columns of a table, as `fn NAME_columns` defines them."""
    sources = [root / f"crates/knee-results/src/{file}.rs" for file in ("tables", "trace")]
    pattern = re.compile(rf"^(?:pub )?fn {name}_columns\b.*?vec!\[\n(.*?)^    \]", re.S | re.M)
    found = [match for file in sources if (match := pattern.search(file.read_text()))]
    if len(found) != 1:
        raise ValueError(f"no function `{name}_columns` in tables.rs or trace.rs")
    body = found[0][1]
    rows = [row(comment, code) for comment, code in ENTRY.findall(body)]
    if not body.lstrip().startswith("// "):
        raise ValueError(f"{name}_columns: the first column has no comment")
    return table(["column", "type", "unit", "meaning"], rows)


def row(comment: str, code: str) -> list[str]:
    """The row of a column."""
    names, kind = re.findall(r'"(\w+)"', code), TYPE.search(code)
    if len(names) != 1 or kind is None:
        raise ValueError(f"a comment belongs to exactly one column: {code}")
    name = names[0]
    text = " ".join(line.strip().removeprefix("// ") for line in comment.splitlines())
    unit, meaning = "", text.removesuffix(".")
    if own := re.match(r"\(([^)]*)\) ", meaning):
        unit, meaning = own[1], meaning[own.end() :]
    else:
        unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    # A phrase begins with a small letter, an abbreviation does not.
    if meaning[1:2].islower():
        meaning = meaning[0].lower() + meaning[1:]
    return [f"`{name}`", TYPES[kind[2]] + (", null" if kind[1] else ""), unit, meaning]
