"""Tuning: Optuna chooses parameters, studies measure them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from knee import _knee
from knee._errors import KneeError, ScenarioError, StudyError, count
from knee._scenario import Value, plain_json
from knee._sweep import (
    Parts,
    Study,
    Task,
    cancel,
    finished,
    held,
    plan_of,
    submitted,
    worker_died,
)

if TYPE_CHECKING:
    import optuna

Direction = Literal["maximize", "minimize"]

_QUANTITY = re.compile(
    r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)\s*([a-zA-Z%]*)", re.IGNORECASE
)
_COUNTED = ("p", "B")
"""Units of which there are whole numbers only."""
_DECIMALS = {"p": 0, "B": 0, "kB": 3, "bit": 0, "kbit": 3, "ns": 0, "us": 0, "ms": 3}
"""Resolution of numbers of a unit in a scenario; algorithms know nothing below us and ppm."""
_BINARY = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
"""Bytes in units of which decimals are no whole bytes."""
_KEYS = ("from", "to", "scale")


@dataclass(frozen=True)
class _Parameter:
    """A key of the scenario, and its range."""

    key: str
    unit: str
    low: float
    high: float
    log: bool
    integer: bool
    choices: tuple[Value, ...]

    @property
    def name(self) -> str:
        """Its name in Optuna, with the unit."""
        return f"{self.key}_{self.unit}" if self.unit else self.key

    def suggest(self, trial: optuna.Trial) -> Value:
        """A value, as a scenario has it."""
        if self.choices:
            return cast("Value", trial.suggest_categorical(self.name, cast("Any", self.choices)))
        if self.integer:
            low, high = int(self.low), int(self.high)
            return self.written(trial.suggest_int(self.name, low, high, log=self.log))
        chosen = trial.suggest_float(self.name, self.low, self.high, log=self.log)
        return self.written(chosen)

    def written(self, number: float) -> Value:
        """A number as a scenario has it."""
        if self.unit in _BINARY:
            return f"{round(number * _BINARY[self.unit])}B"
        decimals = _DECIMALS.get(self.unit, 6)
        if not self.unit:
            return number if self.integer else round(number, decimals)
        text = f"{number:.{decimals}f}"
        return (text.rstrip("0").rstrip(".") if decimals else text) + self.unit

    def middle(self) -> Value:
        """One of its values, as a scenario has it."""
        if self.choices:
            return self.choices[0]
        number = math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2
        return self.written(round(number) if self.integer else number)

    def number(self, value: Value) -> Value:
        """A written value as Optuna has it."""
        if self.choices:
            inside = value in self.choices
            number: Value = value
        else:
            number, unit = _quantity(self.key, value)
            inside = self.low <= number <= self.high and unit == self.unit
            if self.integer:
                inside, number = inside and number.is_integer(), int(number)
        if not inside:
            allowed = self.choices or f"{self.low:g}{self.unit} to {self.high:g}{self.unit}"
            what = f"{self.key} = {value} is not one of {allowed}"
            raise StudyError(what, "give points within the ranges, in their unit", key=self.key)
        return number


def _quantity(key: str, value: object) -> tuple[float, str]:
    value = _plain(key, value)
    number, unit = math.nan, ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str) and (match := _QUANTITY.fullmatch(value.strip())):
        number, unit = float(match[1]), match[2]
    if not math.isfinite(number):
        what = f"{key}: {value!r} is no quantity"
        raise StudyError(what, 'write a number, or text with a unit such as "20ms"', key=key)
    return number, unit


def _plain(key: str, value: object) -> Value:
    """A value of a parameter as JSON has it."""
    try:
        return cast("Value", plain_json(value, key))
    except ScenarioError as error:
        raise StudyError(error.what, error.help, key=key) from None


def _parameter(key: str, given: object) -> _Parameter:
    ranges = '{"from": "5ms", "to": "50ms"}, or a list of values'
    if isinstance(given, Sequence) and not isinstance(given, str):
        choices = tuple(_plain(key, value) for value in cast("Sequence[object]", given))
        if len(choices) < 2:
            raise StudyError(f"{key} has {len(choices)} values", f"write {ranges}", key=key)
        return _Parameter(key, "", 0, 0, False, False, choices)
    table = cast("Mapping[str, object]", given if isinstance(given, Mapping) else {})
    unknown = [name for name in table if name not in _KEYS]
    if unknown or "from" not in table or "to" not in table:
        what = f"{key}: no such key `{unknown[0]}`" if unknown else f"{key} is no range"
        raise StudyError(what, f"write {ranges}; keys: {', '.join(_KEYS)}", key=key)
    (low, unit), (high, other) = (_quantity(key, table[end]) for end in ("from", "to"))
    if unit != other:
        what = f"{key}: {table['from']} and {table['to']} have different units"
        raise StudyError(what, "write both ends in one unit", key=key)
    scale = table.get("scale", "linear")
    if scale not in ("linear", "log") or not low < high or (scale == "log" and low <= 0):
        what = f"{key}: from {table['from']} to {table['to']}, scale {scale}, holds no values"
        remedy = 'write the smaller value first; scale is "linear" or, above 0, "log"'
        raise StudyError(what, remedy, key=key)
    whole = unit in _COUNTED or all(
        isinstance(_plain(key, table[end]), int) for end in ("from", "to")
    )
    if whole and not (low.is_integer() and high.is_integer()):
        what = f"{key}: {table['from']} to {table['to']} are not whole numbers of {unit}"
        raise StudyError(what, f'write whole numbers, such as "{high:.0f}{unit}"', key=key)
    return _Parameter(key, unit, low, high, scale == "log", whole, ())


def _plan_at(parts: Parts, values: Mapping[str, Value], metrics: list[str]) -> _knee.Plan:
    """A study with one more axis for each value, that has only this value."""
    name, text, scenario, folder = parts
    tables = tomllib.loads(text)
    axes = {key: [_plain(key, value)] for key, value in values.items()}
    tables.setdefault("axes", {}).update(axes)
    tables.setdefault("keep", {}).update({"tables": ["runs"], "metrics": metrics})
    return _knee.Plan(name, _knee.toml_of(json.dumps(tables)), scenario, folder)


class _Stop:
    """Ends the trials in threads of this process."""

    def __init__(self) -> None:
        self.plans: set[_knee.Plan] = set()
        self.told = False

    def measured(self, parts: Parts, values: dict[str, Value], metrics: list[str]) -> list[float]:
        """Like `_measured`, until `tell` is called."""
        plan = _plan_at(parts, values, metrics)
        self.plans.add(plan)
        try:
            if self.told:
                plan.stop()
            return _means(plan, metrics)
        finally:
            self.plans.discard(plan)

    def tell(self) -> None:
        """Ends those that run and those that come."""
        self.told = True
        for plan in list(self.plans):
            plan.stop()


def _measured(parts: Parts, values: dict[str, Value], metrics: list[str]) -> list[float]:
    """Done by a worker: means over the runs of a study at one value of each parameter."""
    return _means(_plan_at(parts, values, metrics), metrics)


def _means(plan: _knee.Plan, metrics: list[str]) -> list[float]:
    runs = plan.run("runs")
    why = next((why for why in runs.column("failed") if why is not None), None)
    if why is not None:
        raise StudyError(f"a run failed: {why}", "choose ranges in which all runs succeed")
    means: list[float] = []
    for metric in metrics:
        column = [value for value in runs.column(metric) if value is not None]
        if not column:
            raise StudyError(f"{metric} is null in all runs", "choose another objective")
        means.append(sum(column) / len(column))
    return means


@contextlib.contextmanager
def _alone(journal: Path) -> Generator[None, None, None]:
    """Nobody else writes to the journal; a journal that a killed process left is repaired."""
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        file = open(journal, "a+b")  # noqa: SIM115
    except OSError as error:
        raise StudyError(f"cannot write {journal}: {error}", "choose another file") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another process is tuning with {journal}"
            raise StudyError(what, "wait for it, or name another storage") from None
        # Half a line, and Optuna's own lock.
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{journal}.lock")
        held.append(file)
        try:
            yield
        finally:
            held.remove(file)


def tune(
    study: Study,
    *,
    parameters: Mapping[str, object],
    objective: Mapping[str, Direction],
    storage: str | PathLike[str],
    trials: int,
    points: Sequence[Mapping[str, Value]] = (),
    executor: object | None = None,
    jobs: int | None = None,
    seed: int = 1,
    sampler: optuna.samplers.BaseSampler | None = None,
) -> optuna.Study:
    """Tunes parameters with Optuna: each trial runs a study and takes means over its runs.

    Every trial is kept in the journal `storage` when it ends. After a kill the same call resumes:
    trials that were running are made again.

    Args:
        study: The runs of each trial, such as some rates, RTTs and seeds.
        parameters: Keys of the scenario, each with a range `{"from": "5ms", "to": "60ms", "scale":
            "log"}` or a list of values. Packets, bytes, and numbers without a unit whose ends are
            integers stay whole.
        objective: Columns of the table `runs`, each with `maximize` or `minimize`. With several,
            `best_trials` is the Pareto front.
        storage: Optuna's journal, a file.
        trials: Number of trials in the end, those of earlier calls and failed ones included.
        points: Values that are tried first, such as a paper's.
        executor: As for `sweep`; a task is a trial.
        jobs: Trials at once; default: number of cores. With one, trials depend on the seed alone.
        seed: Seed of the sampler.
        sampler: Optuna's; default: the tree-structured Parzen estimator.

    Returns:
        Optuna's study. A trial's `user_attrs["values"]` are the scenario's values, and a failed
        one's `user_attrs["error"]` says why.

    Raises:
        StudyError: Something is wrong with the arguments; the journal is of another study; a worker
            died; all trials failed.
    """
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise StudyError("Optuna is not installed", "pip install '.[tune]' in a checkout") from None
    for name, given in (("parameters", parameters), ("objective", objective)):
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise StudyError(f"{name} is no dict", "see help(knee.tune)")
    wanted = [_parameter(key, given) for key, given in parameters.items()]
    trials = count("trials", trials, 0, 1_000_000_000, StudyError)
    cores = os.cpu_count() or 1
    at_once = count("jobs", cores if jobs is None else jobs, 0, 1_000_000, StudyError)
    if not wanted or not objective or not trials or not at_once:
        what = "there must be parameters, an objective, and at least one trial and job"
        raise StudyError(what, "see help(knee.tune)")
    for metric, direction in objective.items():
        if direction not in ("maximize", "minimize"):
            what = f"{metric}: {direction!r} is no direction"
            raise StudyError(what, 'write "maximize" or "minimize"')
    plan = plan_of(study)
    named = {parameter.key: parameter for parameter in wanted}
    first = [_point(named, point) for point in points]
    # A mistake in a key or a metric is told before anything is kept.
    tried = {parameter.key: parameter.middle() for parameter in wanted}
    _plan_at(plan.parts, {**tried, **(points[0] if points else {})}, list(objective))
    journal = Path(fspath(storage))
    with _alone(journal):
        backend = JournalFileBackend(str(journal))
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            made = optuna.create_study(
                storage=optuna.storages.JournalStorage(backend),
                study_name="knee",
                directions=list(objective.values()),
                load_if_exists=True,
            )
            _same(made, plan, wanted, objective, journal)
            for point in first:
                made.enqueue_trial(point, skip_if_exists=True)
        finally:
            optuna.logging.set_verbosity(verbosity)
        # Another seed when it goes on, or it would draw the first values again.
        made.sampler = sampler or optuna.samplers.TPESampler(seed=seed + len(made.trials))
        running = optuna.trial.TrialState.RUNNING
        for trial in made.get_trials(deepcopy=False, states=(running,)):
            again = trial.params or trial.system_attrs.get("fixed_params", {})
            made.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            made.enqueue_trial(again, user_attrs={"again": trial.number})
        metrics = list(objective)
        if executor is not None:
            _run(made, plan, wanted, metrics, trials, executor, _measured, at_once)
            return made
        stop = _Stop()
        with ThreadPoolExecutor(at_once) as own:
            try:
                _run(made, plan, wanted, metrics, trials, own, stop.measured, at_once)
            finally:
                stop.tell()
    return made


def _point(named: Mapping[str, _Parameter], point: Mapping[str, Value]) -> dict[str, Value]:
    unknown = [key for key in point if key not in named]
    if unknown:
        raise StudyError(f"{unknown[0]} is no parameter", f"parameters: {', '.join(named)}")
    return {named[key].name: named[key].number(value) for key, value in point.items()}


def _same(
    made: optuna.Study,
    plan: _knee.Plan,
    wanted: list[_Parameter],
    objective: Mapping[str, Direction],
    journal: Path,
) -> None:
    """The journal belongs to one study, its parameters and its objective."""
    now = {
        "study": plan.text,
        "scenario": plan.scenario,
        "parameters": repr(wanted),
        "objective": json.dumps(objective),
    }
    for what, value in now.items():
        was = made.user_attrs.get(f"knee.{what}")
        if was is None:
            made.set_user_attr(f"knee.{what}", value)
        elif was != value:
            raise StudyError(f"{journal} is of another {what}", "name another storage")


def _run(
    made: optuna.Study,
    plan: _knee.Plan,
    wanted: list[_Parameter],
    metrics: list[str],
    trials: int,
    executor: object,
    measured: Callable[[Parts, dict[str, Value], list[str]], list[float]],
    at_once: int,
) -> None:
    import optuna

    fail = optuna.trial.TrialState.FAIL
    running: dict[int, tuple[optuna.Trial, Task]] = {}
    reason: KneeError | None = None

    def left() -> int:
        """Trials that were taken up again count once."""
        waiting = optuna.trial.TrialState.WAITING
        ended = made.get_trials(deepcopy=False)
        again = sum("again" in trial.user_attrs for trial in ended)
        return trials - sum(trial.state != waiting for trial in ended) + again

    try:
        while running or left() > 0:
            while len(running) < at_once and left() > 0:
                trial = made.ask()
                values = {parameter.key: parameter.suggest(trial) for parameter in wanted}
                trial.set_user_attr("values", values)
                try:
                    task = submitted(executor, measured, [(plan.parts, values, metrics)])[0]
                except (RuntimeError, OSError) as error:
                    raise worker_died(error) from error
                running[id(task)] = (trial, task)
            task = next(finished(task for _, task in running.values()))
            trial, _ = running.pop(id(task))
            try:
                made.tell(trial, cast("list[float]", task.result()))
            except KneeError as error:
                reason = error
                trial.set_user_attr("error", str(error))
                made.tell(trial, state=fail)
            except Exception as error:
                # Left as running: the next call makes it again.
                raise worker_died(error) from error
    finally:
        cancel(task for _, task in running.values())
    if reason is not None and not made.get_trials(
        deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,)
    ):
        what = f"all trials failed; the last one: {reason.what}"
        raise StudyError(what, reason.help, reason.file, reason.line, reason.key)
