"""Runs of scenarios, and their measurements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from os import PathLike, fspath
from typing import Any, Literal, NamedTuple, cast

from knee import _knee
from knee._algorithm import Algorithm, defined
from knee._errors import KneeError, count
from knee._program import needs_program, runs
from knee._scenario import Described, Value, arguments, classes_in, described

Table = _knee.Table


class Percentiles(NamedTuple):
    """Percentiles over repetitions, linearly interpolated."""

    p20: float
    """20th percentile."""
    p50: float
    """Median."""
    p80: float
    """80th percentile."""


class FlowName(NamedTuple):
    """A flow of a repetition."""

    name: str
    """Its name in the scenario."""
    kind: str
    """Its algorithm, or `udp`, `probe`."""
    source: str
    """The table that drew it; empty for a flow that the scenario names."""


Flows = str | int | type[Algorithm] | Sequence[str | int | type[Algorithm]] | None
"""Flows: a name, an algorithm, a number from 0, several of these, or None for all TCP flows."""


class Metric(NamedTuple):
    """A metric of `Results.metric`, of studies and of claims."""

    name: str
    """Its name, whose last part is the unit."""
    of: str
    """`run`, `queue` or `flow`."""
    unit: str
    """Its unit; a range for a number without one."""
    meaning: str
    """Its description."""
    windowed: bool
    """True if it takes a window."""


def metrics() -> list[Metric]:
    """The metrics that `Results.metric` knows, in the order of every output."""
    return [Metric(*row) for row in _knee.metrics()]


class Results:
    """The measurements of a scenario, with all its repetitions; `knee.run` returns them.

    Metrics are defined as in the claims and in `summary.json`. Each takes `repetition`, counted
    from 1, and a window from `from_s` to `to_s`, seconds from the start of the run. Without
    `repetition` a metric is the median over the repetitions. A metric is None if there is nothing
    to measure: no packet, or no such time.

    Flows are a name, an algorithm (its name or class), a number counted from 0, or several of
    these. Without flows, a metric covers all TCP flows.
    """

    def __init__(self, native: _knee.Results) -> None:
        """Wraps native results; `knee.run` makes them."""
        self._native = native

    def __len__(self) -> int:
        """Number of repetitions."""
        return len(self._native)

    @property
    def host(self) -> str:
        """The host that ran it."""
        return self._native.host

    @property
    def seeds(self) -> list[int]:
        """Seed of each repetition."""
        return self._native.seeds

    @property
    def duration_s(self) -> float:
        """Length of a run, seconds."""
        return self._native.duration_s

    @property
    def scenario(self) -> str:
        """The scenario as TOML that says all by itself."""
        return self._native.text

    @property
    def notes(self) -> list[str]:
        """Where the host deviates from the scenario."""
        return self._native.notes

    @property
    def summary(self) -> dict[str, Any]:
        """The output of `knee run --format json`."""
        return json.loads(self._native.summary_json())

    @property
    def flows(self) -> Table:
        """Every flow over time, as `flows.parquet` has it: one row per repetition, flow and bin."""
        return self._native.table("flows")

    @property
    def queue(self) -> Table:
        """The bottleneck's queue over time: one row per repetition and bin."""
        return self._native.table("queue")

    @property
    def trace(self) -> Table:
        """Every call of the algorithms; needs `record = {"trace": True}`."""
        return self._native.table("trace")

    @property
    def packets(self) -> Table:
        """Every packet at the bottleneck; needs `record = {"queue_log": True}`."""
        return self._native.table("packets")

    @property
    def probes(self) -> Table:
        """Every probe that arrived: when it was sent, and its one-way delay."""
        return self._native.table("probes")

    @property
    def transfers(self) -> Table:
        """Every transfer: size, start and end."""
        return self._native.table("transfers")

    def flow_names(self, repetition: int = 1) -> list[FlowName]:
        """The flows of a repetition, counted from 1."""
        return self._names(self._index(repetition))

    def goodput(
        self,
        flows: Flows = None,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        repetition: int | None = None,
    ) -> float | None:
        """Goodput of these flows together, bit/s: payload delivered in order, exactly once."""
        return self._of(
            lambda r: self._native.goodput_bps(r, self._meant(flows, r), from_s, to_s), repetition
        )

    def jain(
        self,
        flows: Flows = None,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        repetition: int | None = None,
    ) -> float | None:
        """Jain's index of the flows' goodputs, 1/n to 1; without a window, while all were alive."""
        return self._of(
            lambda r: self._native.jain(r, self._meant(flows, r), from_s, to_s), repetition
        )

    def share(
        self,
        flows: Flows,
        others: Flows = None,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        repetition: int | None = None,
    ) -> float | None:
        """Share of these flows in the goodput of both groups together, 0 to 1.

        Without `others`, the share of all TCP flows.
        """

        def of(r: int) -> float | None:
            group = self._meant(flows, r)
            rest = [flow for flow in self._meant(others, r) if flow not in group]
            return self._native.share(r, group, rest, from_s, to_s)

        return self._of(of, repetition)

    def convergence(
        self,
        flows: Flows = None,
        *,
        from_s: float = 0.0,
        to_s: float | None = None,
        width_s: float = 1.0,
        threshold: float = 0.9,
        hold_s: float = 0.0,
        repetition: int | None = None,
    ) -> float | None:
        """Seconds after `from_s` until the flows share fairly; None if they do not.

        The first t for which Jain's index of their goodputs is at least `threshold` in every window
        of `width_s` that starts from `from_s + t` to `from_s + t + hold_s`.

        Raises:
            KneeError: `width_s` is not above 0, `threshold` not from 0 to 1, or `hold_s` below 0.
        """
        for name, given, right, help in (
            ("width_s", width_s, width_s > 0, "write seconds above 0"),
            ("threshold", threshold, 0 <= threshold <= 1, "write 0 to 1, such as 0.9"),
            ("hold_s", hold_s, hold_s >= 0, "write seconds, 0 or more"),
        ):
            if not right:
                raise KneeError(f"{name} = {given}", help)
        return self._of(
            lambda r: self._native.convergence_s(
                r, self._meant(flows, r), from_s, to_s, width_s, threshold, hold_s
            ),
            repetition,
        )

    def utilisation(
        self,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        repetition: int | None = None,
    ) -> float | None:
        """Used fraction of the bottleneck's capacity, 0 to 1, headers included."""
        return self.metric("utilisation", from_s=from_s, to_s=to_s, repetition=repetition)

    def queueing_delay(
        self,
        q: float | None = None,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        repetition: int | None = None,
    ) -> float | None:
        """Queueing delay at the bottleneck, ms: the mean, or the percentile `q` (0 to 1)."""
        if q is not None and not 0 <= q <= 1:
            raise KneeError(f"q = {q} is no percentile", "write 0.95 for the 95th")
        return self._of(lambda r: self._native.queueing_delay_ms(r, q, from_s, to_s), repetition)

    def loss(
        self,
        flows: Flows = None,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        repetition: int | None = None,
    ) -> float | None:
        """Fraction of the flows' packets that were dropped or lost, 0 to 1."""
        return self._of(
            lambda r: self._native.loss_fraction(r, self._meant(flows, r), from_s, to_s), repetition
        )

    def metric(
        self,
        name: str,
        flow: Flows = None,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        repetition: int | None = None,
    ) -> float | None:
        """A metric by name: of one flow, or of the run and its first bottleneck.

        `knee.metrics()` lists the names. Example: `results.metric("rtt_p95_ms", "chd")`.

        Raises:
            KneeError: There is no such metric or flow, several flows are meant, or the metric takes
                no window.
        """

        def of(r: int) -> float | None:
            index = None
            if flow is not None:
                index, *more = self._meant(flow, r)
                if more:
                    raise KneeError(f"`{flow}` means several flows", "give the name of one")
            return self._native.metric(r, name, index, from_s, to_s)

        return self._of(of, repetition)

    def percentiles(self, metric: str, *of: Flows, **keys: float) -> Percentiles | None:
        """20th, 50th and 80th percentile of a metric over the repetitions; None if all are None.

        Example: `results.percentiles("share", "chd", from_s=20)`.

        Args:
            metric: Name of a metric: `goodput`, `jain`, `share`, `convergence`, `utilisation`,
                `queueing_delay`, `loss`, or one of `knee.metrics()`.
            of: Flows, as for that metric.
            keys: Keyword arguments of that metric.

        Raises:
            KneeError: There is no such metric.
        """
        measured: Callable[..., float | None]
        if metric in METRICS:
            measured = getattr(self, metric)
        elif any(row.name == metric for row in metrics()):
            measured = partial(self.metric, metric)
        else:
            help = f"metrics: {', '.join(METRICS)}, and those of knee.metrics()"
            raise KneeError(f"no metric `{metric}`", help)
        numbers = range(1, len(self) + 1)
        all_values = [measured(*of, **keys, repetition=r) for r in numbers]
        values = [value for value in all_values if value is not None]
        if not values:
            return None
        at = [_knee.percentile_of(values, q) for q in (0.2, 0.5, 0.8)]
        return Percentiles(*(float(value) for value in at if value is not None))

    def charts(self, repetition: int = 1) -> dict[str, str]:
        """The report's charts of a repetition, counted from 1: SVG text by name."""
        return dict(self._native.charts(self._index(repetition)))

    def plot(
        self,
        chart: str | None = None,
        repetition: int = 1,
        *,
        kind: Literal["altair", "svg"] | None = None,
    ) -> Any:  # noqa: ANN401
        """A chart of the report, by default the first one, for a notebook to show.

        Args:
            chart: Name of a chart: a key of `charts()`.
            repetition: Number of the repetition, from 1.
            kind: `altair` for an `altair.Chart`, `svg` for a `knee.Plot` with the report's SVG.
                Default: `altair` if it is installed. Both draw the same series.

        Raises:
            KneeError: There is no such chart, repetition or kind, or Altair is not installed.
        """
        charts = self.charts(repetition)
        name = chart or next(iter(charts), "")
        if name not in charts:
            raise KneeError(f"no chart `{name}`", f"charts: {', '.join(charts)}")
        if kind not in (None, "altair", "svg"):
            raise KneeError(f"no kind `{kind}` of charts", "kinds: altair, svg")
        if kind == "svg" or (kind is None and find_spec("altair") is None):
            return Plot(charts[name])
        drawn = {of[0]: of for of in self._native.drawn(self._index(repetition))}
        _, title, x, y, series = drawn[name]
        return _altair(title, x, y, series)

    def report(self) -> str:
        """The HTML text of the report that `knee run --out` writes."""
        return self._native.report_html()

    def save(self, out: str | PathLike[str]) -> str:
        """Writes the new results folder of `knee run --out`, and returns its path."""
        return fspath(self._native.save(fspath(out)))

    def __str__(self) -> str:
        """The tables that `knee run` prints."""
        return self._native.report_text()

    def __repr__(self) -> str:
        """Number of runs, their length and host."""
        runs = "1 run" if len(self) == 1 else f"{len(self)} runs"
        return f"<knee.Results of {runs} of {self.duration_s:g} s on {self.host}>"

    def _repr_html_(self) -> str:
        figures = "".join(f"<div>{svg}</div>" for svg in self.charts().values())
        return f"<pre>{_escaped(str(self))}</pre>{figures}"

    def _index(self, repetition: int) -> int:
        if not 1 <= repetition <= len(self):
            what = f"repetition {repetition}: there are {len(self)}, counted from 1"
            raise KneeError(what, "leave it out for the median over all")
        return repetition - 1

    def _names(self, index: int) -> list[FlowName]:
        return [FlowName(*flow) for flow in self._native.flow_names(index)]

    def _of(self, metric: Callable[[int], float | None], repetition: int | None) -> float | None:
        if repetition is not None:
            return metric(self._index(repetition))
        values = [value for r in range(len(self)) if (value := metric(r)) is not None]
        return _knee.percentile_of(values, 0.5)

    def _meant(self, flows: Flows, index: int) -> list[int]:
        names = self._names(index)
        if flows is None:
            return [i for i, flow in enumerate(names) if flow.kind not in ("udp", "probe")]
        asked = [flows] if isinstance(flows, str | int | type) else flows
        found: list[int] = []
        for of in asked:
            one = defined(of) if isinstance(of, type) else of
            if isinstance(one, int):
                meant = [one] if 0 <= one < len(names) else []
            else:
                meant = [i for i, f in enumerate(names) if f.name == one]
                meant = meant or [i for i, f in enumerate(names) if one in (f.kind, f.source)]
            if not meant:
                known = ", ".join(sorted({f.name for f in names}))
                raise KneeError(f"no flow `{one}`", f"flows: {known}")
            found += [flow for flow in meant if flow not in found]
        return found


