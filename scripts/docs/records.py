"""Tables of recorded verdicts: of the papers' claims, and of the criteria of `knee evaluate`."""

from __future__ import annotations

import csv
import statistics
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
EVALUATION = SCENARIOS / "evaluation"

LINUX_CLAIMS = ROOT / "bench/claims-linux.tsv"
NOISE_SCORECARD = ROOT / "bench/noise-scorecard.tsv"
NOISE_GOALS = ROOT / "bench/noise-goals.tsv"
LOCKS = ROOT / "bench/locks.tsv"
ORIGINALS = ROOT / "bench/originals.tsv"
# Columns of that file.
WHOSE = ("original", "ours")
LOCK_CAUSES = ROOT / "bench/lock-causes.tsv"
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


def on_host(paper: dict[str, Any], claims: Claims, host: str) -> list[str]:
    """Number of claims that hold on `host`, of those judged there; the failing ones."""
    found = [c.get("found", {}).get(host) for c in claims]
    holds = found.count("holds")
    fail = [c for c, f in zip(claims, found, strict=True) if isinstance(f, dict) and "fails" in f]
    if holds or fail:
        return [f"{holds} of {holds + len(fail)}", ids(fail)]
    not_on = {
        f["number"]: {*paper.get("not_on", {}), *f.get("not_on", {})} for f in paper["figure"]
    }
    cannot = all(
        "skip" in verdict if verdict else host in not_on.get(claim["figure"], ())
        for claim, verdict in zip(claims, found, strict=True)
    )
    return ["cannot be judged there" if cannot else "not judged yet", NOTHING]


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
                *on_host(paper, claims, "linux"),
                *on_host(paper, claims, "quic"),
            ]
        )
    head = ["paper", "claims", "hold in the simulator"]
    head += ["fail there for a demonstrated reason", "fail there unexplained"]
    head += ["hold on Linux TCP, of those judged there", "fail there"]
    return table([*head, "hold over QUIC, of those judged there", "fail there"], rows)


