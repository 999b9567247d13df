"""Cost of an algorithm of one's own: nanoseconds for each ACK that reaches the sender.

One flow on 100 Mbit/s and 40 ms for 20 s. Each way runs NewReno's growth, and so makes the same
packets; the ways take turns, and the median over the turns is given. It needs Numba, a C compiler,
and a build with optimisation.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numba

import knee
from knee import contract

NEWRENO = Path(__file__).parents[1] / "cc/algorithms/newreno.c"
TURNS = 7


class PerAck(knee.Algorithm):
    """Growth of NewReno in Python, called for each ACK."""

    name = "per_ack"

    def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
        if not conn.cwnd_limited:
            return
        left = ack.acked_pkts
        if conn.cwnd_pkts < conn.ssthresh_pkts:
            add = min(left, conn.ssthresh_pkts - conn.cwnd_pkts)
            conn.cwnd_pkts += add
            left -= add
        if left:
            steps, conn.cwnd_cnt = divmod(conn.cwnd_cnt + left, conn.cwnd_pkts)
            conn.cwnd_pkts += steps


class PerRound(knee.Algorithm):
    """One packet more for each round trip, in Python, called once for each."""

    name = "per_round"

    def on_round(self, conn: knee.Conn, round: knee.Round) -> None:
        slow_start = conn.cwnd_pkts < conn.ssthresh_pkts
        grown = min(2 * conn.cwnd_pkts, conn.ssthresh_pkts) if slow_start else conn.cwnd_pkts + 1
        conn.cwnd_pkts = grown


@numba.cfunc(contract.numba()["on_ack"])
def on_ack(conn_p: Any, state_p: Any, params: Any, ack_p: Any) -> None:
    """Growth of NewReno."""
    conn, ack = numba.carray(conn_p, 1)[0], numba.carray(ack_p, 1)[0]
    if not conn.cwnd_limited:
        return
    left = ack.acked_pkts
    if conn.cwnd_pkts < conn.ssthresh_pkts:
        add = min(left, conn.ssthresh_pkts - conn.cwnd_pkts)
        conn.cwnd_pkts += add
        left -= add
    if left > 0:
        count = conn.cwnd_cnt + left
        conn.cwnd_cnt = count % conn.cwnd_pkts
        conn.cwnd_pkts += count // conn.cwnd_pkts


def main() -> None:
    """Measures, and prints a table."""
    text = NEWRENO.read_text().replace("newreno", "own_c").replace("NEWRENO", "OWN_C")
    ways: list[tuple[str, Any]] = [
        ("C, built in", "newreno"),
        ("C, a file", knee.load_c(text, file="own_c.c")),
        ("Numba", knee.load_functions("own_numba", on_ack=on_ack)),
        ("Python, once per round", PerRound),
        ("Python, per ACK", PerAck),
    ]
    path = knee.Path(rate="100mbit", rtt="40ms", queue="345p")
    scenarios = [knee.Scenario(path=path, flows=[knee.Flow(cc)], duration="20s") for _, cc in ways]
    acks = [
        knee.run(scenario).summary["runs"][0]["flows"][0]["counters"]["delivered_pkts"]
        for scenario in scenarios
    ]
    spent: list[list[float]] = [[] for _ in ways]
    for _ in range(TURNS):
        for times, scenario, n in zip(spent, scenarios, acks, strict=True):
            begin = time.process_time_ns()
            knee.run(scenario, jobs=1)
            times.append((time.process_time_ns() - begin) / n)
    first = statistics.median(spent[0])
    print(f"{'':24} {'ns per ACK':>10} {'more':>8} {'packets':>8}")
    for (way, _), times, n in zip(ways, spent, acks, strict=True):
        whole = statistics.median(times)
        print(f"{way:24} {whole:10.0f} {whole - first:8.0f} {n:8}")


if __name__ == "__main__":
    main()
