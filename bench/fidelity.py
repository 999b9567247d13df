"""Scenarios in the simulator and on the host linux: the tables of docs/evidence/fidelity.md.

    python bench/fidelity.py measure KNEE [HOST]    # runs what bench/fidelity.tsv lacks
    python bench/fidelity.py page                   # writes the tables
    python bench/fidelity.py check                  # fails if the page has other tables

A packet costs about 5 microseconds on the host linux: all cases take about two hours of one core.
The record is written after each case, so that a measurement that was interrupted continues. A case
is measured again after its lines are deleted.
"""

import csv
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios"
RECORD = ROOT / "bench/fidelity.tsv"
PAGE = ROOT / "docs/evidence/fidelity.md"
BEGIN = "<!-- {}: made by bench/fidelity.py page -->\n"
END = "<!-- end of {} -->\n"

HOSTS = ("sim", "linux")
# Runs of each case, and of cases with more than five million packets per run.
SEEDS = 60
SEEDS_OF_LONG_RUNS = 10

# Targets: the larger of the two counts for the delay.
GOODPUT_PART = 0.01
SHARE_PART = 0.05
DELAY_PART = 0.03
DELAY_MS = 0.3
# Below this probability a difference is not taken for chance.
CHANCE = 0.05


class Case(NamedTuple):
    """A line of a table."""

    table: str
    name: str
    scenario: str
    settings: dict[str, str]
    # The flows whose share of the goodput counts; none if it does not.
    of_share: tuple[int, ...]
    seeds: int = SEEDS

    def command(self, knee: str, host: str) -> list[str]:
        scenario = SCENARIOS / f"{self.scenario}.toml"
        command = [knee, "run", str(scenario), "--host", host, "--format", "json"]
        command += ["--seed", "1", "--repeat", str(self.seeds)]
        if host == "sim":  # Linux does so by itself
            command += ["--set", "tcp.segmentation_offload=true"]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        return command


# Delayed ACKs: a window for both hosts, and the kernel's own rule for quick ACKs
# (docs/explanation/simulator-vs-linux.md).
DELAYED = {"tcp.receive_window": "486p", "tcp.quick_ack": "17p"}
# The path and the receiver of the one flow.
PATH = DELAYED | {
    "duration": "40s",
    "path.rate": "10mbit",
    "path.queue": "84p",
    "tcp.initial_window": "3p",
    "tcp.delayed_ack_every": "2",
    "tcp.delayed_ack_timeout": "100ms",
}
SACK = {"tcp.recovery": "sack"}
NO_SACK = {"tcp.recovery": "newreno-prr"}


