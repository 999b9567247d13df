"""Tables of recorded verdicts: of the papers' claims, and of the criteria of `knee evaluate`."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
EVALUATION = SCENARIOS / "evaluation"

# The hosts with Linux TCP. A claim that several of them judged counts with the first.
LINUX = ("linux", "vm", "kernel")
LINUX_CLAIMS = ROOT / "bench/claims-linux.tsv"
SIGNS = {"passes": "✓", "no worse than the baseline": "≈", "fails": "✗", "informs": "·"}
NOTHING = "–"  # noqa: RUF001

Claims = list[dict[str, Any]]


def read(path: Path) -> dict[str, Any]:
    """The contents of a TOML file."""
    return tomllib.loads(path.read_text())


def recorded_claims() -> dict[str, Claims]:
    """The claims of each paper, as scenarios/PAPER/claims.toml has them, in the claims' order."""
    papers = {f.parent.name: read(f)["claim"] for f in SCENARIOS.glob("*/claims.toml")}

    def first(paper: str) -> tuple[str, int]:
        claim = papers[paper][0]["id"]
        return claim[0], int(claim[1:])

    return {paper: papers[paper] for paper in sorted(papers, key=first)}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [f"| {' | '.join(line)} |" for line in (head, *rows)]
    lines.insert(1, "|---" * len(head) + "|")
    return "\n".join(lines)


def ids(claims: Claims) -> str:
    """The claims' ids."""
    return ", ".join(c["id"] for c in claims) or "none"


def failing(claims: Claims) -> tuple[Claims, Claims]:
    """The claims that fail in the simulator: those explained by a cause, and the others."""
    fail = [c for c in claims if not c["holds"]]
    return [c for c in fail if "cause" in c], [c for c in fail if "cause" not in c]


def on_hosts(paper: dict[str, Any], claims: Claims, hosts: tuple[str, ...]) -> list[str]:
    """Number of claims that hold on the first of `hosts` that judged them; the failing ones."""
    found = [next((c["found"][h] for h in hosts if h in c.get("found", {})), None) for c in claims]
    holds = found.count("holds")
    fail = [c for c, f in zip(claims, found, strict=True) if isinstance(f, dict) and "fails" in f]
    if holds or fail:
        return [f"{holds} of {holds + len(fail)}", ids(fail)]
    not_on = {
        f["number"]: {*paper.get("not_on", {}), *f.get("not_on", {})} for f in paper["figure"]
    }

    def skipped(claim: dict[str, Any]) -> bool:
        verdicts = claim.get("found", {})
        return any(
            "skip" in verdicts[h] if h in verdicts else h in not_on.get(claim["figure"], ())
            for h in hosts
        )

    judged = not all(map(skipped, claims))
    return ["not judged yet" if judged else "cannot be judged there", NOTHING]


def claims_by_host() -> str:
    """The number of claims of each paper that hold, by host."""
    rows = []
    for name, claims in recorded_claims().items():
        paper = read(SCENARIOS / name / "paper.toml")
        explained, unexplained = failing(claims)
        holding = len(claims) - len(explained) - len(unexplained)
        rows.append(
            [
                f"`{name}`: {paper['title']}",
                str(len(claims)),
                str(holding),
                ids(explained),
                ids(unexplained),
                *on_hosts(paper, claims, LINUX),
                *on_hosts(paper, claims, ("quic",)),
            ]
        )
    head = ["paper", "claims", "hold in the simulator"]
    head += ["fail there for a demonstrated reason", "fail there unexplained"]
    head += ["hold on Linux TCP, of those judged there", "fail there"]
    return table([*head, "hold over QUIC, of those judged there", "fail there"], rows)


def sums_of_claims() -> str:
    """A sentence on the claims of all papers, and one on the goals of Ebb."""

    def verb(n: int, one: str) -> str:
        return f"{n} {one if n == 1 else one[:-1]}"

    def sentence(what: str, claims: Claims) -> str:
        explained, unexplained = map(len, failing(claims))
        holding = len(claims) - explained - unexplained
        return (
            f"{what}: in the simulator {verb(holding, 'holds')}; {verb(explained, 'fails')} "
            f"for a demonstrated reason; {verb(unexplained, 'fails')} unexplained."
        )

    papers = recorded_claims()
    goals = papers.pop("ebb")
    claims = [claim for of in papers.values() for claim in of]
    return "\n\n".join(
        [
            sentence(f"{len(papers)} papers, {len(claims)} claims", claims),
            sentence(f"Ebb, an algorithm of this project, {len(goals)} goals", goals),
        ]
    )


