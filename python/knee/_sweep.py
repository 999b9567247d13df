"""Studies: many runs on all cores, or on a cluster through an executor that exists."""

from __future__ import annotations

import concurrent.futures
import functools
import json
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from knee import _knee
from knee._errors import KneeError, ScenarioError, StudyError, count
from knee._scenario import Scenario, described, plain_json

Study: TypeAlias = "str | PathLike[str] | Mapping[str, object]"
"""A study: a file's path, TOML text, or a dict of tables (docs/how-to/sweep-parameters.md).

The `scenario` of a dict may be all that `knee.run` takes; a path, also in text, is relative to the
present folder.
"""

POLL_S = 0.1
"""Interval at which tasks without a notice of their end are polled, seconds."""


class Task(Protocol):
    """Work handed to an executor."""

    def done(self) -> bool:
        """True if it has ended."""
        ...

    def result(self) -> Any:  # noqa: ANN401
        """Its result; raises its exception."""
        ...


class Status(NamedTuple):
    """Finished part of a data set."""

    runs: int
    """Finished runs."""
    runs_all: int
    """All runs of the study."""
    shards: int
    """Finished shards."""
    shards_all: int
    """All shards of the study."""
    bytes: int
    """Size of the finished files, bytes."""
    complete: bool
    """Whether the data set is complete."""