METRICS = (
    "goodput",
    "jain",
    "share",
    "convergence",
    "utilisation",
    "queueing_delay",
    "loss",
)


class Plot:
    """A chart as SVG, which a notebook shows."""

    def __init__(self, svg: str) -> None:
        """Wraps SVG text."""
        self.svg = svg

    def save(self, file: str | PathLike[str]) -> None:
        """Writes it as an SVG file."""
        with open(file, "w", encoding="utf-8") as out:
            out.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


_DASHES = {"line": [1, 0], "steps": [1, 0], "dashed": [6, 3], "dotted": [2, 2], "marks": [1, 0]}


def _altair(
    title: str,
    x: str,
    y: str,
    series: Sequence[tuple[str, str, Sequence[tuple[float, float | None]]]],
) -> Any:  # noqa: ANN401
    """A chart of Altair: a layer for each series."""
    try:
        import altair as alt
    except ImportError:
        help = 'pip install altair, or plot(kind="svg")'
        raise KneeError("Altair is not installed", help) from None
    names = [name for name, _, _ in series]
    layers: list[Any] = []
    for name, style, points in series:
        # Vega-Lite draws a gap where the value is null.
        rows = [{"x": at, "y": value, "series": name} for at, value in points]
        chart = cast(Any, alt.Chart(alt.Data(values=rows)))
        marked = (
            chart.mark_point()
            if style == "marks"
            else chart.mark_line(
                interpolate="step-after" if style == "steps" else "linear",
                strokeDash=_DASHES[style],
            )
        )
        colour = alt.Color("series:N", title=None, scale=alt.Scale(domain=names))
        layers.append(marked.encode(x=alt.X("x:Q", title=x), y=alt.Y("y:Q", title=y), color=colour))
    return cast(Any, alt.layer(*layers)).properties(title=title)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def wanted(
    scenario: Described,
    seed: int | None,
    repeat: int | None,
    changes: Mapping[str, Value] | Sequence[str] | None,
    host: str,
    noise: str | None = None,
) -> _knee.Wanted:
    """The request to the native part."""
    path, text, name = described(scenario)
    sets = arguments(changes)
    sets += arguments({"seed": seed} if seed is not None else None)
    sets += arguments({"repeat": repeat} if repeat is not None else None)
    sets += arguments({"path.noise": noise} if noise is not None else None)
    known = str(host).encode(errors="replace").decode()
    return {
        "path": path,
        "text": text,
        "name": name,
        "sets": sets,
        "classes": sorted(classes_in([scenario, changes])),
        "host": known,
    }


