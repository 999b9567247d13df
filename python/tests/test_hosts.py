"""Hosts that the program `knee` has: the same results as its own; clear words without it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import knee
from knee import _knee
from knee._program import runs
from knee._runs import wanted

TEXT = """\
duration = "2s"
repeat = 2
[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
[record]
trace = true
[[flow]]
cc = "chd"
"""


def test_without_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KNEE_PROGRAM", raising=False)
    script = tmp_path / "knee"
    script.write_text("#!/bin/sh\n")
    script.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    for host in ("kernel", "vm"):
        with pytest.raises(knee.HostError, match=f"the host {host} needs the program") as caught:
            knee.run(TEXT, host=host)
        assert caught.value.help and "KNEE_PROGRAM" in caught.value.help
    with pytest.raises(knee.HostError, match="needs the program"):
        knee.duel("chd", "newreno", host="vm")
    monkeypatch.setenv("KNEE_PROGRAM", "/nowhere/knee")
    with pytest.raises(knee.HostError, match="/nowhere/knee, which is no program"):
        knee.run(TEXT, host="vm")
    monkeypatch.setenv("KNEE_PROGRAM", "/bin/true")
    with pytest.raises(knee.HostError, match="gave no answer"):
        knee.run(TEXT, host="kernel")
    with pytest.raises(knee.KneeError, match="kernel has no meaning"):
        knee.run(TEXT, host="sim", kernel="debian:6.12")


def test_the_way_to_the_program_and_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # This package's own command has `run-apart` too, for the hosts that both have.
    command = tmp_path / "knee"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m knee "$@"\n')
    command.chmod(stat.S_IRWXU)
    monkeypatch.setenv("KNEE_PROGRAM", str(command))
    for host in ("sim", "quic"):
        asked = [wanted(TEXT, 3, None, None, host)]
        made = knee.Results(_knee.runs_made(asked, runs(_knee.runs_asked(asked), host, 0, None))[0])
        here = knee.run(TEXT, seed=3, host=host)
        assert made.summary == here.summary
        for name in ("time_s", "cwnd_pkts"):
            assert made.flows.column(name) == here.flows.column(name)
        assert len(made.trace) == len(here.trace) > 0
    command.write_text(
        "#!/bin/sh\nprintf '  \\303\\227 no such machine\\n  help: get one\\n' >&2; exit 2\n"
    )
    with pytest.raises(knee.HostError, match="no such machine") as caught:
        knee.run(TEXT, host="vm")
    assert caught.value.help == "get one"
    for host in ("kernel", "linux"):
        with pytest.raises(knee.HostError, match="this process only") as caught:
            knee.run(TEXT, host=host, set={"flow.0.cc": One})
        assert caught.value.help == "write it as a C file"


built = pytest.mark.skipif(
    "KNEE_PROGRAM" not in os.environ,
    reason="needs the program: KNEE_PROGRAM, as scripts/test-python.sh sets it",
)


@built
def test_the_virtual_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Found on the PATH, behind a script of the same name.
    program = Path(os.environ["KNEE_PROGRAM"])
    monkeypatch.delenv("KNEE_PROGRAM")
    path = os.pathsep.join([os.environ["PATH"], str(program.parent)])
    monkeypatch.setenv("PATH", path)
    results = knee.run(TEXT, host="vm", seed=3, repeat=1)
    assert results.host == "vm"
    # CHD's utilisation in its first 2 s depends on its random draws: 0.76 to 0.95 with 20 seeds,
    # and 0.63 to 0.98 in the simulator with 400.
    assert 0.5 < (results.utilisation() or 0) < 1
    assert len(results.trace) > 0
    # The same run, by the program itself.
    file = tmp_path / "run.toml"
    file.write_text(TEXT)
    options = ["--host", "vm", "--seed", "3", "--repeat", "1", "--format", "json"]
    words = [program, "run", file, *options]
    done = subprocess.run(words, capture_output=True, check=True)
    assert results.summary["runs"] == json.loads(done.stdout)["runs"]
    with pytest.raises(knee.HostError, match="this process only"):
        knee.run(TEXT, host="vm", set={"flow.0.cc": One})


@built
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_kernel() -> None:
    try:
        results = knee.run(TEXT, host="kernel", repeat=1)
    except knee.HostError as error:
        # Real time: the only excuse.
        assert "too slow" in str(error)
        return
    assert results.host == "kernel"
    # CHD draws its backoffs: six runs of 2 s had 71 to 90 % of the capacity.
    assert (results.utilisation() or 0) > 0.5
    assert len(results.trace) > 0


class One(knee.Algorithm):
    def on_rtt(self, conn: knee.Conn, ack: knee.Ack) -> None:
        conn.cwnd_pkts = 1
