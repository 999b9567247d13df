"""Commands that make many runs: each is a process of its own; its JSON output is the result."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from knee import _knee
from knee._errors import CommandError, KneeError
from knee._program import needs_program, program


def _command(
    name: str, operands: Sequence[str], options: Sequence[str], hosts: Sequence[str | None] = ()
) -> dict[str, Any]:
    of_the_program = [host for host in hosts if host is not None and needs_program(host)]
    knee = [program(of_the_program[0])] if of_the_program else [sys.executable, "-m", "knee"]
    done = subprocess.run(
        [*knee, name, *options, "--format", "json", "--", *operands],
        capture_output=True,
        text=True,
        check=False,
    )
    # 1 and 3 are verdicts of `reproduce`.
    if done.returncode not in (0, 1, 3) or not done.stdout:
        raise CommandError(done.stderr.strip() or f"it ended with {done.returncode}")
    return json.loads(done.stdout)


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [f"--{name}={value}"]


def _several(name: str, given: Sequence[str]) -> list[str]:
    """The words of an argument `name` that takes several."""
    if isinstance(given, str):
        raise KneeError(f"{name} is text", f'give a list, as in {name}=["{given}"]')
    return list(given)


def duel(
    a: str,
    b: str,
    *,
    path: str | None = None,
    duration: str | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    host: str | None = None,
    out: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """Runs two algorithms on a shared path: `duel("chd:qth=20ms", "newreno")`.

    Returns the JSON of `knee duel`; docs/how-to/compare-algorithms.md describes it.

    Args:
        a: An algorithm, with parameters if needed.
        b: The other algorithm; may be the same.
        path: Rate, RTT and queue, as in "10mbit,40ms,84p"; default: 100 Mbit/s, 40 ms, 1 BDP.
        duration: Length of a run, as in "60s".
        repeat: Repetitions of each run.
        seed: Seed of the first repetition.
        host: `sim`, `quic`, `kernel` or `vm`.
        out: New folder for the report; default: none is written.

    Raises:
        CommandError: The command failed.
        HostError: The program `knee`, which the host needs, was not found.
    """
    options = [
        *_option("path", path),
        *_option("duration", duration),
        *_option("repeat", repeat),
        *_option("seed", seed),
        *_option("host", host),
        *_option("out", None if out is None else fspath(out)),
    ]
    return _command("duel", [a, b], options, [host])


def matrix(
    algorithms: Sequence[str],
    *,
    out: str | PathLike[str],
    paths: Sequence[str] = (),
    duration: str | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    host: str | None = None,
) -> dict[str, Any]:
    """Runs each pair of algorithms, and each against itself; returns the JSON of `knee matrix`.

    Args:
        algorithms: At least two algorithms, with parameters if needed.
        out: New folder for the report.
        paths: Paths in the form of `duel`.
        duration: Length of a run, as in "60s".
        repeat: Repetitions of each run.
        seed: Seed of the first repetition.
        host: `sim`, `quic`, `kernel` or `vm`.

    Raises:
        CommandError: The command failed.
        HostError: The program `knee`, which the host needs, was not found.
        KneeError: `algorithms` or `paths` is a text, not a list.
    """
    options = [
        *_option("cc", ",".join(_several("algorithms", algorithms))),
        *(word for path in _several("paths", paths) for word in _option("path", path)),
        *_option("duration", duration),
        *_option("repeat", repeat),
        *_option("seed", seed),
        *_option("host", host),
        *_option("out", fspath(out)),
    ]
    return _command("matrix", [], options, [host])


def reproduce(
    paper: str,
    *,
    out: str | PathLike[str],
    figure: str | None = None,
    short: bool = False,
    repeat: int | None = None,
) -> dict[str, Any]:
    """Draws a paper's figures and judges its claims; returns the JSON of `knee reproduce`.

    Args:
        paper: `chd`, `delay-aimd`, `htcp`, `ftcp`, `hd`, `others`, `ebb` or `all`.
        out: New folder for the report.
        figure: Only this figure and its claims.
        short: Only the claims that need few runs.
        repeat: Number of repetitions (overrides the scenarios).

    Raises:
        CommandError: The command failed.
    """
    options = [
        *(["--short"] if short else []),
        *_option("figure", figure),
        *_option("repeat", repeat),
        *_option("out", fspath(out)),
    ]
    return _command("reproduce", [paper], options)


def compare(
    scenario: str | PathLike[str],
    *,
    hosts: Sequence[str] = ("sim", "quic"),
    repeat: int | None = None,
) -> dict[str, Any]:
    """Runs a scenario on two or three hosts; returns the JSON of `knee compare`.

    Args:
        scenario: A file.
        hosts: Two or three hosts; the others are compared with the first.
        repeat: Number of repetitions (overrides the scenario).

    Raises:
        CommandError: The command failed.
        HostError: The program `knee`, which a host needs, was not found.
        KneeError: `hosts` is a text, not a list.
    """
    several = _several("hosts", hosts)
    options = [*_option("host", ",".join(several)), *_option("repeat", repeat)]
    return _command("compare", [fspath(scenario)], options, several)


def algorithms(*names: str) -> list[dict[str, Any]]:
    """Returns algorithms with their parameters, units, ranges, defaults and sources.

    Args:
        names: Names of algorithms, or C files; default: all built-in algorithms.
    """
    return json.loads(_knee.algorithms_json(list(names)))["algorithms"]


def load_c(text: str, *, file: str = "<text>") -> str:
    """Compiles an algorithm of your own from C text; returns its name, for `cc`.

    It becomes part of this process. `docs/how-to/add-an-algorithm.md` has the rules.

    Args:
        text: The C source.
        file: Name of the source in error messages.

    Raises:
        AlgorithmError: The text does not compile; the error has the compiler's message.
    """
    return _knee.load_c(file, text)