def cases() -> list[Case]:
    some: list[Case] = []
    for named, recovery in (("SACK", SACK), ("no SACK", NO_SACK)):
        algorithms = (
            ("newreno", "chd", "hd", "bbr") if recovery is SACK else ("newreno", "chd", "hd")
        )
        for algorithm in algorithms:
            for percent in (0, 1):
                settings = DELAYED | recovery | {"flow.0.cc": algorithm}
                settings["path.loss_forward"] = f"{percent / 100:g}"
                name = f"{algorithm}, {named}, {percent} %"
                some.append(Case("one flow", name, "chd/single-flow", settings, ()))
    for other in ("newreno", "cubic", "chd"):
        settings = PATH | SACK | {"flow.0.cc": "chd", "flow.1.cc": other}
        name = f"chd with {other}, SACK, 0 %"
        some.append(Case("two flows", name, "evaluation/runs/beside", settings, (0,)))
    for name, scenario, settings, of_share in (
        ("CHD: three flows", "chd/three-flows", DELAYED | NO_SACK, ()),
        ("CHD: coexistence", "chd/coexistence", DELAYED | NO_SACK, (0, 3)),
        ("delay-based AIMD: two of Vegas", "delay-aimd/vegas", {}, ()),
        ("delay-based AIMD: one flow", "delay-aimd/one-flow", {}, ()),
        ("delay-based AIMD: ten estimates", "delay-aimd/ratchet", {}, ()),
        ("delay-based AIMD: mixed", "delay-aimd/mixed", {}, (0,)),
        ("H-TCP: growth", "htcp/growth", SACK, ()),
        ("H-TCP: one flow", "htcp/latency", SACK, ()),
        ("H-TCP: four flows", "htcp/latency", SACK | {"flow.1.count": "4"}, ()),
        ("HD: 50 flows", "hd/homogeneous", {}, ()),
        ("HD: with one of NewReno", "hd/intermittent", SACK, (49,)),
        ("HD: with ten of NewReno", "hd/mix", SACK, tuple(range(40))),
        ("F-TCP: estimate", "ftcp/estimate", {}, ()),
        ("F-TCP: MPERT", "ftcp/mpert", {}, ()),
    ):
        some.append(Case("papers", name, scenario, settings, of_share))
    for name, scenario, of_share in (
        ("delay-based AIMD: 500 Mbit/s", "delay-aimd/fast", ()),
        ("delay-based AIMD: a second flow", "delay-aimd/second-flow", ()),
        ("F-TCP: friendliness", "ftcp/friendliness", (0,)),
        ("F-TCP: 700 s", "ftcp/long", ()),
        ("F-TCP: UDP", "ftcp/udp", ()),
        ("F-TCP: coexistence", "ftcp/coexistence", tuple(range(20))),
    ):
        some.append(Case("papers", name, scenario, {}, of_share, SEEDS_OF_LONG_RUNS))
    return some


CASES = cases()
# Which tables there are, and the heading of their first column.
TABLES = {
    "one flow": "case: algorithm, recovery, random loss",
    "two flows": "case: algorithms, recovery, random loss",
    "papers": "paper and scenario",
}


class Run(NamedTuple):
    """Measurements of one run. The goodput is that of all flows, in the whole run."""

    case: str
    host: str
    seed: int
    goodput_mbps: float
    share: float
    queueing_delay_p50_ms: float
    queueing_delay_mean_ms: float
    dropped_pkts: int
    loss_events: int
    kernel: str

    def order(self) -> tuple[int, int, int]:
        names = [case.name for case in CASES]
        return HOSTS.index(self.host), names.index(self.case), self.seed


def recorded() -> list[Run]:
    if not RECORD.exists():
        return []
    with RECORD.open() as file:
        kinds = Run.__annotations__.values()
        rows = list(csv.reader(file, delimiter="\t"))[1:]
        return [Run(*(kind(text) for kind, text in zip(kinds, row, strict=True))) for row in rows]


def measure(knee: str, hosts: tuple[str, ...]) -> None:
    runs = recorded()
    for host in hosts:
        for case in CASES:
            if any((run.case, run.host) == (case.name, host) for run in runs):
                continue
            print(case.name, host, file=sys.stderr, flush=True)
            done = subprocess.run(case.command(knee, host), check=True, stdout=subprocess.PIPE)
            summary = json.loads(done.stdout)
            for run in summary["runs"]:
                bytes_of = [flow["counters"]["delivered_bytes"] for flow in run["flows"]]
                part = sum(bytes_of[flow] for flow in case.of_share) / sum(bytes_of)
                delay = run["queue"]["delay"]
                runs.append(
                    Run(
                        case.name,
                        host,
                        run["seed"],
                        round(8e-6 * sum(bytes_of) / summary["duration_s"], 4),
                        round(part, 4) if case.of_share else 1.0,
                        round(delay["p50_ms"], 3),
                        round(delay["mean_ms"], 3),
                        run["queue"]["dropped_pkts"],
                        sum(flow["counters"]["loss_events"] for flow in run["flows"]),
                        summary["kernel"] if host == "linux" else "",
                    )
                )
            runs.sort(key=Run.order)
            write(runs)


def write(runs: list[Run]) -> None:
    new = RECORD.with_suffix(".new")
    with new.open("w") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(Run._fields)
        writer.writerows(runs)
    new.replace(RECORD)


