# mypy: ignore-errors
# (pyright checks this file; mypy only serves to compare the stubs)
"""Algorithms of one's own, in Python: a class, or compiled functions."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, cast

from knee import _knee
from knee._errors import AlgorithmError

Conn = _knee.Conn
Ack = _knee.Ack
Round = _knee.Round

SSTHRESH_INFINITE = 0x7FFFFFFF
"""`ssthresh_pkts` of a connection that has seen no congestion."""

Unit = Literal["time", "packets", "probability", "number", "count", "choice"]


class Phase(IntEnum):
    """Phase of the stack: `conn.phase`."""

    OPEN = 0
    """Nothing suspicious."""
    DISORDER = 1
    """Duplicate ACKs or SACKs, no loss inferred yet."""
    CWR = 2
    """The window is being reduced for a congestion mark."""
    RECOVERY = 3
    """Fast recovery."""
    LOSS = 4
    """After a retransmission timeout."""


class Event(IntEnum):
    """The argument of `on_event`."""

    TX_START = 0
    """First transmission after everything was acknowledged."""
    CWND_RESTART = 1
    """Idle for longer than the retransmission timeout: the stack restarted the window."""
    RECOVERED = 2
    """Recovery ended; the window is as the stack left it."""
    RTO = 3
    """Retransmission timeout: `ssthresh` was just called; the stack then sets the window to 1."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm, with values as a scenario has them.

    Attributes:
        unit: `time` ("20ms"; the algorithm gets microseconds), `packets` ("8p"; an int),
            `probability` (0 to 1; a float), `number` (0 or more; a float), `count` (an int) or
            `choice` (a str).
        default: The value that applies when none is given.
        min: Smallest value; by default 0.
        max: Largest value; by default the largest that 32 bits hold.
        choices: Values of a `choice`.
        help: One line that describes it.
    """

    unit: Unit
    default: str | float
    min: str | float = 0
    max: str | float | None = None
    choices: Sequence[str] = ()
    help: str = ""


_LARGEST = {
    "time": "4294s",
    "packets": "1073741824p",
    "probability": "1",
    "number": "4294",
    "count": "4294967295",
    "choice": "",
}


def _text(unit: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    if unit == "time":
        return "0s" if value == 0 else repr(value)
    return repr(value)


def _row(origin: str, name: str, parameter: Parameter) -> dict[str, object]:
    unit = parameter.unit
    if unit not in _LARGEST:
        help = f"units: {', '.join(_LARGEST)}"
        raise AlgorithmError(f"{origin}: `{name}`: no unit `{unit}`", help)
    most = _LARGEST[unit] if parameter.max is None else parameter.max
    return {
        "name": name,
        "kind": unit,
        "default": _text(unit, parameter.default),
        "min": _text(unit, parameter.min),
        "max": _text(unit, most),
        "choices": list(parameter.choices),
        "help": parameter.help or name,
    }


def _described(
    origin: str,
    name: str,
    *,
    summary: str,
    observes: Sequence[str],
    profile: str,
    uses_random: bool,
    parameters: Mapping[str, Parameter],
) -> str:
    """The algorithm's definition, as JSON."""
    if profile not in ("classic", "rate"):
        raise AlgorithmError(f"{origin}: no profile `{profile}`", "profiles: classic, rate")
    described = {
        "name": name,
        "summary": summary or origin,
        "origin": origin,
        "observes": list(observes),
        "profile": profile,
        "uses_random": uses_random,
        "params": [_row(origin, of, parameter) for of, parameter in parameters.items()],
    }
    return json.dumps(described)


def _value(parameter: Parameter, raw: int) -> int | float | str:
    match parameter.unit:
        case "probability" | "number":
            return raw / 1e6
        case "choice":
            return parameter.choices[raw]
        case _:
            return raw


