"""The native part; `crates/knee-py` has it."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, final, type_check_only

from typing_extensions import CapsuleType

__all__ = [
    "HOSTS",
    "Ack",
    "Conn",
    "Paths",
    "Plan",
    "Results",
    "Round",
    "Table",
    "Writing",
    "__version__",
    "algorithms_json",
    "define_class",
    "define_functions",
    "flow_keys",
    "is_class",
    "layout",
    "load_c",
    "main",
    "metrics",
    "percentile_of",
    "read_table",
    "run_many",
    "runs_asked",
    "runs_made",
    "status",
    "toml_of",
]

HOSTS: tuple[str, ...]
"""Hosts of this module; the program `knee` has these and others."""
__version__: str

@type_check_only
class Wanted(TypedDict):
    path: str | None
    text: str | None
    name: str
    sets: list[str]
    classes: list[str]
    host: str

@final
class Conn:
    """The connection, as an algorithm sees it. Positions are packets, and wrap at 2**32."""

    @property
    def now_us(self) -> int:
        """Clock of the host at this call, µs."""
    pacing_bytes_per_s: int
    """Pacing rate, payload bytes/s, profile `rate` only; 0: no pacing. Writable."""
    cwnd_pkts: int
    """Congestion window, packets, 1 to `cwnd_max_pkts`. Writable."""
    cwnd_cnt: int
    """Packets acknowledged, counted towards the next packet of growth. Writable."""
    ssthresh_pkts: int
    """Slow start threshold, packets, 2 or more. Writable."""
    @property
    def cwnd_max_pkts(self) -> int:
        """Largest window that the host accepts, packets."""
    @property
    def mss_bytes(self) -> int:
        """Payload of a full packet, bytes."""
    @property
    def inflight_pkts(self) -> int:
        """Estimate of the packets in the network."""
    @property
    def outstanding_pkts(self) -> int:
        """Packets sent and not cumulatively acknowledged."""
    @property
    def srtt_us(self) -> int:
        """Smoothed RTT (RFC 6298), µs; 0: none."""
    @property
    def snd_pos(self) -> int:
        """Next new position to be sent."""
    @property
    def ack_pos(self) -> int:
        """First position that is not cumulatively acknowledged."""
    notes: int
    """Bits for the logs of the host, cleared before each call. Writable."""
    @property
    def phase(self) -> int:
        """A `Phase`."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window, not the application, limited sending."""
    @property
    def app_limited(self) -> bool:
        """Whether the application had nothing to send."""

@final
class Ack:
    """An acknowledgement; fields that begin with `sample_` are profile RATE's delivery rate."""

    @property
    def delivered_pkts(self) -> int:
        """Packets delivered on this connection so far."""
    @property
    def acked_pkts(self) -> int:
        """Packets newly delivered by this ACK, cumulatively or selectively."""
    @property
    def lost_pkts(self) -> int:
        """Packets newly marked lost by this ACK."""
    @property
    def rtt_us(self) -> int:
        """RTT sample, µs, never of a retransmitted packet; -1: none."""
    @property
    def random(self) -> int:
        """32 random bits if the algorithm has `uses_random`, else 0."""
    @property
    def sample_pkts(self) -> int:
        """Packets delivered from the sampled packet's sending to this ACK."""
    @property
    def sample_us(self) -> int:
        """The longer of the times to send and to acknowledge them, µs; 0: no sample."""
    @property
    def sample_prior_pkts(self) -> int:
        """`delivered_pkts` when the sampled packet was sent; wraps."""
    @property
    def prior_inflight_pkts(self) -> int:
        """Packets in the network before this ACK."""
    @property
    def sample_app_limited(self) -> bool:
        """Whether the application, not the window, limited sending."""
    @property
    def advanced_pkts(self) -> int:
        """Packets by which `ack_pos` has moved; in `on_rtt` only, else 0."""

@final
class Round:
    """Contents of the ACKs of a round trip; without an RTT sample, its RTTs are None."""

    @property
    def number(self) -> int:
        """Number of the round trip on this connection, from 1."""
    @property
    def duration_us(self) -> int:
        """Length of the round trip, µs."""
    @property
    def acked_pkts(self) -> int:
        """Packets delivered in it."""
    @property
    def lost_pkts(self) -> int:
        """Packets marked lost in it."""
    @property
    def rtt_samples(self) -> int:
        """Number of RTT samples."""
    @property
    def rtt_min_us(self) -> int | None:
        """Smallest RTT sample, µs."""
    @property
    def rtt_mean_us(self) -> float | None:
        """Mean of the RTT samples, µs."""
    @property
    def rtt_max_us(self) -> int | None:
        """Largest RTT sample, µs."""