class DataSet:
    """The data set of a study: a folder of Parquet files (docs/how-to/sweep-parameters.md)."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        """The one in `folder`.

        Raises:
            StudyError: There is none.
        """
        self.folder = fspath(folder)
        _knee.status(self.folder)

    @property
    def status(self) -> Status:
        """Finished part of it."""
        return Status(*_knee.status(self.folder))

    def table(self, name: str) -> _knee.Table:
        """The finished rows of a table, in memory: `runs`, `flows`, or a kept table."""
        return _knee.read_table(self.folder, name)

    @property
    def runs(self) -> _knee.Table:
        """One row for each run."""
        return self.table("runs")

    @property
    def flows(self) -> _knee.Table:
        """One row for each flow of each run."""
        return self.table("flows")

    def __repr__(self) -> str:
        """Its folder, and its finished part."""
        now = self.status
        return f"<knee.DataSet {self.folder}: {now.runs} of {now.runs_all} runs>"


def plan_of(study: Study) -> _knee.Plan:
    """A study, checked and cut into shards; warns of old spellings."""
    plan = _plan_of(study)
    for note in plan.notes:
        warnings.warn(note, FutureWarning, stacklevel=3)
    return plan


def _plan_of(study: Study) -> _knee.Plan:
    if isinstance(study, PathLike):
        return _knee.Plan.load(fspath(study))
    if isinstance(study, str):
        # As with scenarios: the name of a file has neither lines nor an equals sign.
        if "\n" in study or "=" in study:
            return _knee.Plan("<text>", study)
        return _knee.Plan.load(study)
    if not isinstance(study, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = f"{type(study).__name__} is no study"
        raise StudyError(what, "give a path, TOML text, or a dict")
    tables = dict(study)
    base = tables.get("scenario")
    text: str | None = None
    folder = ""
    if isinstance(base, PathLike):
        tables["scenario"] = fspath(cast("PathLike[str]", base))
    elif isinstance(base, Scenario | Mapping) or (isinstance(base, str) and "\n" in base):
        _, text, tables["scenario"] = described(cast("Scenario", base))
        folder = os.getcwd()
    try:
        plain = plain_json(tables)
    except ScenarioError as error:
        raise StudyError(error.what, error.help, key=error.key) from None
    return _knee.Plan("<dict>", _knee.toml_of(json.dumps(plain)), text, folder)


def sweep(
    study: Study,
    *,
    out: str | PathLike[str],
    executor: object | None = None,
    jobs: int | None = None,
) -> DataSet:
    """Runs a study and keeps its data set in the folder `out`.

    It does not repeat finished runs: after a crash, a kill or an error the same call resumes, and
    gives the same bytes. The files are those of `knee sweep`.

    Args:
        study: A file's path, TOML text, or a dict.
        out: Folder of the data set; all workers must see it.
        executor: Runs the shards: any `concurrent.futures.Executor`, a Dask `Client`, an
            executor of submitit; None: threads of this process, without Python's lock.
        jobs: Number of tasks that the shards are divided into, for executors that start a job for
            each task; default: a task for each shard. Without an executor: number of threads.

    Raises:
        StudyError: The study is not valid (with file, line, key and help); `out` holds something
            else; a worker died, after the others have ended.
    """
    for _ in _shards(plan_of(study), fspath(out), executor, jobs):
        pass
    return DataSet(out)


def sweep_rows(
    study: Study,
    *,
    out: str | PathLike[str],
    executor: object | None = None,
    jobs: int | None = None,
    table: str = "runs",
) -> Generator[_knee.Table, None, None]:
    """Like `sweep`; gives the rows of each shard when it is finished, and first those from before.

    Every row of the data set comes once. The order of the shards depends on the workers; sort by
    `run`. Closing the iterator ends the work: the remaining shards are not run.

    Raises:
        StudyError: As `sweep`; the study keeps no such `table`.
    """
    plan = plan_of(study)
    if table not in plan.tables:
        what = f"no table is called `{table}` in this study"
        raise StudyError(what, f"it keeps: {', '.join(plan.tables)}")
    folder = os.path.abspath(out)
    for number in _shards(plan, folder, executor, jobs):
        yield plan.read_shard(number, folder, table)


Parts: TypeAlias = "tuple[str, str, str, PathLike[str]]"
"""A plan as it travels to workers: name and text of the study, text and folder of its scenario."""


@functools.lru_cache(maxsize=4)
def plan_again(parts: Parts) -> _knee.Plan:
    """A plan from its parts; a worker makes it once for many shards."""
    return _knee.Plan(*parts)


def _write(plan: _knee.Plan, folder: str, numbers: list[int]) -> list[int]:
    for number in numbers:
        plan.write_shard(number, folder)
    return numbers


def _write_there(parts: Parts, folder: str, numbers: list[int]) -> list[int]:
    """Done by a worker, wherever it is."""
    try:
        return _write(plan_again(parts), folder, numbers)
    except KeyboardInterrupt:
        plan_again.cache_clear()  # It was told to stop.
        raise


class _Closable(Protocol):
    def close(self) -> None: ...


held: list[_Closable] = []
"""Files that this process has locked."""


def _let_go() -> None:
    """A forked worker that outlives this process must not go on holding its locks."""
    while held:
        held.pop().close()


os.register_at_fork(after_in_child=_let_go)


def _shards(plan: _knee.Plan, out: str, executor: object | None, jobs: int | None) -> Iterator[int]:
    """Runs the missing shards; gives the numbers of finished shards."""
    jobs = None if jobs is None else count("jobs", jobs, 1, 1_000_000, StudyError)
    if executor is not None:
        _submit_of(executor)
    folder = os.path.abspath(out)
    data = plan.begin(folder)
    held.append(data)
    try:
        missing = data.missing()
        left = set(missing)
        yield from (number for number in range(plan.shards) if number not in left)
        if executor is None:
            threads = concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count())
            try:
                own = [(plan, folder, [number]) for number in missing]
                yield from _carried_out(threads, _write, own)
            finally:
                # Ctrl-C, an error, or nobody wants the rest.
                plan.stop()
                threads.shutdown(cancel_futures=True)
        else:
            n = min(jobs or len(missing), len(missing))
            tasks = [(plan.parts, folder, missing[i::n]) for i in range(n)]
            yield from _carried_out(executor, _write_there, tasks)
        if not data.finish():
            what = f"workers wrote {len(data.missing())} shards to another place than {folder}"
            raise StudyError(what, "name a folder that all machines see")
    finally:
        held.remove(data)
        data.close()


def _carried_out(
    executor: object, work: Callable[..., object], arguments: Sequence[tuple[object, ...]]
) -> Iterator[int]:
    died: Exception | None = None
    tasks: list[Task] = []
    try:
        try:
            tasks = submitted(executor, work, arguments)
        except (RuntimeError, OSError) as error:
            died = error
        for task in finished(tasks):
            try:
                done = cast("list[int]", task.result())
            except KneeError:
                raise
            except Exception as error:
                # The worker died, not the work: the others go on.
                died = died or error
            else:
                yield from done
    finally:
        cancel(tasks)
    if died is not None:
        raise worker_died(died) from died


def worker_died(error: BaseException) -> StudyError:
    """The error about a dead worker, with its remedy."""
    what = f"a worker ended before its work was done ({type(error).__name__}: {error})"
    return StudyError(what, "call it again, with a new executor: finished shards are kept")


def _submit_of(executor: object) -> Callable[..., object]:
    submit = getattr(executor, "submit", None)
    if not callable(submit):
        what = f"{type(executor).__name__} is no executor"
        remedy = "give a concurrent.futures executor, a Dask Client, or one of submitit"
        raise StudyError(what, remedy)
    return submit


def submitted(
    executor: object, work: Callable[..., object], arguments: Sequence[tuple[object, ...]]
) -> list[Task]:
    """Hands work to an executor of any kind."""
    submit = _submit_of(executor)
    if callable(getattr(executor, "get_executor", None)):
        # A Dask client: its tasks are not pure functions, so equal ones are not made one. Futures
        # of its `get_executor` fail where a worker dies just after its task.
        submit = functools.partial(submit, pure=False)
    # submitit: one array of jobs in place of many single ones.
    as_array = getattr(executor, "map_array", None)
    if callable(as_array) and len(arguments) > 1:
        return list(cast("Iterable[Task]", as_array(work, *zip(*arguments, strict=True))))
    return [cast("Task", submit(work, *given)) for given in arguments]


def finished(tasks: Iterable[Task]) -> Iterator[Task]:
    """Tasks as they end."""
    waiting = list(tasks)
    if all(isinstance(task, concurrent.futures.Future) for task in waiting):
        futures = cast("list[concurrent.futures.Future[object]]", waiting)
        yield from concurrent.futures.as_completed(futures)
        return
    while waiting:
        ended = [task for task in waiting if task.done()]
        waiting = [task for task in waiting if task not in ended]
        yield from ended
        if waiting and not ended:
            time.sleep(POLL_S)


def cancel(tasks: Iterable[Task]) -> None:
    """Takes back what has not begun; of submitit, what runs too."""
    for task in tasks:
        stop = getattr(task, "cancel", None)
        if callable(stop) and not task.done():
            stop()
