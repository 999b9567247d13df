"""CHD's qmin, qth and pmax: the front of delay against goodput, beside the paper's constants.

python studies/chd-tune/tune.py [TRIALS [JOURNAL]]
"""

import sys
from pathlib import Path

import knee

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "chd-tune.journal"
PAPER = {
    "flow.0.params.qmin": "5ms",
    "flow.0.params.qth": "30ms",
    "flow.0.params.pmax": 0.25,
}

tuned = knee.tune(
    Path(__file__).with_name("study.toml"),
    parameters={
        "flow.0.params.qmin": {"from": "1ms", "to": "8ms", "scale": "log"},
        "flow.0.params.qth": {"from": "9ms", "to": "90ms", "scale": "log"},
        "flow.0.params.pmax": {"from": 0.05, "to": 1.0},
    },
    # Rates differ: utilisation makes their goodputs comparable.
    objective={"utilisation": "maximize", "queueing_delay_p95_ms": "minimize"},
    points=[PAPER],
    storage=JOURNAL,
    trials=TRIALS,
)

front = {trial.number for trial in tuned.best_trials}
rows = [trial for trial in tuned.trials if trial.values and trial.number in front | {0}]
print("      qmin       qth   pmax  utilisation  delay, 95th percentile")
for trial in sorted(rows, key=lambda trial: trial.values):
    qmin, qth, pmax = trial.user_attrs["values"].values()
    utilisation, delay_ms = trial.values
    mark = "  the paper's" if trial.number == 0 else ""
    if trial.number == 0 and trial.number not in front:
        mark += ", not on the front"
    print(f"{qmin:>10}{qth:>10}{pmax:7.3f}{utilisation:13.3f}{delay_ms:20.1f} ms{mark}")