@final
class Table:
    """A table in Arrow's format, which libraries take over by `__arrow_c_stream__`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType:
        """The table as a stream of Arrow's C interface."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """The table's schema in Arrow's C interface."""
    def __len__(self) -> int:
        """Number of rows."""
    def column(self, name: str) -> list[Any]:
        """The values of a column; None where there is none."""
    @property
    def columns(self) -> list[tuple[str, str]]:
        """Name and Arrow type of each column."""

@final
class Results:
    @property
    def text(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def notes(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def flow_names(self, repetition: int) -> list[tuple[str, str, str]]: ...
    def table(self, name: str) -> Table: ...
    def summary_json(self) -> str: ...
    def report_text(self) -> str: ...
    def report_html(self) -> str: ...
    def charts(self, repetition: int) -> list[tuple[str, str]]: ...
    def drawn(
        self, repetition: int
    ) -> list[
        tuple[str, str, str, str, list[tuple[str, str, list[tuple[float, float | None]]]]]
    ]: ...
    def save(self, out: str | PathLike[str]) -> PathLike[str]: ...
    def goodput_bps(
        self, repetition: int, flows: Sequence[int], from_s: float | None, to_s: float | None
    ) -> float | None: ...
    def jain(
        self, repetition: int, flows: Sequence[int], from_s: float | None, to_s: float | None
    ) -> float | None: ...
    def share(
        self,
        repetition: int,
        group: Sequence[int],
        others: Sequence[int],
        from_s: float | None,
        to_s: float | None,
    ) -> float | None: ...
    def convergence_s(
        self,
        repetition: int,
        flows: Sequence[int],
        from_s: float | None,
        to_s: float | None,
        width_s: float,
        threshold: float,
        hold_s: float,
    ) -> float | None: ...
    def metric(
        self,
        repetition: int,
        name: str,
        flow: int | None,
        from_s: float | None,
        to_s: float | None,
    ) -> float | None: ...
    def queueing_delay_ms(
        self, repetition: int, q: float | None, from_s: float | None, to_s: float | None
    ) -> float | None: ...
    def loss_fraction(
        self, repetition: int, flows: Sequence[int], from_s: float | None, to_s: float | None
    ) -> float | None: ...

@final
class Paths:
    def __new__(cls, wanted: Sequence[Wanted], interval: str, slots: int) -> Paths: ...
    def reset(
        self, slots: Sequence[int], scenarios: Sequence[int], seeds: Sequence[int]
    ) -> bytes: ...
    def step(self, actions: Sequence[float]) -> tuple[bytes, list[bool]]: ...

@final
class Plan:
    def __new__(
        cls,
        name: str,
        text: str,
        scenario: str | None = None,
        folder: str | PathLike[str] = ...,
    ) -> Plan: ...
    @staticmethod
    def load(path: str | PathLike[str]) -> Plan: ...
    @property
    def parts(self) -> tuple[str, str, str, Path]: ...
    @property
    def text(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def runs(self) -> int: ...
    @property
    def shards(self) -> int: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def tables(self) -> list[str]: ...
    def stop(self) -> None: ...
    def begin(self, folder: str | PathLike[str]) -> Writing: ...
    def write_shard(self, number: int, folder: str | PathLike[str]) -> None: ...
    def run(self, table: str) -> Table: ...
    def read_shard(self, number: int, folder: str | PathLike[str], table: str) -> Table: ...

@final
class Writing:
    def missing(self) -> list[int]: ...
    def finish(self) -> bool: ...
    def close(self) -> None: ...

def metrics() -> list[tuple[str, str, str, str, bool]]: ...
def read_table(folder: str | PathLike[str], table: str) -> Table: ...
def status(folder: str | PathLike[str]) -> tuple[int, int, int, int, int, bool]: ...
def run_many(wanted: Sequence[Wanted], jobs: int) -> list[Results]: ...
def runs_asked(wanted: Sequence[Wanted]) -> bytes: ...
def runs_made(wanted: Sequence[Wanted], answer: bytes) -> list[Results]: ...
def define_class(
    described: str,
    make: Callable[[Sequence[int]], object],
    methods: Sequence[str],
    limit_s: float,
) -> str: ...
def define_functions(
    described: str,
    init: int,
    on_rtt: int,
    on_ack: int,
    ssthresh: int,
    on_event: int,
    undo: int,
    observe: int,
) -> str: ...
def is_class(name: str) -> bool: ...
def layout() -> list[list[tuple[str, int, int, bool]]]: ...
def flow_keys() -> list[str]: ...
def toml_of(json: str) -> str: ...
def percentile_of(values: Sequence[float], q: float) -> float | None: ...
def algorithms_json(names: Sequence[str]) -> str: ...
def load_c(file: str, text: str) -> str: ...
def main(itself: Sequence[str], arguments: Sequence[str]) -> int: ...
