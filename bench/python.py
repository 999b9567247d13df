"""What a run costs from Python, beside the command: pairs of both, and the overhead of short runs.

    python bench/python.py [PAIRS] [SHORT_RUNS]

Both are to be built with the same profile; `knee` is the one beside this Python.
"""

import json
import statistics
import subprocess
import sys
import time

import knee

DUMBBELL = {
    "duration": "60s",
    "path": {"rate": "100mbit", "rtt": "40ms", "queue": "333p"},
    "flow": [{"cc": "chd", "count": 16, "start_spacing": "6250us"}],
}
SHORT = {
    "duration": "1s",
    "path": {"rate": "10mbit", "rtt": "40ms", "queue": "84p"},
    "record": {"bin": "1s"},
    "flow": [{"cc": "newreno"}],
}
PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 11
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000


def seconds(work) -> float:
    start = time.process_time() + children()
    work()
    return time.process_time() + children() - start


def children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


scenario = knee.Scenario(
    path=DUMBBELL["path"], flows=DUMBBELL["flow"], duration=DUMBBELL["duration"]
).toml()
with open("/dev/null", "w") as nowhere:

    def command() -> None:
        subprocess.run(
            [sys.executable, "-m", "knee", "run", "/dev/stdin"],
            input=scenario,
            text=True,
            stdout=nowhere,
            check=True,
        )

    def nothing() -> None:
        subprocess.run([sys.executable, "-m", "knee", "--version"], stdout=nowhere, check=True)

    ratios = []
    for _ in range(PAIRS):
        start_up = seconds(nothing)
        ratios.append(
            seconds(lambda: str(knee.run(scenario))) / max(seconds(command) - start_up, 1e-9)
        )
print("knee.run / knee run (processor time, start-up of the command taken off):")
print(f"  median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")

one = seconds(lambda: knee.run(SHORT, repeat=10_000)) / 10_000
many = seconds(lambda: knee.run_many([SHORT] * RUNS)) / RUNS
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