class Algorithm:
    """A congestion control algorithm, as a class: for teaching and prototypes.

    Subclass it, define at least one of `on_rtt`, `on_ack` and `on_round`, and pass the class
    instead of an algorithm's name: `knee.Flow(Mine)`. A method that a class does not define does
    the same as NewReno's. Each connection has an object of its own. It runs in the simulator only.

    Methods may write `conn.cwnd_pkts` (1 to `conn.cwnd_max_pkts`), `conn.ssthresh_pkts` (2 or
    more), `conn.cwnd_cnt` and `conn.notes` (32 bits); an algorithm of profile `rate` also
    `conn.pacing_bytes_per_s` (64 bits). Writing anything else, and an exception, ends the run with
    `HostError`.
    """

    name: ClassVar[str] = ""
    """Name in results, of a-z, 0-9 and _; by default that of the class in lower case. If another
    class, or another algorithm that was loaded, has it, a number follows: `mine_2`. Metrics take
    the class itself too."""
    profile: ClassVar[Literal["classic", "rate"]] = "classic"
    """Who owns the window: in `classic` the stack during recovery and after timeouts; in `rate`
    always the algorithm, which also paces: `on_ack` is called for each ACK, `on_rtt` never."""
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    """Parameters: `params` of a flow."""
    observes: ClassVar[Sequence[str]] = ()
    """Up to four attributes, ints from 0 to 2**32 - 1, whose values the time series has."""
    uses_random: ClassVar[bool] = False
    """True if each ACK carries 32 random bits of the run's seed, `ack.random`."""
    limit_s: ClassVar[float] = 5.0
    """Processor time after which a call is given up, seconds."""

    params: SimpleNamespace
    """The parameters' values, by name; there before `__init__`."""

    def init(self, conn: Conn) -> None:
        """The connection begins."""

    def on_rtt(self, conn: Conn, ack: Ack) -> None:
        """An ACK came, in any phase; `ack.rtt_us` is its RTT sample, or -1."""

    def on_ack(self, conn: Conn, ack: Ack) -> None:
        """An ACK of new data came, and the window may grow; of profile `rate`: any ACK."""

    def on_round(self, conn: Conn, round: Round) -> None:
        """A round trip is over: all that was outstanding at its beginning is acknowledged.

        In profile `classic` not during a reduction. A class with `on_round` and without `on_ack`
        leaves the window as it is in between: one call of Python per round trip, not per ACK.
        """

    def ssthresh(self, conn: Conn) -> int:
        """A loss or mark: gives the new slow start threshold, packets, 2 or more."""
        raise NotImplementedError

    def on_event(self, conn: Conn, event: int) -> None:
        """Something else happened, an `Event`."""

    def undo(self, conn: Conn) -> int:
        """The reduction was unnecessary: gives the window, packets, 1 or more."""
        raise NotImplementedError


_METHODS = ("init", "on_rtt", "on_ack", "on_round", "ssthresh", "on_event", "undo")
_defining = threading.Lock()


def defined(algorithm: type[Algorithm]) -> str:
    """Makes a class known to this process; gives its name, for `cc`, which no other one has.

    It gets another name if a later algorithm has taken its name.
    """
    with _defining:
        known = algorithm.__dict__.get("_knee_name")
        if known is None or not _knee.is_class(known):
            known = _defined(algorithm)
            algorithm._knee_name = known  # pyright: ignore[reportAttributeAccessIssue]
        return cast(str, known)


def _defined(algorithm: type[Algorithm]) -> str:
    if not issubclass(algorithm, Algorithm):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = f"class {algorithm.__qualname__} is no algorithm"
        raise AlgorithmError(what, "derive it from knee.Algorithm")
    origin = f"class {algorithm.__qualname__}"
    methods = [m for m in _METHODS if getattr(algorithm, m) is not getattr(Algorithm, m)]
    if not {"on_rtt", "on_ack", "on_round"} & set(methods):
        help = "define one of on_rtt(conn, ack), on_ack(conn, ack) and on_round(conn, round)"
        raise AlgorithmError(f"{origin} reacts to nothing", help)
    if algorithm.profile == "rate" and not {"on_ack", "on_round"} & set(methods):
        raise AlgorithmError(
            f"{origin} is of profile rate and has no on_ack", "define on_ack or on_round"
        )
    for method in methods:
        _refuse_arity(origin, algorithm, method)
    parameters = dict(algorithm.parameters)
    if not algorithm.limit_s > 0:
        raise AlgorithmError(f"{origin}: limit_s = {algorithm.limit_s}", "give seconds above 0")

    def make(raw: Sequence[int]) -> Algorithm:
        made = algorithm.__new__(algorithm)
        values = zip(parameters.items(), raw, strict=True)
        made.params = SimpleNamespace(**{name: _value(p, word) for (name, p), word in values})
        made.__init__()
        return made

    described = _described(
        origin,
        algorithm.name or algorithm.__name__.lower(),
        summary=(algorithm.__doc__ or "").strip().partition("\n")[0],
        observes=algorithm.observes,
        profile=algorithm.profile,
        uses_random=algorithm.uses_random,
        parameters=parameters,
    )
    return _knee.define_class(described, make, methods, float(algorithm.limit_s))