def linux_claims() -> list[dict[str, str]]:
    """The values of the claims on the host linux, as scripts/record-linux.py has stored them."""
    with LINUX_CLAIMS.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write_linux_claims(judged: Claims) -> None:
    """Stores the values of these claims; those of others stay."""
    new = {
        claim["id"]: {
            "claim": claim["id"],
            "paper": claim["paper"],
            "unit": " ".join(claim["unit"].split()),
            "accepted_low": claim["accepted"][0],
            "accepted_high": claim["accepted"][1],
            **{key: claim["measured"][key] for key in ("p20", "p50", "p80", "n")},
            "holds": "yes" if claim["holds"] else "no",
        }
        for claim in judged
    }
    old = {row["claim"]: row for row in linux_claims()} if LINUX_CLAIMS.exists() else {}
    rows = sorted((old | new).values(), key=lambda r: (r["claim"][0], int(r["claim"][1:])))
    whole = LINUX_CLAIMS.with_suffix(".new")
    with whole.open("w") as file:
        writer = csv.DictWriter(file, rows[0], delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    whole.replace(LINUX_CLAIMS)


def number(text: str) -> str:
    """Three significant digits."""
    return f"{float(text):.3g}"


def on_linux(paper: str) -> str:
    """The claims of a paper on the host linux: measured values and verdicts."""
    rows = []
    for row in linux_claims():
        if row["paper"] != paper:
            continue
        low, high = row["accepted_low"], row["accepted_high"]
        bounds = f"{number(low)} to {number(high)}" if low and high else ""
        bounds = bounds or (f"at least {number(low)}" if low else f"at most {number(high)}")
        p20, p50, p80 = (number(row[key]) for key in ("p20", "p50", "p80"))
        measured = p50 if p20 == p80 else f"{p50} [{p20}, {p80}]"
        holds = "yes" if row["holds"] == "yes" else "**no**"
        rows.append(
            [row["claim"], row["unit"].replace("|", "\\|"), bounds, measured, row["n"], holds]
        )
    head = ["claim", "unit", "accepted", "Linux", "repetitions", "holds"]
    return table(head, rows)


def recorded_criteria() -> list[dict[str, Any]]:
    """The criteria of `knee evaluate`, in the order of their sections."""

    def key(criterion: dict[str, Any]) -> tuple[list[int], str]:
        return [int(part) for part in criterion["section"].split(".")], criterion["id"]

    return sorted(map(read, EVALUATION.glob("*.toml")), key=key)


def requirement(measure: dict[str, Any]) -> str:
    """The requirement of a criterion on one of its measures."""
    unit = f" ({measure['unit']})" if measure.get("unit") else ""
    bounds = []
    if (bound := measure.get("bound")) is not None:
        shown = bound if isinstance(bound, str) else f"{bound:g}"
        bounds.append(f"{'at most' if measure['better'] == 'lower' else 'at least'} `{shown}`")
    if (part := measure.get("no_worse")) is not None:
        bounds.append(f"no worse than the baseline by more than {100 * part:.0f} %")
    return f"{measure['name']}{unit}: {' or '.join(bounds) or 'shown'}"


def criteria() -> str:
    """Every criterion with its requirements and the sources of their bounds."""
    rows = []
    for c in recorded_criteria():
        sources = [m["source"] for m in c["measure"] if m.get("source")]
        distinct = [s for n, s in enumerate(sources) if n == 0 or s != sources[n - 1]]
        requirements = "; ".join(map(requirement, c["measure"]))
        rows.append([c["section"], f"`{c['id']}`", c["title"], requirements, "; ".join(distinct)])
    return table(["section", "criterion", "title", "requirement", "source of bounds"], rows)


def scorecard() -> str:
    """The verdicts in the simulator: a column for each algorithm."""
    record = read(EVALUATION / "runs/record.toml")
    names = sorted(record)
    rows = [
        [f"`{c['id']}`", *(SIGNS.get(record[name].get(c["id"]), "?") for name in names)]
        for c in recorded_criteria()
    ]
    return table(["criterion", *names], rows)


def scorecard_on_vm() -> str:
    """The verdicts on Linux, and the simulator's where it is another."""
    simulator = read(EVALUATION / "runs/record.toml")
    linux = read(EVALUATION / "runs/record-vm.toml")
    names = sorted(name for name in linux if name != "made_with")

    def cell(name: str, criterion: str) -> str:
        verdict, simulated = linux[name].get(criterion), simulator[name].get(criterion)
        other = "" if verdict == simulated else f" (simulator: {SIGNS.get(simulated, '?')})"
        return SIGNS.get(verdict, "?") + other

    judged = [c["id"] for c in recorded_criteria() if any(c["id"] in linux[n] for n in names)]
    rows = [[f"`{criterion}`", *(cell(name, criterion) for name in names)] for criterion in judged]
    return table(["criterion", *names], rows)


# Blocks of pages by their names.
BLOCKS = {
    "claims": claims_by_host,
    "sums-of-claims": sums_of_claims,
    "criteria": criteria,
    "scorecard": scorecard,
    "scorecard-vm": scorecard_on_vm,
}