def run(
    scenario: Described,
    *,
    seed: int | None = None,
    repeat: int | None = None,
    set: Mapping[str, Value] | Sequence[str] | None = None,
    noise: str | None = None,
    host: str = "sim",
    kernel: str | None = None,
    jobs: int = 0,
) -> Results:
    """Runs a scenario: a path, TOML text, a dict, or a `Scenario`.

    Args:
        scenario: The scenario to run.
        seed: Seed of the first repetition (overrides the scenario).
        repeat: Number of repetitions (overrides the scenario).
        set: Values that override the scenario's: `{"path.rate": "5mbit", "flow.0.count": 3}`, or a
            list of texts in the form of `--set`.
        noise: Largest random delay of each packet on each access link, such as `100us`.
        host: `sim`, the simulator; `quic`; `linux`; `vm`; `kernel`, which needs root. The last
            three need the program `knee` that Cargo builds, on the PATH or named in
            `KNEE_PROGRAM`.
        kernel: Kernel of the host `linux` or `vm`, in the form of `--kernel`.
        jobs: Number of runs at once; 0: one per core.

    Raises:
        ScenarioError: The scenario is not valid; it has file, line, key and help.
        HostError: The host cannot run it, or an algorithm from a C file broke the contract.
    """
    return run_many(
        [scenario],
        seed=seed,
        repeat=repeat,
        set=set,
        noise=noise,
        host=host,
        kernel=kernel,
        jobs=jobs,
    )[0]


def run_many(
    scenarios: Iterable[Described],
    *,
    seed: int | None = None,
    repeat: int | None = None,
    set: Mapping[str, Value] | Sequence[str] | None = None,
    noise: str | None = None,
    host: str = "sim",
    kernel: str | None = None,
    jobs: int = 0,
) -> list[Results]:
    """Runs scenarios on all cores, without Python's lock; returns results in the same order.

    Parameters and errors are those of `run`. It checks all scenarios before the first run.
    """
    jobs = count("jobs", jobs, 0, 1024)
    single = isinstance(scenarios, str | Mapping)
    if single or not isinstance(scenarios, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise KneeError("scenarios is no list", "give several scenarios, or call knee.run")
    asked = [wanted(scenario, seed, repeat, set, host, noise) for scenario in scenarios]
    if kernel is not None and not needs_program(str(host)):
        help_text = 'add host="vm" or host="linux"'
        raise KneeError(f"kernel has no meaning on the host {host}", help_text)
    if needs_program(str(host)):
        answer = runs(_knee.runs_asked(asked), str(host), jobs, kernel)
        return [Results(native) for native in _knee.runs_made(asked, answer)]
    return [Results(native) for native in _knee.run_many(asked, jobs)]
