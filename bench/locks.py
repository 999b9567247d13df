"""Scans paths for results that a little noise changes: the record of docs/evidence/map-of-locks.md.

    python bench/locks.py KNEE [ALGORITHM ...]
    python bench/locks.py causes KNEE

KNEE is the program. One flow of each algorithm runs on 45 paths, for a minute: exactly, and with
noise of two levels, with three seeds each: some algorithms draw random numbers. The lines of the
named algorithms, or of all, replace those in bench/locks.tsv; scripts/update-docs.sh makes the
tables of the page from it. All algorithms take about fifteen minutes of one core.

`causes` runs single paths with one change each, and writes bench/lock-causes.tsv.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts/docs"))

import records

RATES_MBPS = (10, 50, 100)
RTTS_MS = (20, 40, 60, 90, 120)
QUEUES_BDP = (0.5, 1, 2)
NOISES = ("0us", "100us", "1ms")
SEEDS = 3
# Runs that show causes have more: medians of three differ too much where algorithms draw numbers.
CAUSE_SEEDS = 9
PACKET_BITS = 12_000
PATH = ("algorithm", "rate_mbps", "rtt_ms", "queue_bdp")
COLUMNS = [*PATH, *(f"{of}_{noise}" for noise in NOISES for of in ("use", "delay_ms"))]

Row = dict[str, str]


def scenario(algorithm: str, rate_mbps: int, rtt_ms: int, queue_bdp: float) -> str:
    """One flow of an algorithm, alone on a path."""
    bdp_pkts = rate_mbps * 1000 * rtt_ms / PACKET_BITS
    return f"""
        duration = "60s"
        [path]
        rate = "{rate_mbps}mbit"
        rtt = "{rtt_ms}ms"
        queue = "{max(2, round(bdp_pkts * queue_bdp))}p"
        [[flow]]
        cc = "{algorithm}"
        """


def measured(knee: str, file: Path, noise: str, seeds: int, *sets: str) -> tuple[str, str]:
    """Use of the link and mean queueing delay in ms: sorted values of the seeds."""
    words = [knee, "run", str(file), "--noise", noise, "--repeat", str(seeds), "--jobs", "1"]
    words += [word for value in sets for word in ("--set", value)]
    done = subprocess.run([*words, "--format", "json"], check=True, capture_output=True, text=True)
    queues = [run["queue"] for run in json.loads(done.stdout)["runs"]]
    uses = sorted(queue["utilisation"] for queue in queues)
    delays_ms = sorted(queue["delay"]["mean_ms"] for queue in queues)
    return " ".join(f"{use:.3f}" for use in uses), " ".join(f"{ms:.2f}" for ms in delays_ms)


# Paths where noise changes the result, with changes that are made one by one: a key of the
# scenario, or parameters of the algorithm.
CHANGES: dict[tuple[str, int, int, float], list[str]] = {
    ("bbr", 100, 20, 1): [
        "path.jitter_reverse=1ms",
        "flow.0.access_jitter=1ms",
        "pacing_margin=0.05",
    ],
    ("bic", 10, 60, 0.5): ["path.rtt=60.6ms", "fast_convergence=off"],
    ("card", 50, 40, 1): ["path.rtt=40.4ms", "tcp.rtt_tick=1ms", "rtt_stat=mean"],
    ("cdg", 100, 90, 0.5): ["path.rtt=90.9ms", "scale=10ms"],
    ("cdg", 10, 20, 1): ["loss_tolerance=off", "tcp.rtt_tick=1ms"],
    ("chd", 50, 60, 0.5): ["path.rtt=60.6ms", "qth=20ms"],
    ("chd", 10, 20, 2): ["qmin=7ms qth=32ms"],
    ("copa", 50, 40, 1): ["path.rtt=40.4ms", "path.jitter_reverse=1ms", "delta=0.25"],
    ("delay_aimd", 100, 20, 1): ["path.rtt=20.2ms", "tau0=10ms"],
    ("delay_aimd", 10, 40, 2): ["path.rtt=40.4ms", "tau0=10ms"],
    ("fast", 100, 120, 1): ["path.rtt=121.2ms", "mi_threshold=3ms"],
    ("ftcp", 100, 120, 0.5): [
        "path.rtt=121.2ms",
        "peak_rule=slow_start",
        "umax=ever",
        "tau_const=100ms",
    ],
    ("illinois", 10, 40, 0.5): ["path.rtt=40.4ms", "low_rounds=0", "alpha_max=1"],
    ("lp", 100, 20, 0.5): ["path.rtt=20.2ms", "delta=0.5"],
    ("lp", 10, 60, 1): ["delta=0.5"],
    ("mpert", 50, 20, 2): ["tmin=6ms tmax=11ms"],
    ("vegas", 100, 20, 0.5): ["path.rtt=20.2ms", "alpha=20 beta=30"],
}
CAUSE_NOISES = ("0us", "1us", "100us", "1ms")


def causes(knee: str) -> None:
    """Writes the runs with one change each."""
    columns = ["algorithm", "path", "change"]
    columns += [f"{of}_{noise}" for noise in CAUSE_NOISES for of in ("use", "delay_ms")]
    rows = []
    for (algorithm, rate_mbps, rtt_ms, queue_bdp), changes in CHANGES.items():
        path = f"{rate_mbps} Mbit/s, {rtt_ms} ms, {queue_bdp} BDP"
        for change in ["", *changes]:
            words = change.split()
            with tempfile.TemporaryDirectory() as work:
                file = Path(work) / "path.toml"
                file.write_text(scenario(algorithm, rate_mbps, rtt_ms, queue_bdp))
                sets = [w if "." in w.split("=")[0] else f"flow.0.params.{w}" for w in words]
                values = [
                    v
                    for noise in CAUSE_NOISES
                    for v in measured(knee, file, noise, CAUSE_SEEDS, *sets)
                ]
            cells = (algorithm, path, change or "none", *values)
            rows.append(dict(zip(columns, cells, strict=True)))
    records.write_rows(records.LOCK_CAUSES, rows)


def row(knee: str, algorithm: str, rate_mbps: int, rtt_ms: int, queue_bdp: float) -> Row:
    """A line of the record."""
    path = (algorithm, str(rate_mbps), str(rtt_ms), str(queue_bdp))
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "path.toml"
        file.write_text(scenario(algorithm, rate_mbps, rtt_ms, queue_bdp))
        values = [value for noise in NOISES for value in measured(knee, file, noise, SEEDS)]
    return dict(zip(COLUMNS, (*path, *values), strict=True))


def main(knee: str, named: list[str]) -> None:
    """Measures and writes the lines of the named algorithms, or of all."""
    listed = subprocess.run(
        [knee, "list", "--format", "json"], check=True, capture_output=True, text=True
    )
    every = [algorithm["name"] for algorithm in json.loads(listed.stdout)["algorithms"]]
    if unknown := sorted(set(named) - set(every)):
        sys.exit(f"no such algorithm: {', '.join(unknown)}; `knee list` shows all")
    wanted = named or every
    kept = [r for r in records.rows_of(records.LOCKS) if r["algorithm"] not in wanted]
    points = list(itertools.product(wanted, RATES_MBPS, RTTS_MS, QUEUES_BDP))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = kept + list(pool.map(lambda point: row(knee, *point), points))
    rows.sort(key=lambda r: (r["algorithm"], *(float(r[key]) for key in PATH[1:])))
    records.write_rows(records.LOCKS, rows)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "causes":
        causes(*sys.argv[2:])
    else:
        main(sys.argv[1], sys.argv[2:])
