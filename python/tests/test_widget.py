"""Charts in notebooks: the data sent to the page."""

from __future__ import annotations

import importlib
import math
import struct
from pathlib import Path

import pytest

import knee

pytest.importorskip("anywidget")

from knee.widget import charts

TEXT = """\
duration = "3s"
repeat = 2

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"

[record]
bin = "100ms"

[[flow]]
name = "first"
cc = "chd"

[[flow]]
name = "probe"
kind = "probe"
interval = "20ms"
"""


def test_the_columns_are_those_of_the_tables() -> None:
    results = knee.run(TEXT)
    widget = charts(results, repetition=2)
    shown = widget.shown
    count = shown["count"]
    assert (shown["duration_s"], count) == (3.0, 30)
    drawn = {chart["id"]: chart for chart in shown["charts"]}
    assert list(drawn) == ["cwnd", "queue", "goodput", "srtt", "lost"]
    numbers = struct.unpack(f"<{len(widget.columns) // 8}d", widget.columns)
    columns = [numbers[i : i + count] for i in range(0, len(numbers), count)]

    def line(chart: str) -> tuple[float, ...]:
        (found,) = [one for one in drawn[chart]["lines"] if one["label"] in ("first", "queue")]
        return columns[1 + found["column"]]

    flows = zip(
        results.flows.column("repetition"),
        results.flows.column("flow"),
        results.flows.column("time_s"),
        results.flows.column("cwnd_pkts"),
        strict=True,
    )
    wanted = [
        (time_s, cwnd) for number, flow, time_s, cwnd in flows if (number, flow) == (2, "first")
    ]
    assert list(zip(columns[0], line("cwnd"), strict=True)) == wanted
    delays_us = results.queue.column("mean_delay_us")[count:]
    for got_ms, delay_us in zip(line("queue"), delays_us, strict=True):
        assert math.isnan(got_ms) if delay_us is None else got_ms == delay_us * 1e-3
    # A probe has no window.
    assert [one["label"] for one in drawn["cwnd"]["lines"]] == ["first"]


def test_another_run_takes_the_place_and_a_part_stays() -> None:
    widget = charts(knee.run(TEXT))
    assert widget.range_s == (0.0, 3.0)
    first = widget.columns
    lossy = knee.run(TEXT, set={"path.loss_forward": 0.02})
    widget.show(lossy)
    assert widget.columns == charts(lossy).columns != first
    widget.range_s = (1.0, 2.5)
    widget.show(knee.run(TEXT, set={"duration": "6s"}))
    assert (widget.shown["duration_s"], widget.range_s) == (6.0, (1.0, 2.5))
    # A part that the new run does not have is not kept; all of it stays all of it.
    widget.show(knee.run(TEXT, set={"duration": "2s"}))
    assert widget.range_s == (0.0, 2.0)
    widget.show(knee.run(TEXT))
    assert widget.range_s == (0.0, 3.0)


def test_charts_that_cannot_be_drawn_are_reported() -> None:
    with pytest.raises(knee.KneeError, match="repetition 7"):
        charts(knee.run(TEXT), repetition=7)
    widget = charts(knee.run(TEXT))
    with pytest.raises(knee.KneeError, match="repetition 7"):
        widget.show(knee.run(TEXT), repetition=7)


def test_a_package_without_the_script_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import knee.widget

    monkeypatch.setattr(Path, "is_file", lambda path: path.name != "widget.js")
    with pytest.raises(knee.KneeError, match=r"(?s)no script for charts.*build-widget\.sh"):
        importlib.reload(knee.widget)
