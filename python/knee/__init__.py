"""Delay-based TCP congestion control: simulate, reproduce, measure.

import knee

results = knee.run("scenarios/chd/coexistence.toml", seed=1)
results.share("chd", from_s=20)
results.flows  # an Arrow table: polars.DataFrame(results.flows), pyarrow.table(results.flows)
"""

from knee import contract
from knee._algorithm import (
    SSTHRESH_INFINITE,
    Ack,
    Algorithm,
    Conn,
    Event,
    Parameter,
    Phase,
    Round,
    load_functions,
)
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
from knee._runs import FlowName, Metric, Percentiles, Plot, Results, Table, metrics, run, run_many
from knee._scenario import Flow, Path, Scenario
from knee._sweep import DataSet, Status, sweep, sweep_rows
from knee._tune import tune

__all__ = [
    "SSTHRESH_INFINITE",
    "Ack",
    "Algorithm",
    "AlgorithmError",
    "CommandError",
    "Conn",
    "DataSet",
    "Event",
    "Flow",
    "FlowName",
    "HostError",
    "KneeError",
    "Metric",
    "Parameter",
    "Path",
    "Percentiles",
    "Phase",
    "Plot",
    "Results",
    "Round",
    "Scenario",
    "ScenarioError",
    "Status",
    "StudyError",
    "Table",
    "__version__",
    "algorithms",
    "compare",
    "contract",
    "duel",
    "load_c",
    "load_functions",
    "matrix",
    "metrics",
    "reproduce",
    "run",
    "run_many",
    "sweep",
    "sweep_rows",
    "tune",
]
