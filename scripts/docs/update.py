"""Writes the generated parts of README.md and docs/; scripts/update-docs.sh says how to call it.

A block is everything between two lines:

    <!-- generated: NAME -->
    <!-- end of generated: NAME -->

A new page needs only the first line. NAME is one of

    parameters        page of an algorithm: its parameters
    plots             page of an algorithm: alone, and with NewReno
    verdicts          page of a paper: its claims
    linux             page of a paper: its claims on the host linux
    claims            docs/evidence/results.md: claims that hold, by host
    sums-of-claims    README.md: numbers of claims that hold
    criteria          docs/reference/criteria.md: every criterion
    scorecard         docs/evidence/scorecard.md: verdicts in the simulator
    scorecard-linux   docs/evidence/scorecard.md: verdicts on the host linux
    scorecard-noise   docs/evidence/scorecard.md: verdicts that noise changes
    goals-noise       docs/evidence/papers/ebb.md: verdicts that noise changes
    locks, locks-largest, locks-causes
                      docs/evidence/map-of-locks.md: paths on which noise changes results
    originals, originals-kernels
                      docs/evidence/originals.md: algorithms compared with the kernel's own
    figures N ...     page of a paper: these figures
    commands          docs/reference/cli.md: every command, from `knee markdown`
    metrics           docs/reference/metrics.md: every metric, from `knee metrics`
    columns TABLE     docs/reference/results.md: columns of a table, from its definition
    keys TABLE        docs/reference/scenario.md: keys of a table, from `knee markdown TABLE`
    python-api        docs/reference/python.md: the package, from its sources
    instructions      docs/evidence/speed.md: instructions per packet

A value in prose is within one line, not at its beginning, with its number of decimals:

    CHD uses <!-- value: claims.C1.measured 0 -->79<!-- end --> % of capacity.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import columns
import python_api
import records
from records import table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ALGORITHMS = DOCS / "reference/algorithms"
PAPERS = DOCS / "evidence/papers"
SCENARIOS = ROOT / "scenarios"

# Repetitions, where not those of the scenarios; scripts/test.sh has the same.
REPEAT = {"ftcp": 1}
# Bins of the algorithms' plots: finer ones double the size of the files.
BIN = "200ms"
PLOTS = {
    "alone": ("alone.toml", ("cwnd", "queue")),
    "with-newreno": ("beside-newreno.toml", ("goodput", "queue")),
}
# Sources that read environment variables which users set.
READERS = ("crates/*/src/**/*.rs", "crates/*/*.rs", "python/knee/*.py")
# Variables that the build or the fuzzer sets for itself.
INTERNAL = {"KNEE_COMMIT", "KNEE_FUZZ_TARGET", "KNEE_LIBBPF"}

NEW_PAGE = """\
# {name}

For people who use, compare or change {name}. You need TCP's terms: window, slow start, loss
recovery.

{summary}

**Published in** {source}

## Parameters

<!-- generated: parameters -->

## Behaviour

<!-- generated: plots -->
"""


def fail(message: str) -> NoReturn:
    """Ends the program with a message."""
    sys.exit(f"update-docs: {message}")


def relative(path: Path) -> str:
    """The path as messages show it."""
    return str(path.relative_to(ROOT))


def number(x: float | None) -> str:
    """Three decimals below 100, none above."""
    if x is None:
        return "–"  # noqa: RUF001
    return str(round(x)) if abs(x) >= 100 else f"{round(x, 3):g}"


def cell(text: str) -> str:
    """Text that does not end a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


