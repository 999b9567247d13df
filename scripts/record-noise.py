#!/usr/bin/env python3
"""Stores the verdicts of the scorecard and of Ebb's goals with noise, which change with algorithms.

    scripts/record-noise.py KNEE [NAME ...]

KNEE is the program; a NAME is an algorithm, or `goals` for `knee reproduce ebb`. Only their lines
are replaced; without a NAME all, which takes half an hour of two cores. Verdicts go to
bench/noise-scorecard.tsv and bench/noise-goals.tsv; scripts/update-docs.sh makes the tables of
the pages from them. Besides no noise, 100 us and 1 ms there are other seeds without noise: a
verdict that changes with them is not changed by noise.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "docs"))

import records

# Options of `knee evaluate` for each column; `knee reproduce` has no other seeds.
RUNS = {
    "exact": [],
    "other_seeds": ["--set", "seed=1001"],
    "100us": ["--noise", "100us"],
    "1ms": ["--noise", "1ms"],
}

Row = dict[str, str]


def knee(program: str, *words: str) -> None:
    """Runs a command. Exit code 1: a verdict differs from the expected one, or fails."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"knee {' '.join(words)}\n{done.stderr}")


def scorecard(program: str, named: list[str], work: Path) -> list[Row]:
    """The verdicts of the algorithms, or of all."""
    rows: dict[tuple[str, str], Row] = {}
    # With a single algorithm there is no record.toml.
    subjects = named if len(named) != 1 else [*named, *({"newreno", "cubic"} - {*named})]
    for column, options in RUNS.items():
        out = work / column
        which = subjects or ["--all"]
        words = ["evaluate", *which, "--quick", "--keep", str(work / "kept")]
        knee(program, *words, *options, "--out", str(out))
        record = tomllib.loads((out / "record.toml").read_text())
        for name in named or sorted(record):
            for criterion, verdict in record[name].items():
                row = rows.setdefault(
                    (name, criterion), {"algorithm": name, "criterion": criterion}
                )
                row[column] = verdict
    return list(rows.values())


def goals(program: str, work: Path) -> list[Row]:
    """Verdicts and values of Ebb's goals."""
    rows: dict[str, Row] = {}
    for column, options in RUNS.items():
        if column == "other_seeds":
            continue
        out = work / f"goals-{column}"
        knee(program, "reproduce", "ebb", *options, "--out", str(out))
        for claim in json.loads((out / "claims.json").read_text())["claims"]:
            row = rows.setdefault(claim["id"], {"goal": claim["id"], "unit": unit(claim)})
            row[column] = "holds" if claim["holds"] else "fails"
            row[f"measured_{column}"] = " ".join(
                str(round(claim["measured"][p], 4)) for p in ("p20", "p50", "p80")
            )
    return list(rows.values())


def unit(claim: dict[str, Any]) -> str:
    """The unit, on one line."""
    return " ".join(claim["unit"].split())


def main(program: str, named: list[str]) -> None:
    """Measures and stores."""
    algorithms = [name for name in named if name != "goals"]
    with tempfile.TemporaryDirectory() as work:
        if algorithms or not named:
            new = scorecard(program, algorithms, Path(work))
            records.merge(records.NOISE_SCORECARD, new, "algorithm")
        if "goals" in named or not named:
            records.merge(records.NOISE_GOALS, goals(program, Path(work)), "goal")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
