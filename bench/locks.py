"""Scans paths for results that a little noise changes: the record of docs/evidence/map-of-locks.md.

    python bench/locks.py KNEE [ALGORITHM ...]

KNEE is the program. One flow of each algorithm runs on 45 paths, for a minute: exactly, and with noise
of two levels, three seeds each. Without noise nothing in the run is random, so one seed is enough. The
lines of the named algorithms, or of all, are written anew to bench/locks.tsv; scripts/update-docs.sh
makes the tables of the page from it. All algorithms take about ten minutes of one core.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench/locks.tsv"

RATES_MBPS = (10, 50, 100)
RTTS_MS = (20, 40, 60, 90, 120)
QUEUES_BDP = (0.5, 1, 2)
NOISES = ("0us", "100us", "1ms")
SEEDS = 3
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


def measured(knee: str, file: Path, noise: str) -> tuple[str, str]:
    """Use of the link and mean queueing delay in ms: sorted values of the seeds."""
    repeat = 1 if noise == NOISES[0] else SEEDS
    words = [knee, "run", str(file), "--noise", noise, "--repeat", str(repeat), "--jobs", "1"]
    done = subprocess.run([*words, "--format", "json"], check=True, capture_output=True, text=True)
    queues = [run["queue"] for run in json.loads(done.stdout)["runs"]]
    uses = sorted(queue["utilisation"] for queue in queues)
    delays_ms = sorted(queue["delay"]["mean_ms"] for queue in queues)
    return " ".join(f"{use:.3f}" for use in uses), " ".join(f"{ms:.2f}" for ms in delays_ms)


def row(knee: str, algorithm: str, rate_mbps: int, rtt_ms: int, queue_bdp: float) -> Row:
    """A line of the record."""
    path = (algorithm, str(rate_mbps), str(rtt_ms), str(queue_bdp))
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "path.toml"
        file.write_text(scenario(algorithm, rate_mbps, rtt_ms, queue_bdp))
        values = [value for noise in NOISES for value in measured(knee, file, noise)]
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
    kept: list[Row] = []
    if RECORD.exists():
        with RECORD.open() as file:
            kept = [r for r in csv.DictReader(file, delimiter="\t") if r["algorithm"] not in wanted]
    points = list(itertools.product(wanted, RATES_MBPS, RTTS_MS, QUEUES_BDP))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = kept + list(pool.map(lambda point: row(knee, *point), points))
    rows.sort(key=lambda r: (r["algorithm"], *(float(r[key]) for key in PATH[1:])))
    whole = RECORD.with_suffix(".new")
    with whole.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    whole.replace(RECORD)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
