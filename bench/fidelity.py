"""One flow, and two, in the simulator and on Linux in virtual time: tables of docs/fidelity.md.

    python bench/fidelity.py measure KNEE [HOST]    # runs what bench/fidelity.tsv lacks
    python bench/fidelity.py page                   # writes the tables
    python bench/fidelity.py check                  # fails if the page has another

On the host vm a packet costs about 0.8 ms: all cases take three quarters of an hour of one core. A
case is measured again after its lines are deleted.
"""

import csv
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ONE_FLOW = ROOT / "scenarios/chd/single-flow.toml"
TWO_FLOWS = ROOT / "scenarios/evaluation/runs/beside.toml"
RECORD = ROOT / "bench/fidelity.tsv"
PAGE = ROOT / "docs/fidelity.md"
BEGIN = "<!-- {} flow{}: made by bench/fidelity.py page -->\n"
END = "<!-- end of {} flow{} -->\n"

HOSTS = ("sim", "vm")
# What both hosts are told: docs/fidelity.md, "Like with like".
SETTINGS = {"tcp.receive_window": "486p"}
ONE = SETTINGS | {"duration": "20s"}
# The path and the receiver of the one flow.
TWO = SETTINGS | {
    "duration": "40s",
    "path.rate": "10mbit",
    "path.queue": "84p",
    "tcp.initial_window": "3p",
    "tcp.delayed_ack_every": "2",
    "tcp.delayed_ack_timeout": "100ms",
}

# Targets: the larger of the two counts for the delay.
GOODPUT_PART = 0.03
SHARE_PART = 0.1
DELAY_PART = 0.05
DELAY_MS = 0.5


class Case(NamedTuple):
    """A line of the table."""

    algorithm: str
    # That of the second flow; "-" if there is none.
    beside: str
    recovery: str
    loss_percent: float

    def pair(self) -> bool:
        return self.beside != "-"

    def seeds(self) -> int:
        return 5 if self.pair() else 10

    def name(self) -> str:
        recovery = {"sack": "SACK", "newreno-prr": "no SACK"}[self.recovery]
        flows = f"{self.algorithm} beside {self.beside}" if self.pair() else self.algorithm
        return f"{flows}, {recovery}, {self.loss_percent:g} %"

    def command(self, knee: str, host: str) -> list[str]:
        settings = (TWO if self.pair() else ONE) | {
            "flow.0.cc": self.algorithm,
            "tcp.recovery": self.recovery,
            "path.loss_forward": f"{self.loss_percent / 100:g}",
        }
        if self.pair():
            settings["flow.1.cc"] = self.beside
        scenario = TWO_FLOWS if self.pair() else ONE_FLOW
        command = [knee, "run", str(scenario), "--host", host, "--format", "json"]
        command += ["--seed", "1", "--repeat", str(self.seeds()), "--jobs", "1"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        return command


class Run(NamedTuple):
    """What was measured in one run: the goodput of all flows, and the first one's share of it."""

    algorithm: str
    beside: str
    recovery: str
    loss_percent: float
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
        return HOSTS.index(self.host), CASES.index(Case(*self[:4])), self.seed


CASES = [
    Case(algorithm, "-", recovery, loss)
    for recovery in ("sack", "newreno-prr")
    for algorithm in ("newreno", "chd", "hd")
    for loss in (0, 1)
] + [Case("chd", beside, "sack", 0) for beside in ("newreno", "cubic", "chd")]


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
            if any((*run[:4], run.host) == (*case, host) for run in runs):
                continue
            print(case.name(), host, file=sys.stderr, flush=True)
            done = subprocess.run(case.command(knee, host), check=True, stdout=subprocess.PIPE)
            summary = json.loads(done.stdout)
            for run in summary["runs"]:
                goodputs_bps = [flow["goodput_bps"] for flow in run["flows"]]
                delay = run["queue"]["delay"]
                runs.append(
                    Run(
                        *case,
                        host,
                        run["seed"],
                        round(sum(goodputs_bps) / 1e6, 4),
                        round(goodputs_bps[0] / sum(goodputs_bps), 4),
                        round(delay["p50_ms"], 3),
                        round(delay["mean_ms"], 3),
                        run["queue"]["dropped_pkts"],
                        sum(flow["counters"]["loss_events"] for flow in run["flows"]),
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


def table(pairs: bool) -> str:
    runs = recorded()
    of_shares = "share sim | Linux | difference | " if pairs else ""
    lines = [
        f"| case: algorithm, recovery, random loss | {of_shares}goodput sim (Mbit/s) | Linux "
        "| difference | median queueing delay sim (ms) | Linux | difference | within target |",
        "|---|---|---|---|---|---|---|---|" + "---|---|---|" * pairs,
    ]
    for case in CASES:
        of_case = [run for run in runs if run[:4] == case]
        on_both = [[run for run in of_case if run.host == host] for host in HOSTS]
        if case.pair() != pairs or any(len(on_one) != case.seeds() for on_one in on_both):
            continue
        outside = []
        cells = [case.name()]
        if pairs:
            shares = [Quantiles([run.share for run in some]) for some in on_both]
            part = shares[0].median / shares[1].median - 1
            if abs(part) > SHARE_PART:
                outside.append("share no")
            cells += [*(share.text(2) for share in shares), f"{100 * part:+.1f} %"]
        goodputs = [Quantiles([run.goodput_mbps for run in some]) for some in on_both]
        part = goodputs[0].median / goodputs[1].median - 1
        if abs(part) > GOODPUT_PART:
            outside.append("goodput no")
        delays = [Quantiles([run.queueing_delay_p50_ms for run in some]) for some in on_both]
        longer_ms = delays[0].median - delays[1].median
        if abs(longer_ms) > max(DELAY_MS, DELAY_PART * delays[1].median):
            outside.append("delay no")
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
        self.median = statistics.median(values)
        self.p20, *_, self.p80 = statistics.quantiles(values, n=5, method="inclusive")

    def text(self, digits: int) -> str:
        median, p20, p80 = (f"{value:.{digits}f}" for value in (self.median, self.p20, self.p80))
        return median if p20 == p80 else f"{median} [{p20}, {p80}]"


def page(check: bool) -> None:
    text = PAGE.read_text()
    for pairs, name in ((False, ("one", "")), (True, ("two", "s"))):
        begin, end = BEGIN.format(*name), END.format(*name)
        before, rest = text.split(begin)
        _, after = rest.split(end)
        text = before + begin + table(pairs) + end + after
    if not check:
        PAGE.write_text(text)
    elif text != PAGE.read_text():
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
