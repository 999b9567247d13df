"""Delay-based TCP congestion control: simulate, reproduce, measure.

import knee

results = knee.run("scenarios/chd/coexistence.toml", seed=1)
results.share("chd", from_s=20)
results.flows  # an Arrow table: polars.DataFrame(results.flows), pyarrow.table(results.flows)
"""

from knee._commands import algorithms, compare, duel, load_c, matrix, reproduce
from knee._errors import (
    AlgorithmError,
    CommandError,
    HostError,
    KneeError,
    ScenarioError,
    StudyError,
)
from knee._knee import __version__
from knee._runs import FlowName, Percentiles, Plot, Results, Table, run, run_many
from knee._scenario import Flow, Path, Scenario
from knee._sweep import DataSet, Status, sweep, sweep_rows
from knee._tune import tune

__all__ = [
    "AlgorithmError",
    "CommandError",
    "DataSet",
    "Flow",
    "FlowName",
    "HostError",
    "KneeError",
    "Path",
    "Percentiles",
    "Plot",
    "Results",
    "Scenario",
    "ScenarioError",
    "Status",
    "StudyError",
    "Table",
    "__version__",
    "algorithms",
    "compare",
    "duel",
    "load_c",
    "matrix",
    "reproduce",
    "run",
    "run_many",
    "sweep",
    "sweep_rows",
    "tune",
]
