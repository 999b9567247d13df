"""The environment: Gymnasium's own check, the same numbers for the same seeds, and learning."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import knee

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")
import knee.gym as kg  # noqa: E402

ROOT = Path(__file__).parents[2]


def scenario(rate: str = "10mbit", duration: str = "2s", **path: Any) -> knee.Scenario:
    flows = [knee.Flow("agent"), knee.Flow("newreno", start="300ms", start_jitter="50ms")]
    return knee.Scenario(
        path=knee.Path(rate=rate, rtt="40ms", queue="84p", **path), flows=flows, duration=duration
    )


def test_gymnasiums_checker() -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Unbounded spaces are meant: no path has a largest rate or delay.
        warnings.filterwarnings("ignore", message=".*(infinity|recommend).*")
        check_env(kg.OnePath(scenario()), skip_render_check=True)


def played(paths: Any, seed: Any, steps: int, actions: Any = None) -> list[Any]:
    seen = [paths.reset(seed=seed)[0]]
    generator = np.random.default_rng(5)
    given = generator.uniform(-1, 1, (steps, paths.num_envs, 1)) if actions is None else actions
    for action in given:
        observations, rewards, terminations, truncations, _ = paths.step(action)
        assert observations in paths.observation_space
        assert not terminations.any()
        seen += [observations, rewards, truncations]
    return seen


def test_the_same_seeds_give_the_same_bits() -> None:
    scenarios = [scenario(), scenario("5mbit", loss_forward=0.01)]
    first, second = (played(kg.VectorPaths(scenarios, 6), 3, 50) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    other = played(kg.VectorPaths(scenarios, 6), 4, 50)
    assert not all((a == b).all() for a, b in zip(first, other, strict=True))
    # Path 2 of seed 3 is path 0 of seed 5, alone or not.
    actions = np.random.default_rng(5).uniform(-1, 1, (50, 6, 1))
    alone = played(kg.VectorPaths(scenarios), 5, 50, actions[:, 2:3])
    assert all((a[2] == b[0]).all() for a, b in zip(first, alone, strict=True))


def test_observations_are_the_results() -> None:
    flows = [knee.Flow("agent")]
    path = knee.Path(rate="10mbit", rtt="40ms", queue="84p")
    one = knee.Scenario(path=path, flows=flows, duration="10s")
    paths = kg.VectorPaths(one, interval="100ms")
    seen = kg.Observed(*paths.reset(seed=1)[0][0])
    for _ in range(80):
        # 40 ms of 10 Mbit/s are 33 packets.
        ratio = 40 / float(seen.cwnd_pkts)
        action = ratio - 1 if ratio >= 1 else 1 - 1 / ratio
        seen = kg.Observed(*paths.step([[float(np.clip(action, -1, 1))]])[0][0])
    assert seen.cwnd_pkts == pytest.approx(40, abs=0.01)
    assert seen.delivered_mbit_s == pytest.approx(10 * 1448 / 1500, rel=0.02)
    assert seen.rtt_min_ms == pytest.approx(41.2, abs=1)
    # Six packets stand in the queue.
    assert seen.rtt_mean_ms == pytest.approx(40 * 1.2, rel=0.05)
    assert seen.loss == 0 and abs(seen.rtt_gradient) < 0.01


def test_episodes_follow_one_another() -> None:
    paths = kg.VectorPaths([scenario(duration="1s"), scenario(duration="500ms")], 8)
    _, infos = paths.reset(seed=0)
    assert {0, 1} == set(infos["scenario"])
    over = np.zeros(8, dtype=bool)
    ends = np.zeros(8, dtype=int)
    for _ in range(40):
        _, rewards, _, truncations, _ = paths.step(np.zeros((8, 1)))
        assert (rewards[over] == 0).all() and not truncations[over].any()
        over = truncations
        ends += truncations
    assert (ends >= 4).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: kg.VectorPaths([]), "no scenarios"),
        (lambda: kg.VectorPaths(scenario(), 0), "num_envs = 0"),
        (lambda: kg.VectorPaths(scenario(), 10**7), "num_envs = 10000000"),
        (lambda: kg.VectorPaths(scenario(), 1.5), "num_envs = 1.5"),  # pyright: ignore
        (lambda: played(kg.VectorPaths(scenario(), reward=lambda _: None), 0, 1), "the reward"),  # pyright: ignore
        (
            lambda: played(kg.VectorPaths(scenario(), 2, reward=lambda _: np.ones(3)), 0, 1),
            "the reward",
        ),
        (lambda: kg.VectorPaths(scenario(), interval="100"), "interval"),
        (lambda: kg.VectorPaths(scenario(), interval="0s"), "interval is 0"),
        (lambda: kg.VectorPaths(scenario(), set={"flow.0.cc": "chd"}), "0 flows have `cc"),
        (lambda: kg.VectorPaths(scenario(), set={"flow.1.cc": "agent"}), "2 flows have `cc"),
        (lambda: kg.VectorPaths(scenario("ten")), "path.rate"),
        (lambda: kg.VectorPaths(scenario()).step([[0.0]]), "reset"),
        (lambda: kg.VectorPaths(scenario(), 2).step([[0.0]]), "shape"),
        (lambda: kg.VectorPaths(scenario(), 2).reset(seed=[1]), "1 seeds"),
        (lambda: played(kg.VectorPaths(scenario()), 0, 1, [[[float("nan")]]]), "NaN"),
    ],
)
def test_bad_input(make: Any, said: str) -> None:
    with pytest.raises(knee.KneeError, match=said):
        make()


def test_most_paths() -> None:
    assert kg.VectorPaths(scenario(), kg.PATHS_MAX).num_envs == kg.PATHS_MAX


def test_an_agent_is_not_run_without_a_gym() -> None:
    # Whether an environment was made before or not.
    code = """
import knee
path = knee.Path(rate="10mbit", rtt="40ms", queue="84p")
scenario = knee.Scenario(path=path, flows=[knee.Flow("agent")], duration="1s")
for _ in range(2):
    for host in ("sim", "quic"):
        try:
            knee.run(scenario, host=host)
        except knee.ScenarioError as error:
            assert "steered by knee.gym only" in str(error), error
        else:
            raise AssertionError(host)
    import knee.gym
    knee.gym.VectorPaths(scenario)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_error_names_the_package_to_install() -> None:
    code = """
import sys
sys.modules["gymnasium"] = None
import knee
try:
    import knee.gym
except knee.KneeError as error:
    assert "pip install '.[gym]'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_it_learns() -> None:
    found = importlib.util.spec_from_file_location("learn", ROOT / "studies/gym-learn/learn.py")
    assert found is not None and found.loader is not None
    learn: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(learn)
    before, after = learn.learnt(generations=6, candidates=16, seed=1)
    # On paths and seeds that it has not seen. Nats per interval, the reward's unit.
    assert after > before + 0.2, (before, after)
