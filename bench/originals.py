"""Compares algorithms with the kernel's own: the record of docs/evidence/originals.md.

    python bench/originals.py KNEE KERNEL [ALGORITHM ...]
    python bench/originals.py try KNEE KERNEL ALGORITHM PARAMETER=VALUE [PARAMETER=VALUE ...]

KNEE is the program, KERNEL a kernel of `knee linux list`. One flow runs for a minute on ten paths,
without loss (once) and with random loss (three seeds), on the host linux: once with the original,
and once with each variant of the algorithm. Sender, receiver and path are the same; only the
algorithm differs. The lines of the named algorithms, or of all, on this kernel replace those in
bench/originals.tsv; scripts/update-docs.sh makes the tables of the page from it. A kernel takes
about ten minutes of two cores. `try` shows one more variant, and stores nothing. Both need
pyarrow.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts/docs"))

import records

DURATION_S = 60
# Rate in Mbit/s, RTT in ms, queue in packets.
PATHS = (
    (10, 20, 17),
    (10, 40, 84),
    (10, 60, 200),
    (10, 100, 42),
    (20, 60, 100),
    (20, 120, 200),
    (50, 20, 42),
    (50, 40, 160),
    (50, 80, 333),
    (100, 40, 333),
)
# Probability of a loss, and number of seeds.
LOSSES = (("0", 1), ("0.001", 3))


class Pair(NamedTuple):
    """An algorithm, its original, and the variants that are compared: parameters, most after."""

    algorithm: str
    original: str
    variants: tuple[str, ...] = ("",)


PAIRS = (
    Pair("newreno", "reno"),
    Pair(
        "cubic", "cubic", ("", "slow_start=hystart++", "slow_start=hystart++ reno_alpha=constant")
    ),
    Pair(
        "htcp",
        "htcp",
        (
            "",
            "rtt_scaling=on adaptive_backoff=on adaptive_reset=on",
            "rtt_scaling=on adaptive_backoff=on adaptive_reset=on linux_compat=on",
        ),
    ),
    Pair(
        "vegas",
        "vegas",
        ("", "alpha=2p beta=4p rtt_stat=min ss_growth=every_round after_recovery=grow"),
    ),
    Pair("westwood", "westwood", ("", "reduce_at=recovered sacked=again")),
    Pair("illinois", "illinois", ("", "counted=acknowledged")),
    Pair("bic", "bic", ("", "linux_compat=on")),
    Pair("hstcp", "highspeed"),
    Pair("scalable", "scalable", ("", "lwnd=0p a=0.02")),
    Pair("lp", "lp"),
    Pair(
        "cdg",
        "cdg",
        (
            "",
            "loss_tolerance=off growth=ack",
            "loss_tolerance=off growth=ack ss_test=smoothed holdoff=none linux_compat=on",
        ),
    ),
    Pair("bbr", "bbr"),
)
KEYS = ("kernel", "algorithm", "variant", "rate_mbps", "rtt_ms", "queue_pkts", "loss")
MEASURES = ("goodput_mbps", "delay_ms", "retransmitted_pkts")
COLUMNS = (
    *KEYS,
    *(f"{of}_{whose}" for of in MEASURES for whose in ("original", "ours")),
    # Mean distance of the windows over time, as a fraction of the original's mean window.
    "distance",
    # The same between two seeds of the original, an effect of chance alone. Empty without loss.
    "distance_by_chance",
    # Time of the first difference of the windows; the duration if there is none.
    "same_until_s",
)

Path_ = tuple[int, int, int]
Row = dict[str, str]


class Runs(NamedTuple):
    """Repetitions of one flow: values by measure, and the window at the end of each bin."""

    values: dict[str, list[float]]
    windows_pkts: list[list[int]]


def scenario(path: Path_, loss: str) -> str:
    """One flow alone on a path; its algorithm is set on the command line."""
    rate_mbps, rtt_ms, queue_pkts = path
    losses = "" if loss == "0" else f"loss_forward = {loss}"
    return f"""
        duration = "{DURATION_S}s"
        [path]
        rate = "{rate_mbps}mbit"
        rtt = "{rtt_ms}ms"
        queue = "{queue_pkts}p"
        {losses}
        [[flow]]
        cc = "newreno"
        """


def runs(knee: str, kernel: str, cc: str, params: str, path: Path_, loss: str, seeds: int) -> Runs:
    """Runs one flow on the host linux."""
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "path.toml"
        file.write_text(scenario(path, loss))
        words = [knee, "run", str(file), "--host", "linux", "--kernel", kernel, "--jobs", "1"]
        words += ["--repeat", str(seeds), "--format", "json", "--out", f"{work}/out"]
        words += ["--set", f"flow.0.cc={cc}"]
        words += [w for param in params.split() for w in ("--set", f"flow.0.params.{param}")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stderr}")
        measured = json.loads(done.stdout)["runs"]
        table = pyarrow.parquet.read_table(f"{work}/out/flows.parquet")
    repetitions, windows = (table[name].to_pylist() for name in ("repetition", "cwnd_pkts"))
    of: dict[int, list[int]] = {}
    for repetition, window in zip(repetitions, windows, strict=True):
        of.setdefault(repetition, []).append(window)
    values = {
        "goodput_mbps": [run["flows"][0]["goodput_bps"] / 1e6 for run in measured],
        "delay_ms": [run["queue"]["delay"]["mean_ms"] for run in measured],
        "retransmitted_pkts": [
            run["flows"][0]["counters"]["retransmitted_pkts"] for run in measured
        ],
    }
    return Runs(values, [of[repetition] for repetition in sorted(of)])


def distance(a: list[int], b: list[int]) -> float:
    """Mean distance of two windows over time, as a fraction of the mean of the first."""
    return sum(abs(x - y) for x, y in zip(a, b, strict=True)) / sum(a)


def same_until_s(a: list[int], b: list[int]) -> float:
    """Time of the first difference."""
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))
    return DURATION_S * first / len(a)


def row(keys: tuple[str, ...], original: Runs, ours: Runs) -> Row:
    """A line of the record: means of the repetitions."""
    pairs = list(zip(original.windows_pkts, ours.windows_pkts, strict=True))
    chance = ""
    if len(original.windows_pkts) > 1:
        chance = f"{distance(*original.windows_pkts[:2]):.3f}"
    values = [
        f"{statistics.mean(of.values[measure]):.3f}"
        for measure in MEASURES
        for of in (original, ours)
    ]
    apart = f"{statistics.mean(distance(a, b) for a, b in pairs):.3f}"
    same = f"{min(same_until_s(a, b) for a, b in pairs):.1f}"
    return dict(zip(COLUMNS, (*keys, *values, apart, chance, same), strict=True))


def compared(knee: str, kernel: str, pair: Pair) -> list[Row]:
    """The lines of one algorithm on one kernel."""

    def point(point: tuple[Path_, tuple[str, int]]) -> list[Row]:
        path, (loss, seeds) = point
        original = runs(knee, kernel, f"kernel:{pair.original}", "", path, loss, seeds)
        rows = []
        for variant in pair.variants:
            ours = runs(knee, kernel, pair.algorithm, variant, path, loss, seeds)
            keys = (kernel, pair.algorithm, variant, *(str(value) for value in path), loss)
            rows.append(row(keys, original, ours))
        return rows

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        points = [(path, loss) for loss in LOSSES for path in PATHS]
        return [row for rows in pool.map(point, points) for row in rows]


def record(knee: str, kernel: str, named: list[str]) -> None:
    """Measures and writes the lines of the named algorithms, or of all."""
    if unknown := sorted(set(named) - {pair.algorithm for pair in PAIRS}):
        sys.exit(f"no original in the kernel: {', '.join(unknown)}")
    for pair in PAIRS:
        if named and pair.algorithm not in named:
            continue
        kept = records.rows_of(records.ORIGINALS)
        here = (kernel, pair.algorithm)
        rows = [r for r in kept if (r["kernel"], r["algorithm"]) != here]
        rows += compared(knee, kernel, pair)
        rows.sort(key=lambda r: (r["algorithm"], r["kernel"]))
        records.write_rows(records.ORIGINALS, rows)


def show(knee: str, kernel: str, algorithm: str, params: str) -> None:
    """Prints the lines of one variant."""
    pair = next(pair for pair in PAIRS if pair.algorithm == algorithm)
    for line in compared(knee, kernel, Pair(algorithm, pair.original, (params,))):
        print("\t".join(line[column] for column in COLUMNS[3:]))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[1] == "try":
        knee, kernel, algorithm, *params = sys.argv[2:]
        show(knee, kernel, algorithm, " ".join(params))
    else:
        record(sys.argv[1], sys.argv[2], sys.argv[3:])
