"""Tuning: Optuna receives the values that the study measured, and a kill loses no trial."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import knee

optuna = pytest.importorskip("optuna")

STUDY: dict[str, object] = {
    "scenario": knee.Scenario(
        path=knee.Path(rate="10mbit", rtt="40ms", queue="84p"),
        flows=[knee.Flow("chd", name="flow")],
        duration="4s",
    ),
    "repeat": 2,
    "axes": {"path.rate": ["4mbit", "10mbit"]},
}
KEYS: dict[str, Any] = {
    "parameters": {
        "flow.0.params.qth": {"from": "10ms", "to": "80ms", "scale": "log"},
        "flow.0.params.pmax": [0.25, 0.5],
    },
    "objective": {"utilisation": "maximize", "queueing_delay_p95_ms": "minimize"},
    "points": [{"flow.0.params.qth": "30ms", "flow.0.params.pmax": 0.25}],
}
# Lines of the journal: a trial was made, a trial was told its values.
MADE, TOLD = b'"op_code":4,', b'"op_code":6,'


def shown(tuned: Any) -> list[tuple[object, ...]]:
    return [(t.user_attrs.get("values"), t.values, t.state.name) for t in tuned.trials]


def test_trials_are_measured_by_the_study(tmp_path: Path) -> None:
    journal = tmp_path / "tune.journal"
    tuned = knee.tune(STUDY, **KEYS, storage=journal, trials=6, jobs=1)
    assert [trial.state.name for trial in tuned.trials] == ["COMPLETE"] * 6
    # The first point, measured by other means.
    first = tuned.trials[0]
    assert first.user_attrs["values"] == {"flow.0.params.qth": "30ms", "flow.0.params.pmax": 0.25}
    scenario = STUDY["scenario"]
    runs = [
        knee.run(scenario, seed=seed, set={"path.rate": rate, "flow.0.params.qth": "30ms"})  # pyright: ignore
        for rate in ("4mbit", "10mbit")
        for seed in (1, 2)
    ]
    assert first.values[0] == pytest.approx(sum(run.utilisation() or 0 for run in runs) / 4)
    assert 1 <= len(tuned.best_trials) <= 6
    # The same seed, the same trials; in parts, none is made twice.
    again = knee.tune(STUDY, **KEYS, storage=tmp_path / "again.journal", trials=6, jobs=1)
    six = shown(tuned)
    assert shown(again) == six
    more = knee.tune(STUDY, **KEYS, storage=journal, trials=9)
    assert len(more.trials) == 9 and shown(more)[:6] == six
    assert len({str(trial.params) for trial in more.trials}) == 9


def test_a_killed_tuning_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "tune.journal"
    text = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import knee, test_tune
knee.tune(test_tune.STUDY, **test_tune.KEYS, storage={str(journal)!r}, trials=100000, jobs=2)
"""
    driver = subprocess.Popen([sys.executable, "-c", text])
    while not (journal.exists() and journal.read_bytes().count(TOLD) >= 8):
        assert driver.poll() is None
        time.sleep(0.01)
    with pytest.raises(knee.StudyError, match="another process is tuning"):
        knee.tune(STUDY, **KEYS, storage=journal, trials=1)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    before = sum(MADE in line for line in journal.read_bytes().split(b"\n")[:-1])
    # As if it had died while it wrote a line.
    with open(journal, "ab") as file:
        file.write(b'{"op_code":')
    tuned = knee.tune(STUDY, **KEYS, storage=journal, trials=before + 5, jobs=2)
    states = [trial.state.name for trial in tuned.trials]
    # Each one that was running is made again.
    again = [trial for trial in tuned.trials if "again" in trial.user_attrs]
    assert states.count("COMPLETE") == before + 5
    assert states.count("FAIL") == len(again) == len(states) - before - 5
    for trial in again:
        killed = tuned.trials[trial.user_attrs["again"]]
        assert killed.state.name == "FAIL" and trial.state.name == "COMPLETE"
        assert killed.params.items() <= trial.params.items()


def test_processes_tune_too(tmp_path: Path) -> None:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        keys = {**KEYS, "storage": tmp_path / "journal", "jobs": 2}
        tuned = knee.tune(STUDY, **keys, trials=4, executor=executor)
        assert len(tuned.trials) == 4
    with pytest.raises(knee.StudyError, match="a worker ended"):
        knee.tune(STUDY, **keys, trials=6, executor=executor)
    assert len(knee.tune(STUDY, **keys, trials=6).best_trials) >= 1


QUEUE: dict[str, object] = {"path.queue": {"from": "10p", "to": "100p"}}


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [
        ("10p", "100p", "linear"),
        ("10p", "100p", "log"),
        ("15000B", "90000B", "linear"),
        ("15000B", "90000B", "log"),
        ("15kB", "90kB", "log"),
        ("15KiB", "90KiB", "linear"),
    ],
)
def test_counts_are_whole(low: str, high: str, scale: str, tmp_path: Path) -> None:
    keys = {**KEYS, "parameters": {"path.queue": {"from": low, "to": high, "scale": scale}}}
    keys["points"] = [{"path.queue": low}]
    tuned = knee.tune(STUDY, **keys, storage=tmp_path / "journal", trials=5)
    assert [trial.state.name for trial in tuned.trials] == ["COMPLETE"] * 5
    if low == "10p":
        pkts = [trial.user_attrs["values"]["path.queue"] for trial in tuned.trials]
        assert pkts[0] == "10p" and all(10 <= int(value[:-1]) <= 100 for value in pkts)


