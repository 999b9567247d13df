"""Scenarios built in Python."""

from __future__ import annotations

import json
import math
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import SupportsIndex, TypeAlias, cast

from knee import _knee
from knee._algorithm import Algorithm, defined
from knee._errors import ScenarioError

Value: TypeAlias = (
    "str | SupportsIndex | float | bool | type[Algorithm] | Sequence[Value] | Mapping[str, Value]"
)
"""A value of a scenario: any value of TOML except times of day; a class stands for an algorithm.

Integers, also numpy's, are from -2**63 to 2**63 - 1; floats are finite.
"""


def plain_json(value: object, key: str = "") -> object:
    """The value of a key, such as `path.rate`, as JSON has it.

    Raises:
        ScenarioError: TOML has no such value; the error names the key.
    """

    def refused(what: str, help: str) -> ScenarioError:
        return ScenarioError(f"{key}: {what}" if key else what, help, key=key or None)

    if isinstance(value, Path | Flow | Scenario):
        value = value.given()
    if isinstance(value, Mapping):
        table = cast("Mapping[object, object]", value)
        plain: dict[str, object] = {}
        for given, of in table.items():
            name = cast(str, plain_json(str(given), key))
            plain[name] = plain_json(of, f"{key}.{name}" if key else name)
        return plain
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not _is_unicode(value):
            raise refused(f"{value!a} is not valid Unicode", "leave out the lone surrogates")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refused(f"{value} is not allowed", "write a finite number")
        return value
    if isinstance(value, type) and issubclass(value, Algorithm):
        return defined(value)
    if isinstance(value, Sequence):
        several = cast("Sequence[object]", value)
        return [plain_json(of, f"{key}.{i}" if key else "") for i, of in enumerate(several)]
    try:
        whole = operator.index(cast("SupportsIndex", value))
    except TypeError:
        help = "write text, a number, a boolean, a list or a dict"
        raise refused(f"{value!r} cannot stand in a scenario", help) from None
    if not -(2**63) <= whole < 2**63:
        raise refused("the integer is out of range", "write one from -2**63 to 2**63 - 1")
    return whole


def classes_in(value: object) -> set[str]:
    """Names of those algorithms in a value that are classes."""
    if isinstance(value, Path | Flow | Scenario):
        value = value.given()
    if isinstance(value, type) and issubclass(value, Algorithm):
        return {defined(value)}
    inner: Iterable[object] = ()
    if isinstance(value, Mapping):
        inner = cast("Mapping[object, object]", value).values()
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        inner = cast("Sequence[object]", value)
    return {name for of in inner for name in classes_in(of)}


def _is_unicode(text: str) -> bool:
    """True if it can be encoded: it has no lone surrogates."""
    return text.encode(errors="ignore").decode() == text


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_value(value: object) -> str:
    """A plain value as TOML has it, on one line."""
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        pairs = [
            f"{key if _BARE.fullmatch(key) else toml_value(key)} = {toml_value(of)}"
            for key, of in table.items()
        ]
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, cast("list[object]", value))) + "]"
    # JSON's text is TOML's, but for surrogates in escapes and for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


class Path:
    """A path, the `[path]` of a scenario: `Path(rate="10mbit", rtt="40ms", queue="84p")`.

    The keys are those of `docs/reference/scenario.md`; quantities are text with a unit.
    """

    def __init__(self, **keys: Value) -> None:
        """A path with these keys."""
        self.keys = keys

    def given(self) -> Mapping[str, object]:
        """The table with values as they were given."""
        return self.keys

    def table(self) -> dict[str, object]:
        """The keys as plain values."""
        return cast("dict[str, object]", plain_json(self))


_FLOW_KEYS = frozenset(_knee.flow_keys()) - {"cc"}


class Flow:
    """A flow, a `[[flow]]` of a scenario: `Flow("chd", qth="20ms", start="5s")`.

    The first argument is the algorithm, a C file, or a class, see `knee.Algorithm`. A key that
    `[[flow]]` does not have is a parameter of the algorithm; one of the same name is given in
    `params`.
    """

    def __init__(self, cc: str | type[Algorithm] | None = None, **keys: Value) -> None:
        """A flow of `cc` with these keys and parameters.

        Raises:
            AlgorithmError: `cc` is a class that is no algorithm, or a faulty one.
            ScenarioError: `params` is no dict.
        """
        if isinstance(cc, type):
            defined(cc)  # Mistakes in it are told here.
        self.cc = cc
        self.keys = keys
        params: object = keys.get("params", {})
        if not isinstance(params, Mapping):
            help = 'write params={"qth": "20ms"}, or qth="20ms" without params'
            raise ScenarioError(f"params: {params!r} is no dict", help, key="params")

    def given(self) -> Mapping[str, object]:
        """The table with values as they were given."""
        own: dict[str, object] = {} if self.cc is None else {"cc": self.cc}
        own |= {key: value for key, value in self.keys.items() if key in _FLOW_KEYS}
        extra = {key: value for key, value in self.keys.items() if key not in _FLOW_KEYS}
        if extra:
            own["params"] = {**cast("Mapping[str, object]", own.get("params", {})), **extra}
        return own

    def table(self) -> dict[str, object]:
        """The keys as plain values."""
        return cast("dict[str, object]", plain_json(self))


@dataclass
class Scenario:
    """A scenario: a path, flows, and how long they run.

    Attributes:
        path: The path.
        flows: The flows, at least one.
        duration: Length of the run, with a unit.
        title: Title for people.
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

    def given(self) -> Mapping[str, object]:
        """The tables with values as they were given."""
        top: dict[str, object] = {
            "title": self.title,
            "duration": self.duration,
            "seed": self.seed,
            "repeat": self.repeat,
        }
        given = {key: of for key, of in top.items() if of is not None}
        given["path"] = self.path
        given |= {key: of for key, of in (("tcp", self.tcp), ("record", self.record)) if of}
        given["flow"] = list(self.flows)
        return given

    def table(self) -> dict[str, object]:
        """The scenario as plain values."""
        return cast("dict[str, object]", plain_json(self))

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
    # Text has lines or an equals sign; the name of a file has neither.
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return None, cast(str, plain_json(scenario)), "<text>"
    if isinstance(scenario, str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        file = fspath(scenario)
        with suppress(UnicodeEncodeError):
            return file, None, os.fsencode(file).decode(errors="replace")
        raise ScenarioError(f"{file!a} is no name of a file", "leave out the lone surrogates")
    what = f"{type(scenario).__name__} is no scenario"
    raise ScenarioError(what, "give a path, TOML text, a dict, or knee.Scenario(...)")


def arguments(changes: Mapping[str, Value] | Sequence[str] | None) -> list[str]:
    """Changes as they are typed after `--set`."""
    if changes is None:
        return []
    help = 'give a dict, as in set={"path.rate": "5mbit"}'
    if isinstance(changes, Mapping):
        return [f"{key}={toml_value(plain_json(value, key))}" for key, value in changes.items()]
    if isinstance(changes, str):
        raise ScenarioError("set is text", help)
    for change in changes:
        if not isinstance(change, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ScenarioError(f"set: {change!r} is no text", help)
    return cast("list[str]", plain_json(changes, "set"))
