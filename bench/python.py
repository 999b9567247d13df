"""Cost of a run from Python, compared with the command: pairs of both, and the overhead of short runs.

    python bench/python.py [PAIRS] [SHORT_RUNS]
    python bench/python.py instructions [SECONDS]

The command is that of the package, so that both are the same build. `instructions` compares those
that both execute, by valgrind, for so many simulated seconds: a busy machine does not change them.
"""

import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import knee

DUMBBELL = {
    "path": {"rate": "100mbit", "rtt": "40ms", "queue": "333p"},
    "flow": [{"cc": "chd", "count": 16, "start_spacing": "6250us"}],
}
SHORT = {
    "duration": "1s",
    "path": {"rate": "10mbit", "rtt": "40ms", "queue": "84p"},
    "record": {"bin": "1s"},
    "flow": [{"cc": "newreno"}],
}


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(work) -> float:
    start = time.process_time() + children()
    work()
    return time.process_time() + children() - start


def dumbbell(seconds: float) -> str:
    return knee.Scenario(
        path=DUMBBELL["path"], flows=DUMBBELL["flow"], duration=f"{seconds}s"
    ).toml()


def python(*words: str, text: str, before: tuple[str, ...] = ()) -> None:
    subprocess.run(
        [*before, sys.executable, *words],
        input=text,
        encoding="utf-8",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def compare_instructions(simulated_s: float) -> None:
    """Each less what a process does that runs nothing."""

    def count(*words: str) -> int:
        with tempfile.NamedTemporaryFile("r") as log:
            none = "--callgrind-out-file=/dev/null"
            valgrind = ("valgrind", "--tool=callgrind", none, f"--log-file={log.name}")
            python(*words, text=dumbbell(simulated_s), before=valgrind)
            return int(re.findall(r"Collected : (\d+)", log.read())[0])

    text = "import knee, sys; text = sys.stdin.read()"
    package = count("-c", f"{text}; str(knee.run(text))") - count("-c", text)
    command = count("-m", "knee", "run", "/dev/stdin") - count("-m", "knee", "--version")
    print("instructions of knee.run / those of knee run, start-up of both taken off:")
    print(f"  {package:,} / {command:,} = {package / command:.4f}")


def compare_times(pairs: int, short_runs: int) -> None:
    ratios = []
    scenario = dumbbell(60)
    for _ in range(pairs):
        start_up = seconds(lambda: python("-m", "knee", "--version", text=""))
        command = seconds(lambda: python("-m", "knee", "run", "/dev/stdin", text=scenario))
        ratios.append(seconds(lambda: str(knee.run(scenario))) / max(command - start_up, 1e-9))
    print("knee.run / knee run (processor time, start-up of the command taken off):")
    print(f"  median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")

    one = seconds(lambda: knee.run(SHORT, repeat=10_000)) / 10_000
    many = seconds(lambda: knee.run_many([SHORT] * short_runs)) / short_runs
    each = seconds(lambda: [knee.run(SHORT) for _ in range(1000)]) / 1000
    print(
        json.dumps(
            {
                "us_per_run_as_repetition": round(one * 1e6, 1),
                "us_per_run_in_run_many": round(many * 1e6, 1),
                "us_per_run_each_by_itself": round(each * 1e6, 1),
            },
            indent=1,
        )
    )


given = sys.argv[1:]
if given[:1] == ["instructions"]:
    compare_instructions(float(given[1]) if len(given) > 1 else 60)
else:
    pairs, short_runs = [int(word) for word in given] + [11, 10_000][len(given) :]
    compare_times(pairs, short_runs)