def test_numbers_are_written_as_scenarios_read_them() -> None:
    from knee._tune import _parameter  # pyright: ignore[reportPrivateUsage]

    for low, high, number, written in [
        ("1us", "1s", None, None),
        ("1s", "2s", 0.000009, "0.000009s"),
        ("1B", "99999999999B", 12345678901, "12345678901B"),
        ("100p", "200p", 100, "100p"),
        ("1bit", "9bit", 2.4, "2bit"),
        ("1ms", "9ms", 2.0, "2ms"),
        ("1KiB", "9KiB", 1.3, "1331B"),
        (1, 9, 3, 3),
        (1.0, 9, 1 / 3, 0.333333),
    ]:
        if number is None:
            with pytest.raises(knee.StudyError, match="different units"):
                _parameter("key", {"from": low, "to": high})
        else:
            assert _parameter("key", {"from": low, "to": high}).written(number) == written


def test_ctrl_c_ends_the_trials(tmp_path: Path) -> None:
    keys = {**KEYS, "storage": str(tmp_path / "journal"), "trials": 4, "jobs": 2}
    code = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(Path(__file__).parent)!r})
import knee, test_tune
study = {{**test_tune.STUDY, "axes": {{"path.rate": ["1gbit"], "duration": ["10000s"]}}}}
knee.tune(study, **{keys!r})
"""
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as driver:
        journal = tmp_path / "journal"
        while not (journal.exists() and journal.read_bytes().count(MADE) >= 2):
            assert driver.poll() is None
            time.sleep(0.01)
        time.sleep(0.5)
        sent = time.monotonic()
        driver.send_signal(signal.SIGINT)
        _, said = driver.communicate()
    assert time.monotonic() - sent < 20
    assert driver.returncode != 0 and "KeyboardInterrupt" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parameters": {}}, "there must be parameters"),
        ({"trials": 0}, "at least one trial"),
        ({"objective": {"utilisation": "up"}}, "'up' is no direction"),
        ({"objective": {"utilization": "maximize"}}, "did you mean `utilisation`"),
        ({"parameters": {"flow.0.params.qthh": [1, 2]}, "points": ()}, "qthh"),
        ({"parameters": {"flow.0.params.qth": {"from": "9ms"}}}, "is no range"),
        ({"parameters": {"flow.0.params.qth": {"from": "9ms", "to": "1s"}}}, "different units"),
        ({"parameters": {"flow.0.params.qth": {"from": "9ms", "to": "5ms"}}}, "holds no values"),
        ({"points": [{"flow.0.params.qth": "90ms"}]}, "is not one of 10ms to 80ms"),
        ({"points": [{"flow.0.params.qmin": "9ms"}]}, "is no parameter"),
        ({"executor": 3}, "no executor"),
        ({"trials": 1.5}, "trials = 1.5"),
        ({"jobs": 0}, "at least one"),
        ({"jobs": 1.5}, "jobs = 1.5"),
        ({"parameters": None}, "parameters is no dict"),
        ({"objective": ["utilisation"]}, "objective is no dict"),
        ({"parameters": {"flow.0.params.qth": {"from": "1.2.3ms", "to": "9ms"}}}, "no quantity"),
        ({"parameters": {"flow.0.params.pmax": {"from": 0, "to": float("inf")}}}, "pmax: inf is"),
        ({"parameters": {"flow.0.params.pmax": [0.5, float("nan")]}}, "pmax.*nan is"),
        ({"parameters": {"flow.0.params.pmax": {"from": 0, "to": 10**30}}}, "pmax: the integer"),
        ({"parameters": {"path.queue": {"from": "1.5p", "to": "9p"}}}, "whole numbers of p"),
        ({"parameters": QUEUE, "points": [{"path.queue": "20.5p"}]}, "is not one of 10p to 100p"),
    ],
)
def test_bad_input(changes: dict[str, object], said: str, tmp_path: Path) -> None:
    keys = {**KEYS, "trials": 2, **changes}
    with pytest.raises(knee.KneeError, match=said):
        knee.tune(STUDY, **keys, storage=tmp_path / "journal")


def test_a_journal_belongs_to_one_study(tmp_path: Path) -> None:
    keys = {**KEYS, "storage": tmp_path / "journal", "trials": 1}
    knee.tune(STUDY, **keys)
    with pytest.raises(knee.StudyError, match="is of another study"):
        knee.tune({**STUDY, "repeat": 3}, **keys)
    # Values that no scenario has: each trial says so, and all of them together are an error.
    keys = {**keys, "storage": tmp_path / "other", "points": (), "trials": 3}
    keys["parameters"] = {
        "flow.0.params.qmin": ["1ms", "90ms"],
        "flow.0.params.qth": ["30ms", "40ms"],
    }
    tuned = knee.tune(STUDY, **{**keys, "trials": 8})
    failed = [trial for trial in tuned.trials if trial.state.name == "FAIL"]
    assert failed and all("qmin" in trial.user_attrs["error"] for trial in failed)