def _refuse_arity(origin: str, algorithm: type[Algorithm], method: str) -> None:
    wanted = list(inspect.signature(getattr(Algorithm, method)).parameters)
    try:
        inspect.signature(getattr(algorithm, method)).bind(*wanted)
    except TypeError as error:
        help = f"write def {method}({', '.join(wanted)})"
        raise AlgorithmError(f"{origin}: {method}: {error}", help) from None


Compiled = object
"""A compiled function: of `numba.cfunc`, a function of a library that cffi or ctypes loaded, or an
address."""

_kept: list[object] = []


def _address(origin: str, name: str, function: Compiled | None) -> int:
    """The function's address; it stays in memory from now on."""
    if function is None:
        return 0
    _kept.append(function)
    python = AlgorithmError(
        f"{origin}: {name} calls back into Python", "compile it, or write a knee.Algorithm"
    )
    if isinstance(function, int):
        address = int(function)
    elif isinstance(found := getattr(function, "address", None), int):
        address = found
    elif type(function).__module__ == "_cffi_backend":
        if "calling" in repr(function):
            raise python
        import _cffi_backend  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

        address = int(_cffi_backend.FFI().cast("uintptr_t", function))  # pyright: ignore
    else:
        import ctypes

        # Functions of libraries and callbacks alike.
        bases = {base.__name__ for base in type(function).__mro__}
        if not bases & {"CFuncPtr", "_CFuncPtr"}:
            what = f"{origin}: {name} is no compiled function: {function!r}"
            raise AlgorithmError(what, "give one of numba.cfunc, cffi or ctypes, or its address")
        kept = cast("dict[str, object]", getattr(function, "_objects", None) or {})
        if any(type(value).__name__ == "CThunkObject" for value in kept.values()):
            raise python
        address = ctypes.cast(cast(Any, function), ctypes.c_void_p).value or 0
    if address <= 0:
        raise AlgorithmError(f"{origin}: {name} has no address", "give a function that is loaded")
    return address


def load_functions(
    name: str,
    *,
    on_ack: Compiled,
    init: Compiled | None = None,
    on_rtt: Compiled | None = None,
    ssthresh: Compiled | None = None,
    on_event: Compiled | None = None,
    undo: Compiled | None = None,
    observe: Compiled | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    observes: Sequence[str] = ("observed",),
    profile: Literal["classic", "rate"] = "classic",
    uses_random: bool = False,
    summary: str = "",
) -> str:
    """Registers an algorithm of compiled functions in this process; returns its name, for `cc`.

    The functions are those of the contract in C, `cc/include/knee/contract.h`; `knee.contract` has
    their types for Numba, cffi and ctypes. A missing function does nothing, but without `ssthresh`
    a loss halves the window. They must not call Python, allocate or lock: a call that does not
    return is left by a jump. It runs in the simulator and over QUIC.

    Raises:
        AlgorithmError: The description is not valid, or an argument is not a compiled function.
    """
    origin = f"functions of `{name}`"
    described = _described(
        origin,
        name,
        summary=summary,
        observes=observes,
        profile=profile,
        uses_random=uses_random,
        parameters=parameters or {},
    )
    functions = [
        _address(origin, what, function)
        for what, function in (
            ("init", init),
            ("on_rtt", on_rtt),
            ("on_ack", on_ack),
            ("ssthresh", ssthresh),
            ("on_event", on_event),
            ("undo", undo),
            ("observe", observe),
        )
    ]
    return _knee.define_functions(described, *functions)
