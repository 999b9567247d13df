"""One flow, in the simulator and on Linux in virtual time: the table of docs/fidelity.md.

    python bench/fidelity.py measure KNEE [HOST]    # runs what bench/fidelity.tsv lacks
    python bench/fidelity.py page                   # writes the table
    python bench/fidelity.py check                  # fails if the page has another

On the host vm a packet costs about 0.8 ms: all cases take half an hour of one core. A case is
measured again after its lines are deleted.
"""

import csv
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios/chd/single-flow.toml"
RECORD = ROOT / "bench/fidelity.tsv"
PAGE = ROOT / "docs/fidelity.md"
BEGIN = "<!-- one flow: made by bench/fidelity.py page -->\n"
END = "<!-- end of one flow -->\n"

DURATION_S = 20
SEEDS = 10
HOSTS = ("sim", "vm")
# What both hosts are told: docs/fidelity.md, "Like with like".
SETTINGS = {"duration": f"{DURATION_S}s", "tcp.receive_window": "486p"}

# Targets: the larger of the two counts for the delay.
GOODPUT_PART = 0.03
DELAY_PART = 0.05
DELAY_MS = 0.5


class Case(NamedTuple):
    """A line of the table."""

    algorithm: str
    recovery: str
    loss_percent: float

    def name(self) -> str:
        recovery = {"sack": "SACK", "newreno-prr": "no SACK"}[self.recovery]
        return f"{self.algorithm}, {recovery}, {self.loss_percent:g} %"


class Run(NamedTuple):
    """What was measured in one run."""

    algorithm: str
    recovery: str
    loss_percent: float
    host: str
    seed: int
    goodput_mbps: float
    queueing_delay_p50_ms: float
    queueing_delay_mean_ms: float
    dropped_pkts: int
    loss_events: int
    kernel: str

    def order(self) -> tuple[int, int, int]:
        return HOSTS.index(self.host), CASES.index(Case(*self[:3])), self.seed


CASES = [
    Case(algorithm, recovery, loss)
    for recovery in ("sack", "newreno-prr")
    for algorithm in ("newreno", "chd", "hd")
    for loss in (0, 1)
]


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
            if any((*run[:3], run.host) == (*case, host) for run in runs):
                continue
            settings = SETTINGS | {
                "flow.0.cc": case.algorithm,
                "tcp.recovery": case.recovery,
                "path.loss_forward": f"{case.loss_percent / 100:g}",
            }
            command = [knee, "run", str(SCENARIO), "--host", host, "--format", "json"]
            command += ["--seed", "1", "--repeat", str(SEEDS), "--jobs", "1"]
            for key, value in settings.items():
                command += ["--set", f"{key}={value}"]
            print(case.name(), host, file=sys.stderr, flush=True)
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            summary = json.loads(done.stdout)
            for run in summary["runs"]:
                (flow,) = run["flows"]
                delay = run["queue"]["delay"]
                runs.append(
                    Run(
                        *case,
                        host,
                        run["seed"],
                        round(flow["goodput_bps"] / 1e6, 4),
                        round(delay["p50_ms"], 3),
                        round(delay["mean_ms"], 3),
                        run["queue"]["dropped_pkts"],
                        flow["counters"]["loss_events"],
                        summary["kernel"] if host == "vm" else "",
                    )
                )
            runs.sort(key=Run.order)
            write(runs)


def write(runs: list[Run]) -> None:
    new = RECORD.with_suffix(".new")
    with new.open("w") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(Run._fields)
        writer.writerows(run._replace(loss_percent=f"{run.loss_percent:g}") for run in runs)
    new.replace(RECORD)


def table() -> str:
    runs = recorded()
    lines = [
        "| case: algorithm, recovery, random loss | goodput sim (Mbit/s) | Linux | difference "
        "| median queueing delay sim (ms) | Linux | difference | within target |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        of_case = [run for run in runs if run[:3] == case]
        on_sim, on_vm = ([run for run in of_case if run.host == host] for host in HOSTS)
        if len(on_sim) != SEEDS or len(on_vm) != SEEDS:
            continue
        goodputs = [Quantiles([run.goodput_mbps for run in some]) for some in (on_sim, on_vm)]
        delays = [
            Quantiles([run.queueing_delay_p50_ms for run in some]) for some in (on_sim, on_vm)
        ]
        part = goodputs[0].median / goodputs[1].median - 1
        longer_ms = delays[0].median - delays[1].median
        outside = ["goodput no"] if abs(part) > GOODPUT_PART else []
        if abs(longer_ms) > max(DELAY_MS, DELAY_PART * delays[1].median):
            outside.append("delay no")
        cells = [
            case.name(),
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
        self.median = statistics.median(values)
        self.p20, *_, self.p80 = statistics.quantiles(values, n=5, method="inclusive")

    def text(self, digits: int) -> str:
        median, p20, p80 = (f"{value:.{digits}f}" for value in (self.median, self.p20, self.p80))
        return median if p20 == p80 else f"{median} [{p20}, {p80}]"


def page(check: bool) -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    shown, after = rest.split(END)
    if not check:
        PAGE.write_text(before + BEGIN + table() + END + after)
    elif shown != table():
        sys.exit("docs/fidelity.md is stale: python bench/fidelity.py page")


match sys.argv[1:]:
    case ["measure", program, *hosts]:
        measure(program, tuple(hosts) or HOSTS)
    case ["page"]:
        page(check=False)
    case ["check"]:
        page(check=True)
    case _:
        sys.exit(__doc__)
