"""Scenarios built in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TypeAlias, cast

from knee import _knee
from knee._algorithm import Algorithm, defined
from knee._errors import ScenarioError

Value: TypeAlias = (
    "str | int | float | bool | type[Algorithm] | Sequence[Value] | Mapping[str, Value]"
)
"""A value of a scenario: what TOML has, but for times of day; a class stands for an algorithm."""


def plain_json(value: object) -> object:
    """A value as JSON has it."""
    if isinstance(value, Path | Flow | Scenario):
        return value.table()
    if isinstance(value, Mapping):
        table = cast("Mapping[object, object]", value)
        return {str(key): plain_json(of) for key, of in table.items()}
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, type) and issubclass(value, Algorithm):
        return defined(value)
    if isinstance(value, Sequence):
        return [plain_json(of) for of in cast("Sequence[object]", value)]
    what = f"{value!r} cannot stand in a scenario"
    raise ScenarioError(what, "write text, a number, a boolean, a list or a dict")


class Path:
    """A path, the `[path]` of a scenario: `Path(rate="10mbit", rtt="40ms", queue="84p")`.

    The keys are those of `docs/scenario.md`; quantities are text with a unit.
    """

    def __init__(self, **keys: Value) -> None:
        """A path with these keys."""
        self.keys = keys

    def table(self) -> dict[str, object]:
        """The keys as plain values."""
        return {key: plain_json(value) for key, value in self.keys.items()}


_FLOW_KEYS = frozenset(
    (
        "name",
        "kind",
        "count",
        "start",
        "start_spacing",
        "start_jitter",
        "stop",
        "lifetime",
        "access_delay",
        "access_delay_spread",
        "access_jitter",
        "enters",
        "leaves",
        "direction",
        "transport",
        "params",
        "size",
        "every",
        "arrivals",
        "web",
        "video",
        "tcp",
        "rate",
        "rate_steps",
        "packet",
        "interval",
    )
)


class Flow:
    """A flow, a `[[flow]]` of a scenario: `Flow("chd", qth="20ms", start="5s")`.

    The first argument is the algorithm, a C file, or a class, see `knee.Algorithm`. A key that
    `[[flow]]` does not have is a parameter of the algorithm; one of the same name is given in
    `params`.
    """

    def __init__(self, cc: str | type[Algorithm] | None = None, **keys: Value) -> None:
        """A flow of `cc` with these keys and parameters."""
        self.cc = defined(cc) if isinstance(cc, type) else cc
        self.keys = keys

    def table(self) -> dict[str, object]:
        """The keys as plain values."""
        own = {key: plain_json(value) for key, value in self.keys.items() if key in _FLOW_KEYS}
        extra = {
            key: plain_json(value) for key, value in self.keys.items() if key not in _FLOW_KEYS
        }
        if extra:
            given = own.get("params", {})
            tables = cast("dict[str, object]", given) if isinstance(given, dict) else {}
            own["params"] = {**tables, **extra}
        return own if self.cc is None else {"cc": self.cc, **own}


@dataclass
class Scenario:
    """A scenario: a path, flows, and how long they run.

    Attributes:
        path: The path.
        flows: The flows, at least one.
        duration: Length of the run, with a unit.
        title: What it is, for people.
        seed: Seed of the first repetition.
        repeat: Number of repetitions.
        tcp: The `[tcp]` table.
        record: The `[record]` table.
    """

    path: Path | Mapping[str, Value]
    flows: Sequence[Flow | Mapping[str, Value]]
    duration: str = "60s"
    title: str | None = None
    seed: int | None = None
    repeat: int | None = None
    tcp: Mapping[str, Value] = field(default_factory=dict[str, Value])
    record: Mapping[str, Value] = field(default_factory=dict[str, Value])

    def table(self) -> dict[str, object]:
        """The scenario as plain values."""
        top = {
            "title": self.title,
            "duration": self.duration,
            "seed": self.seed,
            "repeat": self.repeat,
        }
        plain: dict[str, object] = {key: of for key, of in top.items() if of is not None}
        plain["path"] = plain_json(self.path)
        for key, table in (("tcp", self.tcp), ("record", self.record)):
            if table:
                plain[key] = plain_json(table)
        plain["flow"] = [plain_json(flow) for flow in self.flows]
        return plain

    def toml(self) -> str:
        """The scenario as a file says it."""
        return _knee.toml_of(json.dumps(self.table()))


Described: TypeAlias = "str | PathLike[str] | Mapping[str, object] | Scenario"
"""A scenario: a file's path, TOML text, a dict of tables, or a `Scenario`."""


def described(scenario: Described) -> tuple[str | None, str | None, str]:
    """Path or text, and the name that errors give it."""
    if isinstance(scenario, Scenario):
        return None, scenario.toml(), "<Scenario>"
    if isinstance(scenario, Mapping):
        return None, _knee.toml_of(json.dumps(plain_json(scenario))), "<dict>"
    if isinstance(scenario, PathLike):
        return fspath(scenario), None, fspath(scenario)
    if isinstance(scenario, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        # Text has lines or an equals sign; the name of a file has neither.
        if "\n" in scenario or "=" in scenario:
            return None, scenario, "<text>"
        return scenario, None, scenario
    what = f"{type(scenario).__name__} is no scenario"
    raise ScenarioError(what, "give a path, TOML text, a dict, or knee.Scenario(...)")


def arguments(changes: Mapping[str, Value] | Sequence[str] | None) -> list[str]:
    """Changes as they are typed after `--set`."""
    if changes is None:
        return []
    if isinstance(changes, Mapping):
        # JSON's text, numbers, booleans and lists are TOML's; tables are given key by key.
        return [f"{key}={json.dumps(plain_json(value))}" for key, value in changes.items()]
    if isinstance(changes, str):
        raise ScenarioError("set is text", 'give a dict, as in set={"path.rate": "5mbit"}')
    return list(changes)
