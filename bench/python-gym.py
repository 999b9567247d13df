"""Steps per second of `knee.gym`, compared with plain runs of as many paths for as long: CPU time.

64 paths of 10 Mbit/s and 40 ms run for 30 s in intervals of 100 ms, with an agent that keeps 40
packets; the plain runs are of NewReno. Both take turns; medians are given.
"""

import statistics
import time

import numpy as np

import knee
from knee import gym

PATHS, STEPS, TURNS = 64, 299, 5


def scenario(cc):
    path = knee.Path(rate="10mbit", rtt="40ms", queue="84p")
    return knee.Scenario(path=path, flows=[knee.Flow(cc)], duration="30s", record={"bin": "1s"})


def stepped(paths):
    observations, _ = paths.reset(seed=1)
    for _ in range(STEPS):
        ratio = 40 / np.maximum(gym.Observed(*observations.T).cwnd_pkts, 1)
        actions = np.where(ratio >= 1, ratio - 1, 1 - 1 / ratio)
        observations = paths.step(np.clip(actions, -1, 1)[:, None])[0]


def main():
    paths = gym.VectorPaths(scenario("agent"), PATHS)
    plain = [scenario("newreno")] * PATHS
    spent = [[], []]
    for _ in range(TURNS):
        for times, work in zip(
            spent, (lambda: stepped(paths), lambda: knee.run_many(plain)), strict=True
        ):
            begin = time.process_time()
            work()
            times.append(time.process_time() - begin)
    of_steps, of_runs = (statistics.median(times) for times in spent)
    print(f"{PATHS * STEPS / of_steps:.0f} steps per second of processor time")
    print(f"{of_steps:.3f} s stepped, {of_runs:.3f} s plain: {of_steps / of_runs:.2f} times")


if __name__ == "__main__":
    main()