class Program:
    """The program `knee`, and where its runs go."""

    def __init__(self, knee: str | None, reports: str | None, work: Path) -> None:
        """The program `knee`, or one that is built here."""
        self.knee = str(Path(knee).resolve()) if knee else self.built()
        self.reports = Path(reports).resolve() if reports else work / "reports"
        self.work = work
        self.reports.mkdir(parents=True, exist_ok=True)
        self.algorithms: dict[str, dict[str, Any]] = {
            a["name"]: a for a in json.loads(self.run("list", "--format", "json"))["algorithms"]
        }

    @staticmethod
    def built() -> str:
        """Builds the program with all its commands."""
        subprocess.run(
            ["cargo", "build", "--profile", "quick", "--locked", "--quiet", "-p", "knee"],
            cwd=ROOT,
            check=True,
        )
        target = os.environ.get("CARGO_TARGET_DIR", "target")
        return str((ROOT / target / "quick/knee").resolve())

    def run(self, *words: str) -> str:
        """Runs a command; gives its output."""
        done = subprocess.run(
            [self.knee, *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            fail(f"knee {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def claims(self, paper: str) -> tuple[list[dict[str, Any]], Path]:
        """The verdicts on a paper's claims, and the folder of its figures."""
        out = self.reports / paper
        if not (out / "claims.json").exists():
            repeat = ["--repeat", str(REPEAT[paper])] if paper in REPEAT else []
            self.run("reproduce", paper, *repeat, "--out", str(out))
        return json.loads((out / "claims.json").read_text())["claims"], out / "figures"


# Blocks.


def parameters(algorithm: dict[str, Any]) -> str:
    """The table of an algorithm's parameters."""
    parts = ["None."]
    if algorithm["params"]:
        rows = [
            [
                f"`{p['name']}`" + (f" (FreeBSD: `{p['alias']}`)" if p["alias"] else ""),
                ", ".join(f"`{c}`" for c in p["choices"])
                or f"`{p['typed']['min']}` to `{p['typed']['max']}`",
                f"`{p['typed']['default']}`",
                cell(p["help"]),
                cell(p["source"]),
            ]
            for p in algorithm["params"]
        ]
        head = ["parameter", "range", "default", "meaning", "source of the default"]
        parts = [table(head, rows)]
    for title, key in (("Conditions", "rules"), ("Observed values", "observes")):
        if algorithm[key]:
            parts.append(f"{title}: {', '.join(f'`{of}`' for of in algorithm[key])}.")
    return "\n\n".join(parts)


def plots(program: Program, name: str) -> tuple[str, dict[Path, bytes]]:
    """The section on an algorithm's behaviour, and its figures."""
    runs: dict[str, dict[str, Any]] = {}
    files: dict[Path, bytes] = {}
    for case, (scenario, figures) in PLOTS.items():
        out = program.work / f"{name}-{case}"
        settings = ["--set", f"flow.0.cc={name}", "--set", f"record.bin={BIN}"]
        program.run("run", f"scenarios/book/{scenario}", *settings, "--out", str(out))
        runs[case] = json.loads((out / "summary.json").read_text())["runs"][0]
        for figure in figures:
            drawn = (out / "figures" / f"{figure}.svg").read_bytes()
            files[ALGORITHMS / "figures" / f"{name}-{case}-{figure}.svg"] = drawn

    def goodput(case: str, flow: int) -> str:
        return f"{runs[case]['flows'][flow]['goodput_bps'] / 1e6:.2f} Mbit/s"

    def delay(case: str) -> str:
        return f"mean queueing delay {runs[case]['queue']['delay']['mean_ms']:.1f} ms"

    def images(case: str) -> str:
        titles = {"cwnd": "congestion window", "queue": "queueing delay", "goodput": "goodput"}
        return "\n\n".join(
            f"![{name}: {titles[figure]}](figures/{name}-{case}-{figure}.svg)"
            for figure in PLOTS[case][1]
        )

    dropped = runs["alone"]["queue"]["dropped_pkts"]
    shared = f"{goodput('with-newreno', 0)}, NewReno {goodput('with-newreno', 1)}"
    text = f"""\
10 Mbit/s, 40 ms, 84 packets of drop-tail queue (2.5 times the bandwidth-delay product), 60 s,
in the simulator with the default parameters.

### Alone

Goodput {goodput("alone", 0)}, {delay("alone")}, {dropped} packets dropped.

{images("alone")}

### With NewReno, which joins after 10 s

Goodput {shared} (each over its life), {delay("with-newreno")}.

{images("with-newreno")}

To repeat the runs:

```sh
knee run scenarios/book/alone.toml --set flow.0.cc={name}
knee run scenarios/book/beside-newreno.toml --set flow.0.cc={name}
```"""
    return text, files


def verdicts(claims: list[dict[str, Any]]) -> str:
    """The table of a paper's claims, and the explanations of those that fail."""

    def accepted(of: dict[str, Any]) -> str:
        low, high = of["accepted"]
        if low is None:
            return f"at most {number(high)}"
        return f"at least {number(low)}" if high is None else f"{number(low)} to {number(high)}"

    def measured(of: dict[str, Any]) -> str:
        p = of["measured"]
        spread = f" [{number(p['p20'])}, {number(p['p80'])}]" if p["n"] > 1 else ""
        return number(p["p50"]) + spread

    def verdict(claim: dict[str, Any]) -> str:
        if claim["holds"]:
            return "holds"
        shown = claim["cause"] and claim["cause"]["shown"]
        return "**fails, explained**" if shown else "**fails, unexplained**"

    head = ["claim", "figure", "statement", "paper", "accepted", "measured", "verdict"]
    rows = [
        [
            c["id"],
            c["figure"],
            cell(c["statement"]),
            cell(c["paper_value"]),
            accepted(c),
            cell(f"{measured(c)} ({c['unit']})"),
            verdict(c),
        ]
        for c in claims
    ]
    most = max(c["measured"]["n"] for c in claims)
    how = (
        "Measured: one repetition, simulator."
        if most == 1
        else f"Measured: median [20th, 80th percentile] of up to {most} repetitions, simulator."
    )
    parts = [table(head, rows), how]
    for claim in claims:
        cause = claim["cause"]
        if not claim["holds"] and cause and cause["shown"]:
            way = f"Run with {cause['changes']}" if cause["changes"] else "Derived"
            parts.append(
                f"**{claim['id']}: explanation.** {' '.join(cause['statement'].split())}. "
                f"{way}: {measured(cause)} ({cause['unit']}), accepted {accepted(cause)}."
            )
    return "\n\n".join(parts)


def figures(paper: str, numbers: list[str], drawn: Path) -> tuple[str, dict[Path, bytes]]:
    """Figures of a paper, side by side in the book."""
    names = [f"{paper}-figure-{n}.svg" for n in numbers]
    images = [
        f'<img src="figures/{name}" alt="{paper}: Figure {n}" width="400">'
        for n, name in zip(numbers, names, strict=True)
    ]
    files = {PAPERS / "figures" / name: (drawn / name).read_bytes() for name in names}
    return "\n".join(['<div class="figures">', *images, "</div>"]), files


# Instructions per packet.


def counts(name: str) -> dict[str, int]:
    """The numbers of a table in bench/, by case."""
    lines = (ROOT / f"bench/{name}.tsv").read_text().splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {case: int(count) for case, count in rows}


def instructions() -> str:
    """Instructions per packet of each case, and those of the engine with shortcuts."""
    now, before = counts("instructions"), counts("instructions-with-shortcuts")
    rows = [
        f"| `{case}` | {before[case]} | {count} | {count / before[case]:.2f} |"
        for case, count in now.items()
    ]
    return "\n".join(["| case | with shortcuts | now | ratio |", "|---|---|---|---|", *rows])


def metrics(listed: list[dict[str, Any]]) -> str:
    """The table of metrics, as `knee metrics --format json` lists them."""
    rows = [
        [
            f"`{m['name']}`",
            m["of"],
            m["unit"],
            "yes" if m["windowed"] else "",
            ", ".join(m["appears"]),
            cell(m["meaning"]),
        ]
        for m in listed
    ]
    return table(["metric", "of", "unit", "window", "in", "meaning"], rows)


# Values.


def listed(words: list[str]) -> str:
    """Words with commas and `and`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def values(program: Program) -> dict[str, Any]:
    """The values that prose can name, from the files that record them."""
    recorded = records.recorded_claims()
    papers = {name: of for name, of in recorded.items() if name not in ("ebb", "others")}
    found: dict[str, Any] = {
        "algorithms.count": len(program.algorithms),
        "papers.count": len(papers),
        "criteria.count": len(records.recorded_criteria()),
    }

    def summary(name: str, claims: list[dict[str, Any]]) -> None:
        failing = [c for c in claims if not c["holds"]]
        explained = sum("cause" in c for c in failing)
        found[f"{name}.count"] = len(claims)
        found[f"{name}.holding"] = len(claims) - len(failing)
        found[f"{name}.explained"] = explained
        found[f"{name}.unexplained"] = len(failing) - explained

    summary("claims", [c for claims in papers.values() for c in claims])
    for paper, claims in recorded.items():
        summary(f"claims.{paper}", claims)
        for claim in program.claims(paper)[0]:
            of = f"claims.{claim['id']}"
            found[f"{of}.paper"] = claim["paper_value"]
            found[f"{of}.measured"] = claim["measured"]["p50"]
            found[f"{of}.p20"] = claim["measured"]["p20"]
            found[f"{of}.p80"] = claim["measured"]["p80"]
            found[f"{of}.low"], found[f"{of}.high"] = claim["accepted"]
    for case, count in counts("instructions").items():
        found[f"instructions.{case}"] = count
    # Measurements that take other programs, hours or another machine.
    for group, measured in tomllib.loads((ROOT / "bench/measured.toml").read_text()).items():
        found |= {f"{group}.{key}": value for key, value in measured.items()}
    matrix = (DOCS / "reference/supported-kernels.md").read_text()
    rows = re.findall(r"^\| (\d+)\.(\d+)[^|]* \| [^|]+ \| (\d+) of \3 \|$", matrix, re.MULTILINE)
    kernels = [f"{a}.{b}" for a, b in sorted({(int(a), int(b)) for a, b, _ in rows})]
    found["kernels.tested"] = listed(kernels)
    return found


# Pages.

FENCE = re.compile(r"^(```|~~~)")
BEGIN = re.compile(r"^<!-- generated: (.+) -->$")
VALUE = re.compile(r"<!-- value: (\S+)(?: (\d+))? -->.*?<!-- end -->")


def rewritten(
    page: Path, text: str, block: Callable[[str], str], value: Callable[[str, str | None], str]
) -> str:
    """The page's text with its blocks and values as they are now."""
    lines = text.splitlines()
    result: list[str] = []
    at, fenced = 0, False
    while at < len(lines):
        line = lines[at]
        at += 1
        if FENCE.match(line):
            fenced = not fenced
        begin = None if fenced else BEGIN.match(line)
        if begin is None:
            if not fenced:
                if line.startswith("<!-- value: "):
                    fail(f"{relative(page)}: a line that begins with a comment is no text: {line}")
                line = VALUE.sub(
                    lambda m: (
                        f"<!-- value: {m[1]}{f' {m[2]}' if m[2] else ''} -->"
                        f"{value(m[1], m[2])}<!-- end -->"
                    ),
                    line,
                )
            result.append(line)
            continue
        name = begin[1]
        end = f"<!-- end of generated: {name} -->"
        result += [line, "", *block(name).strip("\n").splitlines(), "", end]
        # Old contents go, if the block has an end before the next one begins.
        for to in range(at, len(lines)):
            if lines[to] == end:
                at = to + 1
                break
            if BEGIN.match(lines[to]):
                break
    return "\n".join(result) + "\n"


def environment(page: Path) -> None:
    """The page on the command line names every variable KNEE_* that the programs read."""
    read: set[str] = set()
    for pattern in READERS:
        for file in ROOT.glob(pattern):
            # A variable of the environment is a string of its own, never an identifier.
            read |= set(re.findall(r"\"(KNEE_[A-Z_]+)\"", file.read_text()))
    read -= INTERNAL
    text = page.read_text()
    named = set(re.findall(r"^\| `(KNEE_[A-Z_]+)`", text, re.MULTILINE))
    if read != named:
        fail(f"{relative(page)}: variables differ from those read: {sorted(read ^ named)}")


def generated(program: Program) -> dict[Path, bytes]:
    """All files that have generated parts, as they are to be."""
    files: dict[Path, bytes] = {}
    for name in (p.stem for p in ALGORITHMS.glob("*.md") if p.stem != "README"):
        if name not in program.algorithms:
            fail(f"docs/reference/algorithms/{name}.md: no algorithm has this name")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda name: plots(program, name), program.algorithms)
        behaviour = dict(zip(program.algorithms, made, strict=True))
    for _, drawn in behaviour.values():
        files |= drawn
    known = values(program)
    used: set[tuple[Path, str]] = set()

    def page_of(page: Path, text: str) -> str:
        def block(marker: str) -> str:
            used.add((page, marker))
            name, *words = marker.split()
            if name in ("parameters", "plots") and page.parent == ALGORITHMS:
                algorithm = program.algorithms[page.stem]
                return parameters(algorithm) if name == "parameters" else behaviour[page.stem][0]
            if name in ("verdicts", "figures") and page.parent == PAPERS:
                claims, drawn = program.claims(page.stem)
                if name == "verdicts":
                    return verdicts(claims)
                made, images = figures(page.stem, words, drawn)
                files.update(images)
                return made
            if name == "linux" and page.parent == PAPERS:
                return records.on_linux(page.stem)
            if name in records.BLOCKS:
                return records.BLOCKS[name]()
            if name == "commands":
                return program.run("markdown")
            if name == "keys":
                return program.run("markdown", *words)
            if name == "instructions":
                return instructions()
            if name == "metrics":
                return metrics(json.loads(program.run("metrics", "--format", "json"))["metrics"])
            if name == "columns":
                return columns.columns(ROOT, *words)
            if name == "python-api":
                return python_api.reference(ROOT / "python/knee")
            fail(f"{relative(page)}: nothing generates `{marker}`")

        def value(name: str, decimals: str | None) -> str:
            if name not in known:
                fail(f"{relative(page)}: no value `{name}`: scripts/update-docs.sh --values")
            of = known[name]
            if isinstance(of, int | float) and decimals is not None:
                return f"{of:.{decimals}f}"
            return number(of) if isinstance(of, float) else str(of)

        return rewritten(page, text, block, value)

    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    texts = {page: page.read_text() for page in pages}
    summary = DOCS / "SUMMARY.md"
    for name, algorithm in program.algorithms.items():
        page = ALGORITHMS / f"{name}.md"
        if page not in texts:
            texts[page] = NEW_PAGE.format(**algorithm)
            rows = texts[summary].splitlines()
            last = max(n for n, row in enumerate(rows) if "](reference/algorithms/" in row)
            rows.insert(last + 1, f"  - [{name}](reference/algorithms/{name}.md)")
            texts[summary] = "\n".join(rows) + "\n"
    for page, text in texts.items():
        files[page] = page_of(page, text).encode()
    wanted = [
        (ALGORITHMS / f"{name}.md", of) for name in behaviour for of in ("parameters", "plots")
    ]
    wanted += [(page, "verdicts") for page in PAPERS.glob("*.md")]
    for page, marker in wanted:
        if (page, marker) not in used:
            fail(f"{relative(page)}: no line `<!-- generated: {marker} -->`")
    # The README's figures.
    for figure in sorted((DOCS / "figures").glob("*-figure-*.svg")):
        drawn = program.claims(figure.name.partition("-figure-")[0])[1]
        files[figure] = (drawn / figure.name).read_bytes()
    files[DOCS / "reference/scenario.schema.json"] = program.run("schema").encode()
    environment(DOCS / "reference/cli.md")
    return files


def main() -> None:
    """Writes, checks or lists."""
    words = sys.argv[1:]
    mode = words.pop(0) if words and words[0].startswith("--") else "--write"
    if mode not in ("--write", "--check", "--values") or len(words) > 2:
        sys.exit("usage: scripts/update-docs.sh [--check | --values] [KNEE [REPORTS]]")
    with tempfile.TemporaryDirectory() as work:
        program = Program(words[0] if words else None, words[1] if words[1:] else None, Path(work))
        if mode == "--values":
            for name, value in values(program).items():
                print(f"{name}\t{value}")
            return
        files = generated(program)
    stale = [p for p, made in files.items() if not p.exists() or p.read_bytes() != made]
    kept = [p for folder in (ALGORITHMS, PAPERS) for p in (folder / "figures").glob("*.svg")]
    unused = [p for p in kept if p not in files]
    if mode == "--check":
        for path in sorted([*stale, *unused]):
            print(f"{relative(path)} is stale", file=sys.stderr)
        if stale or unused:
            fail("run scripts/update-docs.sh, and commit what it writes")
        return
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[path])
        print(relative(path))
    for path in unused:
        path.unlink()
        print(f"{relative(path)} (removed)")


if __name__ == "__main__":
    main()
