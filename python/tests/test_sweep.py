"""Sweeps on threads, processes, Dask and submitit: the same bytes, whatever is killed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import knee

pa = pytest.importorskip("pyarrow")

BASE = """\
duration = "20s"
[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
[[flow]]
cc = "chd"
start_jitter = "10ms"
"""
STUDY = """\
scenario = "base.toml"
repeat = 4
runs_per_shard = 4
[axes]
path.loss_forward = [0, 0.01]
flow.0.cc = ["chd", "newreno"]
path.rtt = { from = "10ms", to = "80ms", steps = 2 }
"""
SHARDS, RUNS = 8, 32


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that the command writes."""
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "base.toml").write_text(BASE)
    (place / "study.toml").write_text(STUDY)
    words = ["sweep", "study.toml", "--out", "data"]
    subprocess.run([sys.executable, "-m", "knee", *words], cwd=place, check=True)
    return files(place / "data")


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def parts(folder: Path) -> int:
    return len(list((folder / "runs").rglob("part-*")))


def until(met: Callable[[], object]) -> None:
    """Waits until `met` returns a true value."""
    while not met():
        time.sleep(0.002)


def pool(workers: int = 2) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def test_threads_write_the_same_as_the_command(
    study: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    assert len([name for name in undisturbed if name.endswith(".parquet")]) == 2 * SHARDS
    data = knee.sweep(study, out=tmp_path / "data")
    assert files(tmp_path / "data") == undisturbed
    assert data.status == knee.Status(RUNS, RUNS, SHARDS, SHARDS, data.status.bytes, True)
    runs = pa.table(data.runs)
    assert sorted(runs["run"].to_pylist()) == list(range(RUNS))
    assert data.runs.column("goodput_bps") == runs["goodput_bps"].to_pylist()
    # As one run has it.
    run = next(row for row in runs.to_pylist() if row["run"] == RUNS - 1)
    alone = knee.run(
        study.with_name("base.toml"),
        seed=run["seed"],
        set={"path.loss_forward": 0.01, "flow.0.cc": "newreno", "path.rtt": "80ms"},
    )
    assert run["utilisation"] == alone.utilisation()
    assert len(data.flows) == RUNS
    with pytest.raises(knee.StudyError, match="did you mean `flows`"):
        data.table("flow")


def test_a_process_pool_streams_rows(
    study: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    seen: list[object] = []
    with pool() as executor:
        rows = knee.sweep_rows(study, out=out, executor=executor)
        for table in rows:
            seen += table.column("run")
            if len(seen) >= RUNS // 2:
                break
        rows.close()
    assert len(seen) < RUNS
    # Those from before come first, each once.
    with pool() as executor:
        tables = list(knee.sweep_rows(study, out=out, executor=executor, jobs=2))
    assert sorted(run for table in tables for run in table.column("run")) == list(range(RUNS))
    assert files(out) == undisturbed


def test_a_killed_worker_loses_nothing(
    study: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    with pool() as executor:
        victims = [executor.submit(os.getpid) for _ in range(2)]
        with ThreadPoolExecutor(1) as killer:

            def kill() -> None:
                until(lambda: parts(out) >= 2)
                os.kill(victims[0].result(), signal.SIGKILL)

            killed = killer.submit(kill)
            with pytest.raises(knee.StudyError, match="a worker ended") as caught:
                knee.sweep(study, out=out, executor=executor)
            killed.result()
    assert caught.value.help and "call it again" in caught.value.help
    assert 2 <= parts(out) < SHARDS
    # The pool is broken; so is one that was shut down.
    for dead in (executor, None):
        if dead is None:
            dead = ThreadPoolExecutor()
            dead.shutdown()
        with pytest.raises(knee.StudyError, match="a worker ended"):
            knee.sweep(study, out=out, executor=dead)
    with pool() as executor:
        knee.sweep(study, out=out, executor=executor)
    assert files(out) == undisturbed


def test_a_killed_driver_loses_nothing(
    study: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    # Its forked workers outlive it, and still nothing is locked.
    text = f"""
import knee, multiprocessing
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as executor:
    knee.sweep({str(study)!r}, out={str(out)!r}, executor=executor)
"""
    driver = subprocess.Popen([sys.executable, "-c", text], start_new_session=True)
    until(lambda: parts(out) >= 2 or driver.poll() is not None)
    driver.kill()
    driver.wait()
    try:
        assert parts(out) >= 2
        knee.sweep(study, out=out)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
    # The files of killed workers that were not complete have no name; the next call removes them.
    named = {name: of for name, of in files(out).items() if "unfinished" not in name}
    assert named == undisturbed


def test_a_dask_cluster_replaces_a_killed_worker(
    study: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    out = tmp_path / "data"
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    )
    with cluster, distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        rows = knee.sweep_rows(study, out=out, executor=client)
        seen = list(next(rows).column("run"))
        os.kill(victim, signal.SIGKILL)
        seen += [run for table in rows for run in table.column("run")]
    assert sorted(seen) == list(range(RUNS))
    assert files(out) == undisturbed


def test_submitit_runs_jobs(study: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    executor = submitit.AutoExecutor(tmp_path / "logs", cluster="local")
    executor.update_parameters(timeout_min=5)
    knee.sweep(study, out=tmp_path / "data", executor=executor, jobs=2)
    assert files(tmp_path / "data") == undisturbed


def test_studies_of_text_and_dicts(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.parent)
    built = {
        "scenario": knee.Scenario(
            path=knee.Path(rate="10mbit", rtt="40ms", queue="84p"),
            flows=[knee.Flow("chd", start_jitter="10ms")],
            duration="20s",
        ),
        "axes": {"path.rtt": ["10ms", "20ms"]},
    }
    text = 'scenario = "base.toml"\naxes = { path.rtt = ["10ms", "20ms"] }\n'
    wholes = [
        knee.sweep(given, out=f"data-{i}", jobs=1).runs
        for i, given in enumerate((text, built, {**built, "scenario": "base.toml"}))
    ]
    ids = [whole.column("run_id") for whole in wholes]
    assert len(ids[0]) == 2 and ids[0] == ids[1] == ids[2]


@pytest.mark.parametrize(
    ("change", "key", "line", "said", "remedy"),
    [
        (("[0, 0.01]", "[]"), "path.loss_forward", 5, "makes no runs", "write a list"),
        (("steps = 2", "steps = 0"), "steps", 7, "makes no runs", "steps = 2"),
        (("[0, 0.01]", '["1"]'), None, 5, "loss", ""),
        (("path.rtt", "path.rrt"), "path.rrt", 7, "no such key", "did you mean `rtt`"),
        (("repeat = 4", 'repeat = "4"'), "repeat", 2, "repeat is text", "an integer from 1"),
    ],
)
def test_mistakes_have_a_place(
    study: Path, change: tuple[str, str], key: str | None, line: int, said: str, remedy: str
) -> None:
    study.write_text(STUDY.replace(*change))
    with pytest.raises(knee.StudyError, match=said) as caught:
        knee.sweep(study, out=study.parent / "data")
    error = caught.value
    assert (error.file, error.line) == (str(study), line)
    assert error.help and remedy in error.help
    assert key is None or error.key is None or key.endswith(error.key), error.key
    assert not (study.parent / "data").exists()


def test_other_mistakes(study: Path, tmp_path: Path) -> None:
    for given, keys, said in [
        (tmp_path / "nothing.toml", {}, "no such file"),
        (3, {}, "int is no study"),
        (study, {"executor": 3}, "int is no executor"),
        (study, {"jobs": 0}, "jobs = 0"),
        (study, {"jobs": 1.5}, "jobs = 1.5"),
    ]:
        with pytest.raises(knee.StudyError, match=said):
            knee.sweep(given, out=tmp_path / "data", **keys)  # pyright: ignore
    with pytest.raises(knee.StudyError, match="no data set"):
        knee.DataSet(tmp_path)
    with pytest.raises(knee.StudyError, match="holds no data set, but"):
        knee.sweep(study, out=tmp_path)
    with pytest.raises(knee.StudyError, match=r"path\.loss_forward\.1: nan is not allowed"):
        axes = {"path.loss_forward": [0, float("nan")]}
        knee.sweep({"scenario": BASE, "axes": axes}, out=tmp_path / "data")
    # Before the first run: not even the folder is made.
    for table in ("foo", "flow_series"):
        with pytest.raises(knee.StudyError, match=f"no table is called `{table}`.*\n.*runs, flows"):
            next(knee.sweep_rows(study, out=tmp_path / "data", table=table))
    assert not (tmp_path / "data").exists()
    rows = knee.sweep_rows(study, out=tmp_path / "data")
    next(rows)
    with pytest.raises(knee.StudyError, match="another knee is writing"):
        knee.sweep(study, out=tmp_path / "data")
    rows.close()
    study.write_text(STUDY.replace("0.01", "0.02"))
    with pytest.raises(knee.StudyError, match=r"line 5 of its study\.toml"):
        knee.sweep(study, out=tmp_path / "data")


def _small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))


def test_a_full_disk_is_told_and_gone_on_from(
    study: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    executor = ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=_small_files)
    with executor, pytest.raises(knee.StudyError, match="cannot write") as caught:
        knee.sweep(study, out=tmp_path / "data", executor=executor)
    assert caught.value.help and "run the same command again" in caught.value.help
    assert not [name for name in files(tmp_path / "data") if "unfinished" in name]
    knee.sweep(study, out=tmp_path / "data")
    assert files(tmp_path / "data") == undisturbed


def test_ctrl_c_ends_runs_under_way(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY + 'duration = ["10000s"]\npath.rate = ["1gbit"]\n')
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import knee
knee.sweep({str(study)!r}, out={str(tmp_path / "data")!r}, jobs=2)
"""
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as driver:
        until((tmp_path / "data").exists)
        time.sleep(1)
        sent = time.monotonic()
        driver.send_signal(signal.SIGINT)
        _, said = driver.communicate()
    assert time.monotonic() - sent < 20
    assert driver.returncode != 0 and "KeyboardInterrupt" in said
    assert parts(tmp_path / "data") == 0
