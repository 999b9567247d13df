"""The JSON Schema of scenario files, in an independent validator."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import knee

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/reference/scenario.schema.json").read_text())
SCENARIOS = [
    file
    for folder in ("scenarios", "studies")
    for file in sorted((ROOT / folder).rglob("*.toml"))
    if "\n[path]" in file.read_text()
]
SMALL = """
duration = "10s"
[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
[[flow]]
cc = "chd"
"""
ACCEPTED = [
    SMALL + 'params = { qth = "20ms", queue_min = "5ms" }\n',
    SMALL + 'tcp = { initial_window = 4, receive_window = "100p", ecn = true }\n',
    SMALL + 'size = { law = "pareto", mean = "30kB", shape = 1.2 }\narrivals = { load = 0.3 }\n',
    SMALL + '[[flow]]\nkind = "udp"\nrate = "0.5 mbit"\nrate_steps = [["2s", "0bit"]]\n',
    SMALL + '[[flow]]\nkind = "probe"\npacket = "100B"\n',
    SMALL.replace('"84p"', '"100kB+1p"'),
    SMALL.replace('"84p"', '"84p"\naqm = { kind = "pie", target = "20ms", alpha = 1 }'),
]
REFUSED = {
    "a missing key": SMALL.replace('duration = "10s"', ""),
    "a missing table": SMALL.partition("[[flow]]")[0],
    "an unknown key": SMALL.replace("rtt =", "rt ="),
    "an unknown table": SMALL + "[tcpp]\necn = true\n",
    "no unit": SMALL.replace('"40ms"', '"40"'),
    "a bare number": SMALL.replace('"40ms"', "40"),
    "another unit": SMALL.replace("10mbit", "10mbps"),
    "a rate of 0": SMALL.replace("10mbit", "0.0mbit"),
    "a queue of 0": SMALL.replace("84p", "0p"),
    "a probability above 1": SMALL.replace("[[flow]]", "loss_forward = 1.5\n[[flow]]"),
    "a boolean as text": SMALL + 'tcp = { ecn = "yes" }\n',
    "an integer out of range": "repeat = 0\n" + SMALL,
    "an unknown algorithm": SMALL.replace('"chd"', '"chdd"'),
    "an unknown word": SMALL + 'direction = "back"\n',
    "a parameter of another algorithm": SMALL.replace('"chd"', '"newreno"')
    + 'params = { qth = "20ms" }\n',
    "a parameter out of range": SMALL + "params = { pmax = 1.5 }\n",
    "parameters of the kernel's algorithm": SMALL.replace('"chd"', '"kernel:cubic"')
    + 'params = { qth = "20ms" }\n',
    "a key of another kind of flow": SMALL + 'rate = "1mbit"\n',
    "UDP without a rate": SMALL + '[[flow]]\nkind = "udp"\n',
    "a key of another discipline": SMALL.replace(
        '"84p"', '"84p"\naqm = { kind = "codel", gentle = true }'
    ),
    "a law without its shape": SMALL
    + 'arrivals = { load = 0.3 }\nsize = { law = "pareto", mean = "30kB" }\n',
}


def mistakes(scenario: dict[str, Any]) -> list[str]:
    """The validator's errors on a scenario."""
    errors = jsonschema.Draft7Validator(SCHEMA).iter_errors(scenario)
    return [f"{error.json_path}: {error.message}" for error in errors]


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_scenario_of_the_repository_is_valid(file: Path) -> None:
    assert not mistakes(tomllib.loads(file.read_text()))


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_valid_scenario_is_accepted(text: str) -> None:
    assert not mistakes(tomllib.loads(text))


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_wrong_scenario_is_refused(text: str) -> None:
    with pytest.raises(knee.KneeError):
        knee.run(text)
    assert mistakes(tomllib.loads(text))
