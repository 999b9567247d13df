"""Learns a congestion control with the cross-entropy method, in numpy.

The policy is linear: the window's change is tanh(w · features), and the features are what an end
host knows: a constant, the logarithm of the RTT over the least RTT, the RTT's gradient, and the
loss. Each candidate of a generation plays the same paths; the best quarter gives the mean and the
spread of the next. It prints the mean reward per interval on paths that it did not learn from.

    python studies/gym-learn/learn.py [GENERATIONS [CANDIDATES]]
"""

import sys

import numpy as np

import knee
from knee import gym

FEATURES = 4
PATHS = 4
"""Paths that each candidate plays."""
HELD_OUT = 32
INTERVAL = "100ms"
STEPS = 99
"""Of an episode of 10 s, whose first interval passes at its beginning."""


def scenario(rate, rtt, queue):
    """One flow on a path."""
    path = knee.Path(rate=rate, rtt=rtt, queue=queue)
    # More than any path holds, so that no candidate sends for nothing but losses.
    tcp = {"receive_window": "400p"}
    return knee.Scenario(path=path, flows=[knee.Flow("agent")], duration="10s", tcp=tcp)


TRAINING = [
    scenario(rate, rtt, queue)
    for rate in ("4mbit", "12mbit", "24mbit")
    for rtt, queue in (("20ms", "50p"), ("60ms", "150p"))
]
OTHERS = [
    scenario(rate, rtt, queue)
    for rate in ("8mbit", "20mbit")
    for rtt, queue in (("30ms", "80p"), ("80ms", "120p"))
]


def features(observations):
    """What the policy looks at, of each path."""
    seen = gym.Observed(*observations.T)
    stretch = np.maximum(seen.rtt_mean_ms, 1e-3) / np.maximum(seen.rtt_min_ms, 1e-3)
    gradient = np.clip(seen.rtt_gradient, -1, 1)
    return np.stack([np.ones_like(stretch), np.log(stretch), gradient, 10 * seen.loss], axis=1)


def rewards(paths, weights, seeds):
    """The mean reward of each path, played by the policy with its row of weights."""
    observations, _ = paths.reset(seed=seeds)
    total = np.zeros(len(weights))
    for _ in range(STEPS):
        actions = np.tanh((features(observations) * weights).sum(axis=1, keepdims=True))
        observations, reward, _, _, _ = paths.step(actions)
        total += reward
    return total / STEPS


def held_out(weights):
    """The mean reward of one policy on paths that it has not seen."""
    paths = gym.VectorPaths(OTHERS, HELD_OUT, interval=INTERVAL)
    seeds = list(range(10_000, 10_000 + HELD_OUT))
    return rewards(paths, np.tile(weights, (HELD_OUT, 1)), seeds).mean()


def learnt(generations, candidates, seed=0, tell=lambda *_: None):
    """The held-out reward of the policy that does nothing, and of the learnt one."""
    generator = np.random.default_rng(seed)
    mean, spread = np.zeros(FEATURES), np.ones(FEATURES)
    paths = gym.VectorPaths(TRAINING, candidates * PATHS, interval=INTERVAL)
    for generation in range(generations):
        drawn = generator.normal(mean, spread, (candidates, FEATURES))
        # The same paths for each.
        seeds = np.tile(generator.integers(1 << 31, size=PATHS), candidates).tolist()
        got = rewards(paths, np.repeat(drawn, PATHS, axis=0), seeds)
        got = got.reshape(candidates, PATHS).mean(axis=1)
        best = drawn[np.argsort(got)[-candidates // 4 :]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.3 / (generation + 1)
        tell(generation, got.mean(), mean)
    return held_out(np.zeros(FEATURES)), held_out(mean)


def main():
    """Learns, and prints what came of it."""
    given = [int(word) for word in sys.argv[1:]]
    generations, candidates = (given + [20, 32][len(given) :])[:2]

    def tell(generation, reward, weights):
        print(f"{generation + 1:3} {reward:8.3f}  weights {np.round(weights, 2)}")

    before, after = learnt(generations, candidates, tell=tell)
    print(f"held-out reward per interval: {before:.3f} without learning, {after:.3f} learnt")


if __name__ == "__main__":
    main()
