"""Two workers of Dask against one: the same study of 16 flows for a minute, in pairs.

    python bench/python-dask.py [PAIRS] [RUNS]

The speed-up is that of the clock. The processor time says what of it is lost: where two workers
need no more of it than one, only other work on the machine keeps the speed-up below 2.
"""

import statistics
import sys
import tempfile
import time

import distributed

import knee

PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 320
STUDY = {
    "scenario": knee.Scenario(
        path=knee.Path(rate="100mbit", rtt="40ms", queue="333p"),
        flows=[knee.Flow("chd", count=16, start_spacing="6250us")],
        duration="60s",
    ),
    "seeds": RUNS,
    "runs_per_shard": 8,
}


def turn(workers: int) -> tuple[float, float]:
    """Seconds of the clock, and of the workers' processors."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        # What a worker imports is no part of it.
        client.run(__import__, "knee")
        used = sum(client.run(time.process_time).values())
        start = time.perf_counter()
        knee.sweep(STUDY, out=f"{folder}/data", executor=client)
        clock = time.perf_counter() - start
        return clock, sum(client.run(time.process_time).values()) - used


if __name__ == "__main__":
    speed_ups, costs = [], []
    for pair in range(PAIRS):
        # In turn first and second, so that a drift of the machine favours neither.
        order = (1, 2) if pair % 2 else (2, 1)
        took = {workers: turn(workers) for workers in order}
        speed_ups.append(took[1][0] / took[2][0])
        costs.append(took[2][1] / took[1][1])
        print(
            f"  one {took[1][0]:.1f} s, two {took[2][0]:.1f} s: {speed_ups[-1]:.2f};"
            f" of processors {took[1][1]:.1f} s, {took[2][1]:.1f} s: {costs[-1]:.2f}",
            flush=True,
        )
    print(f"two workers / one, {PAIRS} pairs of {RUNS} runs:")
    for name, values in (("speed-up", speed_ups), ("processor time", costs)):
        median, low, high = statistics.median(values), min(values), max(values)
        print(f"  {name}: median {median:.3f}, {low:.3f} to {high:.3f}")
