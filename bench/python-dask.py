"""Two workers of Dask against one: the same study of 16 flows for a minute, in pairs.

    python bench/python-dask.py [PAIRS] [RUNS]

The speed-up is that of the clock. The CPU time of one worker over that of the busier of two is the
speed-up on idle cores: it covers their balance and the cost of a second worker. Other load on the
machine does not change it. Nor does it change the last number much: the part of the two workers'
time in which they had no task, for the study's beginning, its end, and ways to and fro.
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
    "repeat": RUNS,
    "runs_per_shard": 8,
}


class Tasks(distributed.diagnostics.plugin.WorkerPlugin):
    """For how long a worker has had a task, seconds."""

    def setup(self, worker):
        worker.with_a_task_s = 0.0
        self.worker = worker

    def transition(self, key, start, finish, **_):
        if finish == "executing":
            self.began_s = time.perf_counter()
        elif start == "executing":
            self.worker.with_a_task_s += time.perf_counter() - self.began_s


def with_a_task(dask_worker):
    return dask_worker.with_a_task_s


def turn(workers: int) -> tuple[float, float, float]:
    """Seconds of the clock, of the busiest worker's processor; part of the time without a task."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        # The import of a worker does not count.
        client.run(__import__, "knee")
        client.register_plugin(Tasks())
        before = client.run(time.process_time)
        start = time.perf_counter()
        knee.sweep(STUDY, out=f"{folder}/data", executor=client)
        clock = time.perf_counter() - start
        after = client.run(time.process_time)
        busiest = max(after[worker] - before[worker] for worker in after)
        return clock, busiest, 1 - sum(client.run(with_a_task).values()) / (workers * clock)


if __name__ == "__main__":
    of_clock, of_processor, without = [], [], []
    for pair in range(PAIRS):
        # In turn first and second, so that a drift of the machine favours neither.
        order = (1, 2) if pair % 2 else (2, 1)
        took = {workers: turn(workers) for workers in order}
        for ratios, which in ((of_clock, 0), (of_processor, 1)):
            ratios.append(took[1][which] / took[2][which])
        print(
            f"  clock {took[1][0]:.1f} s, {took[2][0]:.1f} s: {of_clock[-1]:.2f};"
            f" processor {took[1][1]:.1f} s, {took[2][1]:.1f} s: {of_processor[-1]:.2f};"
            f" without a task {took[1][2]:.3f}, {took[2][2]:.3f}",
            flush=True,
        )
        without.append(took[2][2])
    print(f"one worker / two, {PAIRS} pairs of {RUNS} runs:")
    for name, ratios in (("clock", of_clock), ("processor of the busier", of_processor)):
        median, low, high = statistics.median(ratios), min(ratios), max(ratios)
        print(f"  {name}: median {median:.3f}, {low:.3f} to {high:.3f}")
    print(f"  two workers without a task: median {statistics.median(without):.3f} of their time")
