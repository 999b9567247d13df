"""Charts over time in a notebook, Jupyter's or marimo's: they zoom, pan and tell values.

from knee.widget import charts

figure = charts(knee.run("scenarios/chd/coexistence.toml"))
figure                                  # drawn below the cell
figure.show(knee.run(...))              # another run in the same place
figure.range_s                          # the part that is zoomed in on

Needs anywidget and a script for the page. In a checkout: `scripts/build-widget.sh` (with Node.js),
then `pip install '.[widget]'`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from knee._errors import KneeError
from knee._runs import Results, Table

try:
    import anywidget
    import traitlets
except ImportError:
    raise KneeError("anywidget is not installed", "pip install '.[widget]' in a checkout") from None

_STATIC = Path(__file__).parent / "static"
if not (_STATIC / "widget.js").is_file():
    raise KneeError(
        "this build of the package has no script for charts in notebooks",
        "run scripts/build-widget.sh in a checkout (with Node.js), then pip install '.[widget]'",
    )
_FLOWS_DRAWN = 12
"""More flows cannot be told apart."""
_QUEUE_HUE = 6


class _Line(TypedDict):
    label: str
    hue: int
    column: int


class _Chart(TypedDict):
    id: str
    title: str
    unit: str
    style: str
    lines: list[_Line]


class _Kind(NamedTuple):
    """A chart of flows: its column in the table, and the factor of its values."""

    column: str
    title: str
    unit: str
    factor: float = 1.0
    style: str = "line"


_KINDS = (
    _Kind("cwnd_pkts", "Congestion window", "(packets)"),
    _Kind("goodput_bps", "Goodput", "(Mbit/s, of each bin)", 1e-6),
    _Kind("srtt_us", "Smoothed round-trip time", "(ms)", 1e-3),
    _Kind("lost_pkts", "Packets lost or dropped", "(in the bin)", 1.0, "sticks"),
)


class Charts(anywidget.AnyWidget):
    """The charts of a repetition; `charts` makes them.

    A program that must know when something else is shown observes `range_s`, as any trait.
    """

    _esm = _STATIC / "widget.js"
    _css = _STATIC / "widget-style.css"
    shown = traitlets.Dict().tag(sync=True)
    """The drawing: length of the run and of each column, charts, lines with their columns."""
    columns = traitlets.Bytes().tag(sync=True)
    """The times (s), then a column for each line: 64-bit floats, least byte first, NaN for none."""
    range_s = traitlets.Tuple(traitlets.Float(), traitlets.Float()).tag(sync=True)
    """The part of the run that is shown, from and to (s). It follows zooming in the notebook, and
    the notebook follows it."""

    def show(self, results: Results, repetition: int = 1) -> None:
        """Draws a repetition of other results instead of the present ones.

        A part that is zoomed in on stays, if the new run has it.

        Raises:
            KneeError: There is no such repetition.
        """
        shown, columns = _drawn(results, repetition)
        new_s = float(shown["duration_s"])
        whole = self.range_s == (0.0, self.shown.get("duration_s", 0.0))
        part = self.range_s if not whole and self.range_s[1] <= new_s else (0.0, new_s)
        with self.hold_sync():
            self.shown, self.columns, self.range_s = shown, columns, part


def charts(results: Results, repetition: int = 1) -> Charts:
    """The charts of a repetition, counted from 1.

    Shows the first 12 flows that the scenario names, and the first of several bottlenecks.

    Raises:
        KneeError: There is no such repetition.
    """
    shown, columns = _drawn(results, repetition)
    return Charts(shown=shown, columns=columns, range_s=(0.0, float(shown["duration_s"])))


def _drawn(results: Results, repetition: int) -> tuple[dict[str, Any], bytes]:
    """Data for the page: `Charts.shown` and `Charts.columns`."""
    names = [flow.name for flow in results.flow_names(repetition) if not flow.source]
    drawn = names[:_FLOWS_DRAWN]
    times, queue = _queue(results.queue, repetition)
    columns: list[Sequence[float]] = [times]
    made: list[_Chart] = []

    def add(chart: _Kind, lines: Iterable[tuple[str, int, Sequence[float]]]) -> None:
        kept: list[_Line] = []
        for label, hue, values in lines:
            if len(values) != len(times) or all(map(math.isnan, values)):
                continue
            kept.append({"label": label, "hue": hue, "column": len(columns) - 1})
            columns.append(values)
        if kept:
            made.append(
                {
                    "id": chart.column.split("_")[0],
                    "title": chart.title,
                    "unit": chart.unit,
                    "style": chart.style,
                    "lines": kept,
                }
            )

    rows = _rows(results.flows, repetition, drawn)
    for kind in _KINDS:
        values = results.flows.column(kind.column)
        add(
            kind,
            (
                (name, hue, _numbers((values[row] for row in rows[name]), kind.factor))
                for hue, name in enumerate(drawn)
            ),
        )
        if kind is _KINDS[0]:
            add(
                _Kind("queue", "Queueing delay", "(ms)", style="area"),
                [("queue", _QUEUE_HUE, queue)],
            )
    data = array("d")
    for column in columns:
        data.extend(column)
    if array("H", [1]).tobytes() != b"\x01\x00":
        data.byteswap()
    shown: dict[str, Any] = {
        "duration_s": results.duration_s,
        "count": len(times),
        "charts": made,
    }
    return shown, data.tobytes()


def _numbers(values: Iterable[float | None], factor: float) -> list[float]:
    return [math.nan if value is None else value * factor for value in values]


def _rows(flows: Table, repetition: int, names: Sequence[str]) -> dict[str, list[int]]:
    """Numbers of the rows of each of these flows."""
    rows: dict[str, list[int]] = {name: [] for name in names}
    of = zip(flows.column("repetition"), flows.column("flow"), strict=True)
    for row, (number, name) in enumerate(of):
        if number == repetition and name in rows:
            rows[name].append(row)
    return rows


def _queue(queue: Table, repetition: int) -> tuple[list[float], list[float]]:
    """Times (s) and mean queueing delays (ms) of the first bottleneck."""
    numbers = queue.column("repetition")
    named = "hop" in (name for name, _ in queue.columns)
    queues: list[Any] = queue.column("hop") if named else [None] * len(numbers)
    rows = [row for row, number in enumerate(numbers) if number == repetition]
    rows = [row for row in rows if queues[row] == queues[rows[0]]]
    times, delays = queue.column("time_s"), queue.column("mean_delay_us")
    return [times[row] for row in rows], _numbers((delays[row] for row in rows), 1e-3)