def table(name: str) -> str:
    runs = recorded()
    some = [case for case in CASES if case.table == name]
    has_shares = any(case.of_share for case in some)
    of_shares = "share sim | Linux | difference | " if has_shares else ""
    lines = [
        f"| {TABLES[name]} | {of_shares}goodput sim (Mbit/s) | Linux "
        "| difference | median queueing delay sim (ms) | Linux | difference | within target |",
        "|---|---|---|---|---|---|---|---|" + "---|---|---|" * has_shares,
    ]
    for case in some:
        of_case = [run for run in runs if run.case == case.name]
        on_both = [[run for run in of_case if run.host == host] for host in HOSTS]
        if [len(on_one) for on_one in on_both] != [case.seeds, case.seeds]:
            continue
        outside = []
        cells = [case.name]
        if case.of_share:
            shares = [Quantiles([run.share for run in on_one]) for on_one in on_both]
            part = shares[0].median / shares[1].median - 1
            if abs(part) > SHARE_PART:
                outside.append(f"share {cause(shares)}")
            cells += [*(share.text(2) for share in shares), f"{100 * part:+.1f} %"]
        elif has_shares:
            cells += ["", "", ""]
        goodputs = [Quantiles([run.goodput_mbps for run in on_one]) for on_one in on_both]
        part = goodputs[0].median / goodputs[1].median - 1
        if abs(part) > GOODPUT_PART:
            outside.append(f"goodput {cause(goodputs)}")
        delays = [Quantiles([run.queueing_delay_p50_ms for run in on_one]) for on_one in on_both]
        longer_ms = delays[0].median - delays[1].median
        if abs(longer_ms) > max(DELAY_MS, DELAY_PART * delays[1].median):
            outside.append(f"delay {cause(delays)}")
        cells += [
            *(goodput.text(2) for goodput in goodputs),
            f"{100 * part:+.1f} %",
            *(delay.text(1) for delay in delays),
            f"{longer_ms:+.1f} ms",
            ", ".join(outside) or "yes",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + "\n\n"


class Quantiles:
    """Median, 20th and 80th percentile."""

    def __init__(self, values: list[float]) -> None:
        self.values = values
        self.median = statistics.median(values)
        self.p20, *_, self.p80 = statistics.quantiles(values, n=5, method="inclusive")

    def text(self, digits: int) -> str:
        median, p20, p80 = (f"{value:.{digits}f}" for value in (self.median, self.p20, self.p80))
        return median if p20 == p80 else f"{median} [{p20}, {p80}]"


def cause(on_both: list[Quantiles]) -> str:
    """Returns whether two samples differ no more than by chance (Mann and Whitney)."""
    some, others = (sample.values for sample in on_both)
    n, m = len(some), len(others)
    total = n + m
    # Equal values all get the mean of their ranks.
    both = sorted(some + others)
    rank = {value: both.index(value) + (both.count(value) + 1) / 2 for value in both}
    ties = sum(both.count(value) ** 3 - both.count(value) for value in rank)
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    above = abs(sum(rank[value] for value in some) - n * (total + 1) / 2) - 0.5
    p = 2 * (1 - statistics.NormalDist().cdf(max(above, 0) / variance**0.5)) if variance else 1
    return f"{'no' if p < CHANCE else 'by chance'} (p = {p:.2g})"


def page(check: bool) -> None:
    text = PAGE.read_text()
    for name in TABLES:
        begin, end = BEGIN.format(name), END.format(name)
        before, rest = text.split(begin)
        _, after = rest.split(end)
        text = before + begin + table(name) + end + after
    if not check:
        PAGE.write_text(text)
    elif text != PAGE.read_text():
        sys.exit("docs/evidence/fidelity.md is stale: python bench/fidelity.py page")


match sys.argv[1:]:
    case ["measure", program, *hosts]:
        measure(program, tuple(hosts) or HOSTS)
    case ["page"]:
        page(check=False)
    case ["check"]:
        page(check=True)
    case _:
        sys.exit(__doc__)
