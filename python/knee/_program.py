"""The program `knee` that Cargo builds: it has the hosts that need the kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from knee import _knee
from knee._errors import HostError


def needs_program(host: str) -> bool:
    """Whether this package lacks the host, so that the program must carry out its runs."""
    return host not in _knee.HOSTS


def program(host: str) -> str:
    """Its file: the one that `KNEE_PROGRAM` names, or the first on the PATH that is no script."""
    build = "build it, `cargo install --path crates/knee`, and name it in KNEE_PROGRAM"
    given = os.environ.get("KNEE_PROGRAM")
    if given:
        if not os.access(given, os.X_OK):
            raise HostError(f"KNEE_PROGRAM is {given}, which is no program", build)
        return given
    for folder in os.get_exec_path():
        file = Path(folder, "knee")
        # The command that comes with this package is a script, and lacks these hosts.
        if os.access(file, os.X_OK) and file.is_file():
            with file.open("rb") as start:
                if start.read(4) == b"\x7fELF":
                    return str(file)
    here = " and ".join(_knee.HOSTS)
    raise HostError(
        f"this package has {here} only: the host {host} needs the program `knee` that Cargo builds",
        build,
    )


def runs(asked: bytes, host: str, jobs: int, kernel: str | None) -> bytes:
    """The program's answer to a message that asks for runs."""
    words: Sequence[str] = [
        program(host),
        "run-apart",
        "--host",
        host,
        *(["--jobs", str(jobs)] if jobs else []),
        *(["--kernel", kernel] if kernel else []),
    ]
    # Ctrl-C reaches the program as it reaches this process; it cleans up by itself.
    done = subprocess.run(words, input=asked, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        what, _, help = said.partition("\n  help: ")
        what = what.strip().removeprefix("\u00d7").strip()
        raise HostError(what or f"{words[0]} ended with {done.returncode}", help.strip() or None)
    return done.stdout
