#!/usr/bin/env python3
"""Stores verdicts of the host linux, which take too long for every change.

    knee reproduce PAPER --host linux --claim all --repeat 10 --out REPORTS/PAPER
    scripts/record-linux.py REPORTS/PAPER/claims.json [...]

The measured values go to bench/claims-linux.tsv, from which scripts/update-docs.sh makes the
tables of the papers' pages. `found.linux = "holds"` goes to scenarios/PAPER/claims.toml. A claim
that fails needs its reason there: `found.linux = { fails = "why" }`. The script names such claims,
and exits with 1.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "docs"))

import records

HOLDS = 'found.linux = "holds"\n'
FAILS = "found.linux = { fails"


def with_verdict(block: str, holds: bool) -> str:
    """The text of a claim with its verdict on the host linux; a recorded reason stays."""
    if not holds and FAILS in block:
        return block
    block = re.sub(r"(?m)^found\.linux.*\n", "", block)
    place = re.search(r"(?m)^found\.", block) or re.search(r"(?m)^holds = ", block)
    if not holds or place is None:
        return block
    return block[: place.start()] + HOLDS + block[place.start() :]


def record_in_claims(paper: str, verdicts: dict[str, dict[str, Any]]) -> list[str]:
    """Writes the verdicts into a paper's file; gives the failing claims without a reason."""
    file = records.SCENARIOS / paper / "claims.toml"
    head, *blocks = re.split(r"(?m)^(?=\[\[claim\]\]$)", file.read_text())
    unexplained = []
    for at, block in enumerate(blocks):
        name = re.search(r'(?m)^id = "(.*)"', block)
        verdict = verdicts.get(name[1]) if name else None
        if verdict is None:
            continue
        blocks[at] = with_verdict(block, verdict["holds"])
        if not verdict["holds"] and FAILS not in blocks[at]:
            unexplained.append(verdict["id"])
    file.write_text(head + "".join(blocks))
    return unexplained


def main(files: list[str]) -> int:
    """Stores the verdicts in `files`."""
    if not files:
        sys.exit(__doc__)
    judged = [
        claim
        for file in files
        for claim in json.loads(Path(file).read_text())["claims"]
        if claim["host"] == "linux" and claim["holds"] is not None
    ]
    records.write_linux_claims(judged)
    unexplained = []
    for paper in sorted({claim["paper"] for claim in judged}):
        of_paper = {claim["id"]: claim for claim in judged if claim["paper"] == paper}
        unexplained += record_in_claims(paper, of_paper)
    for claim in unexplained:
        print(f"{claim} fails: give the reason as {FAILS} = ... }}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