def sums_of_claims() -> str:
    """Sentences on the claims of the papers, the published results, and the goals of Ebb."""

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
    goals, others = papers.pop("ebb"), papers.pop("others")
    claims = [claim for of in papers.values() for claim in of]
    return "\n\n".join(
        [
            sentence(f"{len(papers)} papers, {len(claims)} claims", claims),
            sentence(f"Seven other algorithms, {len(others)} published results", others),
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
    write_rows(LINUX_CLAIMS, rows)


def number(text: str) -> str:
    """Three significant digits."""
    return f"{float(text):.3g}"


def on_linux(paper: str) -> str:
    """The claims of a paper on the host linux: the kernel, measured values and verdicts."""
    kernel = read(SCENARIOS / paper / "paper.toml")["recorded_with"]["linux"]
    package, source = kernel["kernel package"], kernel["kernel source (SHA-256)"]
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
    return f"Kernel: {package}, SHA-256 of its source `{source}`.\n\n{table(head, rows)}"


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


def scorecard_on_linux() -> str:
    """The verdicts on the host linux, and the simulator's where it is another."""
    simulator = read(EVALUATION / "runs/record.toml")
    linux = read(EVALUATION / "runs/record-linux.toml")
    names = sorted(name for name in linux if name != "made_with")

    def cell(name: str, criterion: str) -> str:
        verdict, simulated = linux[name].get(criterion), simulator[name].get(criterion)
        other = "" if verdict == simulated else f" ({SIGNS.get(simulated, '?')})"
        return SIGNS.get(verdict, "?") + other

    judged = [c["id"] for c in recorded_criteria() if any(c["id"] in linux[n] for n in names)]
    rows = [[f"`{criterion}`", *(cell(name, criterion) for name in names)] for criterion in judged]
    return table(["criterion", *names], rows)


def rows_of(file: Path) -> list[dict[str, str]]:
    """The lines of a table with tabs; none if it is not there."""
    if not file.exists():
        return []
    with file.open() as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def write_rows(file: Path, rows: list[dict[str, str]]) -> None:
    """Writes a table with tabs, whole or not at all; the first line names the columns."""
    whole = file.with_suffix(".new")
    with whole.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    whole.replace(file)


def merge(file: Path, new: list[dict[str, str]], key: str) -> None:
    """Replaces the lines of a table whose `key` is among the new ones'."""
    replaced = {row[key] for row in new}
    rows = [row for row in rows_of(file) if row[key] not in replaced] + new
    rows.sort(key=lambda row: (len(row[key]), row[key]) if key == "goal" else (0, row[key]))
    write_rows(file, rows)


def scorecard_with_noise() -> str:
    """The verdicts of the scorecard that noise changes, and that other seeds do not."""
    every = rows_of(NOISE_SCORECARD)
    levels = ("100us", "1ms")
    firm = [row for row in every if row["exact"] == row["other_seeds"]]
    changed = [row for row in firm if any(row[level] != row["exact"] for level in levels)]
    counts = [sum(row[level] != row["exact"] for row in changed) for level in levels]
    sentence = (
        f"{len(every)} verdicts; other seeds without noise change {len(every) - len(firm)}. Noise "
        f"of 100 µs changes {counts[0]} of the {len(firm)} others, noise of 1 ms {counts[1]}:"
    )
    rows = [
        [f"`{row['algorithm']}`", f"`{row['criterion']}`"]
        + [SIGNS.get(row[column], "?") for column in ("exact", *levels)]
        for row in changed
    ]
    head = ["algorithm", "criterion", "no noise", "100 µs", "1 ms"]
    return f"{sentence}\n\n{table(head, rows)}"


def goals_with_noise() -> str:
    """The verdicts on Ebb's goals that noise changes."""
    every = rows_of(NOISE_GOALS)
    levels = ("exact", "100us", "1ms")

    def cell(row: dict[str, str], level: str) -> str:
        low, median, high = row[f"measured_{level}"].split()
        value = f"{number(median)} [{number(low)}, {number(high)}]"
        return value if row[level] == "holds" else f"{value}: **fails**"

    changed = [row for row in every if len({row[level] for level in levels}) > 1]
    holding = [sum(row[level] == "holds" for row in every) for level in levels]
    sentence = (
        f"{holding[0]} of {len(every)} goals hold without noise, {holding[1]} with 100 µs and "
        f"{holding[2]} with 1 ms. These verdicts change:"
    )
    rows = [[row["goal"], *(cell(row, level) for level in levels), row["unit"]] for row in changed]
    return f"{sentence}\n\n{table(['goal', 'no noise', '100 µs', '1 ms', 'unit'], rows)}"


LEVELS = {"100us": "100 µs", "1ms": "1 ms"}
# A difference of medians counts from this fraction of the value without noise on, of the delay also
# from 1 ms on, if no seed with noise has a value between those of seeds without.
LOCK_PART = 0.1
LOCK_DELAY_MS = 1.0


def median(cell: str) -> float:
    """The median of a cell's sorted values."""
    values = cell.split()
    return float(values[len(values) // 2])


def apart(one: str, other: str) -> bool:
    """True if the values of two cells do not overlap."""
    low, high = sorted([list(map(float, cell.split())) for cell in (one, other)])
    return low[-1] < high[0]


def differs(row: dict[str, str], level: str) -> tuple[bool, bool]:
    """True if use, or mean delay, differs with this noise from the runs without."""

    def away(of: str, least: float) -> bool:
        exact, noisy = row[f"{of}_0us"], row[f"{of}_{level}"]
        change = abs(median(noisy) - median(exact))
        return apart(exact, noisy) and change > max(LOCK_PART * median(exact), least)

    return away("use", 0.0), away("delay_ms", LOCK_DELAY_MS)


def locked() -> dict[str, list[dict[str, str]]]:
    """By algorithm, the paths on which noise changes use or delay."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows_of(LOCKS):
        of = found.setdefault(row["algorithm"], [])
        if any(any(differs(row, level)) for level in LEVELS):
            of.append(row)
    return found


def runs_of(values: list[str], every: list[str]) -> str:
    """Values as ranges of neighbours: 20-60, 120."""
    ranges: list[list[str]] = []
    for value in values:
        at = every.index(value)
        if ranges and every.index(ranges[-1][-1]) == at - 1:
            ranges[-1].append(value)
        else:
            ranges.append([value])
    return ", ".join(r[0] if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in ranges)


def region(rows: list[dict[str, str]]) -> str:
    """Paths in words, by rate and queue: the RTTs."""
    rtts = sorted({row["rtt_ms"] for row in rows_of(LOCKS)}, key=float)
    by_rtts: dict[tuple[str, str], list[str]] = {}
    for rate in sorted({row["rate_mbps"] for row in rows}, key=float):
        for queue in sorted({row["queue_bdp"] for row in rows}, key=float):
            at = [r["rtt_ms"] for r in rows if (r["rate_mbps"], r["queue_bdp"]) == (rate, queue)]
            if at:
                by_rtts.setdefault((rate, runs_of(at, rtts)), []).append(queue)
    parts = [f"{rate} Mbit/s, {of} ms, {'/'.join(q)} BDP" for (rate, of), q in by_rtts.items()]
    return "; ".join(parts)


def locks() -> str:
    """The paths on which noise changes use or mean queueing delay: how many, and where."""
    paths = len({(r["rate_mbps"], r["rtt_ms"], r["queue_bdp"]) for r in rows_of(LOCKS)})
    rows, same = [], []
    for name, found in locked().items():
        if not found:
            same.append(f"`{name}`")
            continue
        counts = [
            sum(differs(row, level)[of] for row in found) for level in LEVELS for of in (0, 1)
        ]
        rows.append([f"`{name}`", *(str(n or NOTHING) for n in counts), region(found)])
    head = [
        "algorithm",
        *(f"{of}, {words}" for words in LEVELS.values() for of in ("use", "delay")),
    ]
    return (
        f"Number of the {paths} paths on which use of the link or mean queueing delay differs:\n\n"
        f"{table([*head, 'paths (rate, RTT, queue)'], rows)}\n\n"
        f"No path differs for {', '.join(same)}."
    )


def use_and_delay(use: str, delay_ms: str) -> str:
    """Medians as a cell."""
    return f"{100 * median(use):.0f} %, {median(delay_ms):.1f} ms"


def size_of_difference(row: dict[str, str]) -> tuple[float, float]:
    """The largest difference of use that counts, and of delay."""

    def largest(of: int, name: str) -> float:
        exact = median(row[f"{name}_0us"])
        away = [abs(median(row[f"{name}_{n}"]) - exact) for n in LEVELS if differs(row, n)[of]]
        return max(away, default=0.0)

    return largest(0, "use"), largest(1, "delay_ms")


def largest_differences() -> str:
    """For each algorithm with a difference, the path where it is largest."""
    rows = []
    for name, found in locked().items():
        if not found:
            continue

        row = max(found, key=size_of_difference)
        path = f"{row['rate_mbps']} Mbit/s, {row['rtt_ms']} ms, {row['queue_bdp']} BDP"
        levels = ("0us", *LEVELS)
        cells = [use_and_delay(row[f"use_{n}"], row[f"delay_ms_{n}"]) for n in levels]
        rows.append([f"`{name}`", path, *cells])
    return table(["algorithm", "path", "no noise", *LEVELS.values()], rows)


def lock_causes() -> str:
    """The runs that show causes: one change each."""
    levels = ("0us", "1us", "100us", "1ms")
    rows = []
    for row in rows_of(LOCK_CAUSES):
        cells = [use_and_delay(row[f"use_{n}"], row[f"delay_ms_{n}"]) for n in levels]
        change = row["change"] if row["change"] == "none" else f"`{row['change']}`"
        rows.append([f"`{row['algorithm']}`", row["path"], change, *cells])
    head = ["algorithm", "path", "change", "no noise", "1 µs", "100 µs", "1 ms"]
    return table(head, rows)


def span_of(values: list[float], digits: int) -> str:
    """Median and range."""
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"


def ratio_of(row: dict[str, str], measure: str) -> float:
    """A measure of ours as a multiple of the original's."""
    return float(row[f"{measure}_ours"]) / float(row[f"{measure}_original"])


def originals(kernel: str) -> str:
    """Ratios of goodput and distances of windows: each variant and the kernel's own algorithm."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows_of(ORIGINALS):
        if row["kernel"] == kernel:
            groups.setdefault((row["algorithm"], row["variant"]), []).append(row)
    rows = []
    for (algorithm, variant), found in groups.items():
        cells = []
        for lossy in (False, True):
            of = [row for row in found if (row["loss"] != "0") == lossy]
            cells += [
                span_of([ratio_of(row, "goodput_mbps") for row in of], 2),
                span_of([100 * float(row["distance"]) for row in of], 0),
            ]
            # Sums: some paths have no loss at all.
            lost = [sum(float(row[f"retransmitted_pkts_{w}"]) for row in of) for w in WHOSE]
            cells.append(f"{lost[1] / lost[0]:.2f}" if lost[0] else NOTHING)
        same = sum(float(row["same_until_s"]) == 60 for row in found)
        params = ", ".join(f"`{param}`" for param in variant.split()) or "defaults"
        rows.append([f"`{algorithm}`", params, f"{same} of {len(found)}", *cells])
    head = ["algorithm", "parameters", "same windows"]
    for loss in ("no loss", "0.1 % loss"):
        head += [f"goodput, {loss}", f"windows (%), {loss}", f"retransmitted, {loss}"]
    return table(head, rows)


def originals_by_kernel() -> str:
    """Differences of goodput between the originals of two kernels."""
    goodput: dict[str, dict[tuple[str, ...], float]] = {}
    for row in rows_of(ORIGINALS):
        point = tuple(
            row[key] for key in ("algorithm", "rate_mbps", "rtt_ms", "queue_pkts", "loss")
        )
        goodput.setdefault(row["kernel"], {})[point] = float(row["goodput_mbps_original"])
    old, new = goodput["debian:6.12"], goodput["debian:7.2"]
    apart: dict[str, list[float]] = {}
    for point, value in old.items():
        apart.setdefault(point[0], []).append(new[point] / value)
    same = [f"`{name}`" for name, of in apart.items() if set(of) == {1.0}]
    others = [
        f"`{name}`: goodput on 7.2 is {min(of):.3f} to {max(of):.3f} times that on 6.12"
        for name, of in apart.items()
        if set(of) != {1.0}
    ]
    return f"The same goodput on every path as on 6.12: {', '.join(same)}.\n\n" + "\n".join(
        f"- {line}." for line in others
    )


# Blocks of pages by their names.
BLOCKS = {
    "claims": claims_by_host,
    "sums-of-claims": sums_of_claims,
    "criteria": criteria,
    "scorecard": scorecard,
    "scorecard-linux": scorecard_on_linux,
    "scorecard-noise": scorecard_with_noise,
    "goals-noise": goals_with_noise,
    "locks": locks,
    "locks-largest": largest_differences,
    "locks-causes": lock_causes,
    "originals-kernels": originals_by_kernel,
    "originals": lambda: originals("debian:6.12"),
}
