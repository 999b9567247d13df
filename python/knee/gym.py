"""Congestion control as a Gymnasium environment: an agent steers the window of one flow.

Time passes in monitor intervals. In each, the agent's flow sends with the window that it has, and
all else happens as the scenario says; no Python is called per packet. Many paths run at once.

import knee.gym

paths = knee.gym.VectorPaths([scenario], num_envs=64, interval="100ms")
observations, infos = paths.reset(seed=1)
observations, rewards, terminations, truncations, infos = paths.step(paths.action_space.sample())

In a scenario, the flow with `cc = "agent"` is the agent's. It needs gymnasium and numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from knee import _knee
from knee._errors import KneeError, count
from knee._runs import wanted
from knee._scenario import Described, Value

try:
    import gymnasium as gym
    import numpy as np
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
    from numpy.typing import ArrayLike, NDArray
except ImportError:
    what = "Gymnasium or numpy is not installed"
    raise KneeError(what, "pip install '.[gym]' in a checkout") from None

Floats = NDArray[np.float64]


class Observed(NamedTuple):
    """Values of an observation, in this order, about the interval that has just passed."""

    delivered_mbit_s: Any
    """Payload that ACKs reported as delivered, Mbit/s."""
    rtt_mean_ms: Any
    """Mean RTT, ms; of the last interval that had a sample, 0 before the first."""
    rtt_min_ms: Any
    """Minimum RTT of the connection so far, ms; 0 before the first sample."""
    rtt_gradient: Any
    """Change of the mean RTT since the interval before, seconds per second."""
    loss: Any
    """Packets found lost, as a part of those found lost or delivered, 0 to 1."""
    cwnd_pkts: Any
    """Window that the agent has set, packets; 0 before the first ACK."""
    inflight_pkts: Any
    """Packets in the network, as the sender last knew."""


_LOW = np.array([0, 0, 0, -np.inf, 0, 0, 0], dtype=np.float32)
_HIGH = np.array([np.inf, np.inf, np.inf, np.inf, 1, 65536, np.inf], dtype=np.float32)

Reward = Callable[[Observed], Floats]
"""Gives the reward of each path; fields of the argument are arrays with a value for each path."""

PATHS_MAX = 65_536
"""Most paths that a `VectorPaths` has."""


def log_reward(delay_weight: float = 1.0, loss_weight: float = 10.0) -> Reward:
    """ln(rate in Mbit/s) - `delay_weight` ln(mean RTT / minimum RTT) - `loss_weight` loss.

    A rate below 0.01 Mbit/s counts as that. Logarithms of rate and delay, so that a path's speed
    does not decide how much it matters, are the objective of Remy (Winstein and Balakrishnan, TCP
    ex Machina, SIGCOMM 2013, with alpha = beta = 1).
    """

    def reward(seen: Observed) -> Floats:
        known = seen.rtt_min_ms > 0
        stretch = np.where(known, seen.rtt_mean_ms / np.where(known, seen.rtt_min_ms, 1), 1)
        rate = np.log(np.maximum(seen.delivered_mbit_s, 0.01))
        return rate - delay_weight * np.log(np.maximum(stretch, 1)) - loss_weight * seen.loss

    return reward


def _spaces() -> tuple[gym.spaces.Box, gym.spaces.Box]:
    return (
        gym.spaces.Box(_LOW, _HIGH, dtype=np.float32),
        gym.spaces.Box(-1.0, 1.0, (1,), dtype=np.float32),
    )


class VectorPaths(gym.vector.VectorEnv[Any, Any, Any]):
    """Paths that run together, each with an agent's flow.

    Observations are a `Box` of shape (`num_envs`, 7), float32: the fields of `Observed`. Actions
    are a `Box(-1, 1)` of shape (`num_envs`, 1): the window is multiplied by 1 + a, or for a below 0
    divided by 1 - a. So it is doubled or halved at most, and stays within 1 and 65 536 packets. The
    flow is paced at 1.25 windows per smoothed RTT; losses are detected and repaired as in any other
    flow.

    An episode is a run of a scenario, drawn from `scenarios`, with a seed of its own. At its end it
    is truncated, and the next step begins the next one (`AutoresetMode.NEXT_STEP`), with reward 0.
    The first interval of an episode has passed when it begins. Path i of `reset(seed=s)` does what
    path 0 of `reset(seed=s + i)` does; a list gives each path its own seed. The same seeds and
    actions give the same observations, bit for bit, on any number of cores.

    `infos` has `scenario`, the number of each path's scenario, and `run_seed`, its seed.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        scenarios: Described | Sequence[Described],
        num_envs: int = 1,
        *,
        interval: str = "100ms",
        reward: Reward | None = None,
        set: Mapping[str, Value] | Sequence[str] | None = None,
    ) -> None:
        """Paths of these scenarios, 1 to `PATHS_MAX`; `set` is as for `knee.run`.

        Raises:
            ScenarioError: A scenario is not valid, or has not one flow with `cc = "agent"`.
            KneeError: There is no scenario, or `num_envs` is out of range.
        """
        num_envs = count("num_envs", num_envs, 1, PATHS_MAX)
        several = isinstance(scenarios, Sequence) and not isinstance(scenarios, str)
        given = cast("Sequence[Described]", scenarios if several else [scenarios])
        if not given:
            raise KneeError("there are no scenarios", "give at least one")
        self._paths = _knee.Paths(
            [wanted(scenario, None, None, set, "sim") for scenario in given], interval, num_envs
        )
        self._scenarios = len(given)
        self._reward = reward or log_reward()
        self._generators: list[np.random.Generator] = [
            seeding.np_random(None)[0] for _ in range(num_envs)
        ]
        self._over = np.zeros(num_envs, dtype=np.bool_)
        self._drawn = np.zeros(num_envs, dtype=np.int64)
        self._seeds = np.zeros(num_envs, dtype=np.int64)
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode on every path; `options` has no meaning."""
        if isinstance(seed, Sequence):
            if len(seed) != self.num_envs:
                raise KneeError(f"{len(seed)} seeds", f"give one for each of {self.num_envs} paths")
            seeds = list(seed)
        else:
            seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        for i, one in enumerate(seeds):
            if one is not None:
                self._generators[i] = seeding.np_random(one)[0]
        seen = np.zeros((self.num_envs, len(_LOW)))
        self._begin(np.arange(self.num_envs), seen)
        return seen.astype(np.float32), self._infos()

    def step(self, actions: ArrayLike) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Lets an interval pass on every path with these changes of the windows.

        Raises:
            KneeError: The actions or the rewards are no numbers of the right shape.
        """
        given = np.array(actions, dtype=np.float64)
        if given.shape != (self.num_envs, 1) or np.isnan(given).any():
            what = f"actions of shape {given.shape}" + (" with NaN" * bool(np.isnan(given).any()))
            raise KneeError(what, f"give numbers of shape {(self.num_envs, 1)}")
        again = np.flatnonzero(self._over)
        given[again] = np.nan
        raw, over = self._paths.step(given[:, 0].tolist())
        seen = np.frombuffer(raw).reshape(self.num_envs, len(_LOW)).copy()
        truncated = np.array(over)
        rewards = np.asarray(self._reward(Observed(*seen.T)))
        if rewards.shape != (self.num_envs,) or rewards.dtype.kind not in "biuf":
            what = f"the reward function returned {rewards.dtype} of shape {rewards.shape}"
            raise KneeError(what, f"return a number for each path, of shape {(self.num_envs,)}")
        if len(again):
            self._begin(again, seen)
            rewards = np.where(self._over, 0.0, rewards)
            truncated[again] = False
        self._over = truncated
        nothing = np.zeros(self.num_envs, dtype=np.bool_)
        return seen.astype(np.float32), rewards, nothing, truncated.copy(), self._infos()

    def _begin(self, paths: NDArray[np.int64], seen: Floats) -> None:
        for path in paths:
            generator = self._generators[int(path)]
            self._drawn[path] = generator.integers(self._scenarios)
            self._seeds[path] = generator.integers(1 << 62)
        raw = self._paths.reset(
            paths.tolist(), self._drawn[paths].tolist(), self._seeds[paths].tolist()
        )
        seen[paths] = np.frombuffer(raw).reshape(len(paths), len(_LOW))

    def _infos(self) -> dict[str, Any]:
        known = np.ones(self.num_envs, dtype=np.bool_)
        return {
            "scenario": self._drawn.copy(),
            "_scenario": known,
            "run_seed": self._seeds.copy(),
            "_run_seed": known.copy(),
        }


class OnePath(gym.Env[Any, Any]):
    """A single path, with the spaces, rewards and seeds of path 0 of `VectorPaths`."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenarios: Described | Sequence[Described],
        *,
        interval: str = "100ms",
        reward: Reward | None = None,
        set: Mapping[str, Value] | Sequence[str] | None = None,
    ) -> None:
        """A path of these scenarios; arguments and errors are those of `VectorPaths`."""
        self._paths = VectorPaths(scenarios, 1, interval=interval, reward=reward, set=set)
        self.observation_space, self.action_space = _spaces()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        super().reset(seed=seed)
        seen, infos = self._paths.reset(seed=seed)
        return seen[0], self._info(infos)

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Lets an interval pass with this change of the window."""
        given = np.asarray(action).reshape(1, -1)
        seen, rewards, _, truncated, infos = self._paths.step(given)
        return seen[0], float(rewards[0]), False, bool(truncated[0]), self._info(infos)

    @staticmethod
    def _info(infos: dict[str, Any]) -> dict[str, Any]:
        return {key: int(infos[key][0]) for key in ("scenario", "run_seed")}
