"""Where Ebb is worse than both CUBIC and BBR: a random search, then an adversarial one.

A path, its jitter, its loss and the competitors are drawn; Ebb, CUBIC and BBR take the same place
in turn. The worst draws of each measure are then changed step by step, as long as Ebb gets worse.

    python studies/ebb-worse/search.py KNEE [DRAWS [STEPS]]

KNEE is the program. 150 draws and 40 steps, the default, take half a minute of one core. The seed
is fixed.
"""

import json
import math
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

KNEE = sys.argv[1] if len(sys.argv) > 1 else "knee"
DRAWS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 40
RIVALS = ("none", "newreno", "cubic", "bbr", "vegas")


@dataclass(frozen=True)
class Place:
    """A path, and who is there."""

    rate_mbps: float
    rtt_ms: float
    queue_bdp: float
    loss: float
    jitter_ms: float
    """Of each packet of the subject's, before the bottleneck."""
    flows: int
    """Of the subject."""
    rival: str

    def scenario(self, cc: str) -> str:
        """The scenario file with this algorithm as subject."""
        bdp_pkts = self.rate_mbps * self.rtt_ms / 12.0
        text = f"""
            duration = "40s"
            [path]
            rate = "{self.rate_mbps * 1000:.0f}kbit"
            rtt = "{self.rtt_ms:.0f}ms"
            queue = "{max(2, round(bdp_pkts * self.queue_bdp))}p"
            loss_forward = {self.loss:.4f}
            [[flow]]
            name = "subject"
            cc = "{cc}"
            count = {self.flows}
            start_jitter = "1s"
            access_jitter = "{max(0.2, self.jitter_ms):.1f}ms"
            """
        if self.rival != "none":
            text += f"""
                [[flow]]
                name = "rival"
                cc = "{self.rival}"
                start_jitter = "1s"
                access_jitter = "0.2ms"
                """
        return text


@dataclass(frozen=True)
class Measured:
    """What a subject made of a place."""

    goodput: float
    """Of the capacity."""
    delay_ms: float
    """Mean at the bottleneck."""
    jain: float
    """Of the subject's flows."""


def measure(place: Place, cc: str) -> Measured:
    """One run."""
    done = subprocess.run(
        [KNEE, "run", "/dev/stdin", "--format", "json", "--jobs", "1"],
        input=place.scenario(cc),
        capture_output=True,
        text=True,
        check=True,
    )
    run = json.loads(done.stdout)["runs"][0]
    own = [f["goodput_bps"] / 1e6 for f in run["flows"] if f["name"].startswith("subject")]
    squares = sum(g * g for g in own)
    return Measured(
        goodput=sum(own) / place.rate_mbps,
        delay_ms=run["queue"]["delay"]["mean_ms"] or 0.0,
        jain=sum(own) ** 2 / (len(own) * squares) if squares else 1.0,
    )


Compared = tuple[Measured, Measured, Measured]


def less_goodput(of: Compared) -> float:
    """How much more the lesser of the two others has."""
    ebb, *others = of
    return min(o.goodput for o in others) / max(ebb.goodput, 1e-3)


def longer_queue(of: Compared) -> float:
    """How much shorter BBR's queue is, a millisecond aside, where it has nearly as much goodput."""
    ebb, _, bbr = of
    return (ebb.delay_ms + 1.0) / (bbr.delay_ms + 1.0) if bbr.goodput > 0.9 * ebb.goodput else 0.0


def less_fair(of: Compared) -> float:
    """How much higher the lesser index of the two others is."""
    ebb, *others = of
    return min(o.jain for o in others) / ebb.jain


MEASURES: tuple[Callable[[Compared], float], ...] = (less_goodput, longer_queue, less_fair)
random_of = random.Random(1)


def log_uniform(low: float, high: float) -> float:
    """A draw, uniform on the logarithm."""
    return math.exp(random_of.uniform(math.log(low), math.log(high)))


def draw() -> Place:
    """A place at random."""
    return Place(
        rate_mbps=log_uniform(1.0, 100.0),
        rtt_ms=log_uniform(5.0, 300.0),
        queue_bdp=log_uniform(0.1, 8.0),
        loss=random_of.choice((0.0, 0.0, log_uniform(0.0005, 0.03))),
        jitter_ms=random_of.choice((0.0, 0.0, log_uniform(0.5, 40.0))),
        flows=random_of.choice((1, 1, 2, 4, 8)),
        rival=random_of.choice(RIVALS),
    )


def changed(place: Place) -> Place:
    """The same place with one thing changed, within the ranges of the draws."""

    def near(value: float, low: float, high: float) -> float:
        return min(max(value * log_uniform(0.5, 2.0), low), high)

    match random_of.randrange(6):
        case 0:
            return replace(place, rate_mbps=near(place.rate_mbps, 1.0, 100.0))
        case 1:
            return replace(place, rtt_ms=near(place.rtt_ms, 5.0, 300.0))
        case 2:
            return replace(place, queue_bdp=near(place.queue_bdp, 0.1, 8.0))
        case 3:
            return replace(place, jitter_ms=near(max(place.jitter_ms, 0.5), 0.5, 40.0))
        case 4:
            return replace(place, flows=random_of.choice((1, 2, 4, 8)))
        case _:
            return replace(place, loss=random_of.choice((0.0, log_uniform(0.0005, 0.03))))


def compare(place: Place) -> Compared:
    """Ebb, CUBIC and BBR in the same place."""
    return (measure(place, "ebb"), measure(place, "cubic"), measure(place, "bbr"))


def tell(place: Place, of: Compared, worse: float) -> None:
    """A line about a place."""
    print(
        f"{worse:8.2f}  {place.rate_mbps:6.1f} Mbit/s {place.rtt_ms:4.0f} ms"
        f" {place.queue_bdp:5.2f} BDP, loss {100 * place.loss:4.2f} %,"
        f" jitter {place.jitter_ms:4.1f} ms, {place.flows} flows beside {place.rival}:",
        "; ".join(f"{m.goodput:.2f} {m.delay_ms:.0f} ms {m.jain:.2f}" for m in of),
    )


drawn = [(place, compare(place)) for place in (draw() for _ in range(DRAWS))]
for score in MEASURES:
    worst = sorted(drawn, key=lambda pair: score(pair[1]), reverse=True)
    worse = sum(score(of) > 1.1 for _, of in drawn)
    print(f"\n{score.__name__}: in {worse} of {DRAWS} draws, by more than a tenth")
    print("   worse  place: goodput of the capacity, mean delay, Jain's index of Ebb; CUBIC; BBR")
    for place, of in worst[:8]:
        tell(place, of, score(of))
    place, of = worst[0]
    for _ in range(STEPS):
        next_place = changed(place)
        next_of = compare(next_place)
        if score(next_of) > score(of):
            place, of = next_place, next_of
    print(f"after {STEPS} steps from the worst:")
    tell(place, of, score(of))
