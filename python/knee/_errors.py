"""Exceptions: the fault, its place, and a remedy."""

from __future__ import annotations

import operator
from typing import SupportsIndex, cast


class KneeError(Exception):
    """Base class of all errors; its text is the message that the program `knee` prints.

    Attributes:
        what: The fault.
        help: The remedy, if it is known.
        file: The file it is about (`--set` for a value from `set=`), if there is one.
        line: Line in it, from 1.
        key: The scenario's key, such as `flow.0.params.qth`.
    """

    def __init__(
        self,
        what: str,
        help: str | None = None,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
    ) -> None:
        """Keeps the parts; `str()` puts them together."""
        super().__init__(what)
        self.what = what
        self.help = help
        self.file = file
        self.line = line
        self.key = key

    def __reduce__(self) -> tuple[type[KneeError], tuple[str | int | None, ...]]:
        """Parts, so that worker processes can hand it on."""
        return type(self), (self.what, self.help, self.file, self.line, self.key)

    def __str__(self) -> str:
        """Place, fault and remedy."""
        place = "" if self.file is None else f"{self.file}, line {self.line}: "
        remedy = f"\nhelp: {self.help}" if self.help else ""
        return f"{place}{self.what}{remedy}"


def count(
    name: str, given: object, least: int, most: int, error: type[KneeError] = KneeError
) -> int:
    """The integer that the argument `name` gives.

    Raises:
        error: It is no integer from `least` to `most`.
    """
    try:
        number = operator.index(cast("SupportsIndex", given))
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise error(f"{name} = {given!r}", f"write an integer from {least} to {most}")
    return number


class ScenarioError(KneeError):
    """A scenario that cannot be run as it is written."""


class StudyError(KneeError):
    """A study that cannot be run as it is written, or whose runs or data met an obstacle."""


class HostError(KneeError):
    """A run that its host cannot make, or a run that broke."""


class AlgorithmError(KneeError):
    """There is no such algorithm, or a C file or a class does not define one."""


class CallLimit(BaseException):
    """Raised in a call of an algorithm that takes too long; `except Exception` does not stop it."""


class CommandError(KneeError):
    """A command of `knee` failed; `what` has its message."""
