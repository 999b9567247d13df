"""The package against the command line: the same numbers, the same errors."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import knee

pa = pytest.importorskip("pyarrow")

TEXT = """\
title = "Two flows"
duration = "5s"
repeat = 3

[path]
rate = "10mbit"
rtt = "40ms"
queue = "84p"
loss_forward = 0.002

[record]
queue_log = true
trace = true

[[flow]]
cc = "chd"
params = { qth = "20ms" }

[[flow]]
cc = "newreno"
start = "1s"

[[flow]]
kind = "probe"
"""
MINE = Path(__file__).parents[2] / "cc/algorithms/newreno.c"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def results() -> knee.Results:
    return knee.run(TEXT)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "knee", *words], capture_output=True, text=True)


def test_numbers_are_those_of_the_command(file: Path) -> None:
    for words, keys in [
        ((), {}),
        (("--seed", "7", "--repeat", "2"), {"seed": 7, "repeat": 2}),
        (("--set", "path.rate=5mbit"), {"set": {"path.rate": "5mbit"}}),
        (("--set", "flow.0.params.qth=30ms"), {"set": ["flow.0.params.qth=30ms"]}),
        (("--noise", "100us"), {"noise": "100us"}),
        (("--host", "quic"), {"host": "quic"}),
    ]:
        printed = command("run", str(file), "--format", "json", *words)
        assert printed.returncode == 0, printed.stderr
        assert knee.run(file, **keys).summary == json.loads(printed.stdout), words
    # Whatever the number of threads.
    assert knee.run(file, jobs=1).summary == knee.run(file, jobs=2).summary


def test_metrics_are_those_of_the_summary(results: knee.Results) -> None:
    summary = results.summary
    assert len(results) == 3
    assert results.seeds == [run["seed"] for run in summary["runs"]]
    for repetition, run in enumerate(summary["runs"], start=1):
        assert results.jain(repetition=repetition) == run["jain"]
        assert results.utilisation(repetition=repetition) == run["queue"]["utilisation"]
    chd = [results.goodput("chd", repetition=r) for r in (1, 2, 3)]
    assert results.goodput("chd") == sorted(x for x in chd if x is not None)[1]
    spread = results.percentiles("goodput", "chd")
    assert spread is not None
    assert spread.p50 == results.goodput("chd")
    assert spread.p20 <= spread.p50 <= spread.p80
    both, first = results.goodput(from_s=2), results.goodput("chd-1", from_s=2)
    assert both is not None and first is not None
    assert results.share("chd", from_s=2, repetition=1) == pytest.approx(
        (results.goodput("chd", from_s=2, repetition=1) or 0)
        / (results.goodput(from_s=2, repetition=1) or 1)
    )
    assert results.queueing_delay(0.5) is not None
    assert results.convergence(threshold=1.0) is None
    loss = results.loss()
    assert loss is not None and 0 < loss < 0.1


def test_metrics_by_name_are_those_of_the_summary(results: knee.Results) -> None:
    over = results.summary["over_repetitions"]
    for metric in knee.metrics():
        flow = ["chd-1"] if metric.of == "flow" else []
        of = over["flows"][0] if flow else over
        if metric.name in of:
            median = of[metric.name] and of[metric.name]["p50"]
            assert results.metric(metric.name, *flow) == median, metric
            spread = results.percentiles(metric.name, *flow)
            assert (spread and spread.p50) == median, metric
    assert results.metric("goodput_bps", from_s=2) == results.goodput(from_s=2)
    assert results.metric("goodput_bps", "chd-1", from_s=2) == results.goodput("chd-1", from_s=2)


def test_tables_are_those_of_the_files(results: knee.Results, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    out = Path(results.save(tmp_path / "out"))
    for name in ("flows", "queue", "trace", "packets", "probes"):
        table = pa.table(getattr(results, name))
        written = pq.read_table(out / f"{name}.parquet")
        assert table.column_names == written.column_names, name
        assert table.num_rows == written.num_rows > 0, name
        for column in table.column_names:
            assert table[column].to_pylist() == written[column].to_pylist(), (name, column)
    assert (out / "report.html").read_text().startswith("<!")
    # Twice, and after the results are gone.
    flows = knee.run(TEXT, repeat=1).flows
    assert pa.table(flows).equals(pa.table(flows))
    assert len(flows) == pa.table(flows).num_rows
    assert [name for name, _ in flows.columns] == pa.table(flows).column_names


def test_every_way_to_say_a_scenario(file: Path) -> None:
    built = knee.Scenario(
        title="Two flows",
        duration="5s",
        repeat=3,
        path=knee.Path(rate="10mbit", rtt="40ms", queue="84p", loss_forward=0.002),
        record={"queue_log": True, "trace": True},
        flows=[
            knee.Flow("chd", qth="20ms"),
            knee.Flow("newreno", start="1s"),
            knee.Flow(kind="probe"),
        ],
    )
    runs = [knee.run(scenario) for scenario in (file, str(file), TEXT, built, built.table())]
    assert all(run.summary["runs"] == runs[0].summary["runs"] for run in runs)
    many = knee.run_many([file, built], repeat=1)
    assert [len(one) for one in many] == [1, 1]
    assert many[0].summary["runs"] == many[1].summary["runs"] == runs[0].summary["runs"][:1]


def test_shown_in_a_notebook(results: knee.Results) -> None:
    html = results._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert html.count("<svg") == len(results.charts()) > 0
    assert results.plot(kind="svg").svg.startswith("<svg")
    assert "chd-1" in str(results)
    assert results.report().startswith("<!")


def test_plots_of_altair_draw_the_same_as_the_svg(
    results: knee.Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("altair")
    for name, svg in results.charts().items():
        chart = results.plot(name).to_dict()
        assert chart["title"] in svg
        # Altair puts what is common to all layers, here those of a single one, into the chart.
        drawn = [{**chart, **layer}["data"]["values"] for layer in chart["layer"]]
        for rows in drawn:
            # Names may be shortened in a legend.
            assert rows and rows[0]["series"][:8] in svg
    goodput = results.plot("goodput").to_dict()["layer"][0]["data"]["values"]
    mean = sum(row["y"] for row in goodput) / len(goodput)
    assert mean == pytest.approx((results.goodput("chd", repetition=1) or 0) / 1e6, rel=0.02)
    monkeypatch.setattr("knee._runs.find_spec", lambda _: None)
    assert results.plot().svg == results.charts()["goodput"]


def test_errors_have_place_key_and_help(file: Path) -> None:
    with pytest.raises(knee.ScenarioError) as caught:
        knee.run(file, set={"path.rate": "5"})
    assert (caught.value.file, caught.value.line, caught.value.key) == ("--set", 1, "path.rate")
    assert caught.value.help and "mbit" in caught.value.help
    file.write_text(TEXT.replace("rtt =", "rt ="))
    with pytest.raises(knee.ScenarioError) as caught:
        knee.run(file)
    error = caught.value
    assert (error.file, error.line, error.key) == (str(file), 7, "path.rt")
    assert error.help and "rtt" in error.help
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line) == (str(error), 7)
    printed = command("run", str(file))
    assert printed.returncode == 2
    assert error.what in printed.stderr


@pytest.mark.parametrize(
    ("scenario", "keys", "said"),
    [
        ("nothing.toml", {}, "no such file"),
        ("duration = ", {}, "not valid TOML"),
        ({"duration": None}, {}, "None cannot stand in a scenario"),
        ({"duration": "5s"}, {}, "path"),
        (TEXT, {"seed": -1}, "seed"),
        (TEXT, {"repeat": 0}, "repeat"),
        (TEXT, {"host": "ns3"}, "ns3"),
        (TEXT, {"jobs": -1}, "jobs"),
        (TEXT, {"set": "path.rate=5mbit"}, "set is text"),
        (TEXT, {"set": ["path.rate"]}, "no `=`"),
        (TEXT, {"set": {"flow.9.cc": "chd"}}, "there is no flow.9"),
        (TEXT, {"set": {"flow.0.cc": "chdd"}}, "did you mean `chd`"),
        (TEXT, {"set": {"flow.1.cc": "kernel:cubic"}}, "the Linux kernel's own"),
        (5, {}, "int is no scenario"),
        ("\ud800", {}, "no name of a file"),
        (TEXT.replace("Two", "\ud800"), {}, "not valid Unicode"),
        (TEXT, {"host": None}, "None"),
        (TEXT, {"set": [1]}, "set: 1 is no text"),
        (TEXT, {"set": ["title=\ud800"]}, "set.0: .* is not valid Unicode"),
        (TEXT, {"jobs": 1.5}, "jobs = 1.5"),
    ],
)
def test_bad_input(scenario: object, keys: dict[str, object], said: str) -> None:
    with pytest.raises(knee.KneeError, match=said):
        knee.run(scenario, **keys)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("path.loss_forward", float("nan"), "path.loss_forward: nan is not allowed"),
        ("path.loss_forward", float("-inf"), "path.loss_forward: -inf is not allowed"),
        ("flow.0.count", 10**30, "flow.0.count: the integer is out of range"),
        ("seed", 2**64, "seed: the integer is out of range"),
        ("title", "\ud800", r"title: '\\ud800' is not valid Unicode"),
        ("title", {"\ud800": 1}, "title: .* is not valid Unicode"),
        ("path.aqm", {"kind": [1, None]}, "path.aqm.kind.1: None cannot stand in a scenario"),
    ],
)
def test_values_that_toml_has_not(key: str, value: object, said: str) -> None:
    changes = {key: value}
    with pytest.raises(knee.ScenarioError, match=said):
        knee.run(TEXT, set=changes)  # pyright: ignore[reportArgumentType]
    # In a scenario they have the same key.
    if key == "path.loss_forward":
        path = knee.Path(rate="10mbit", rtt="40ms", queue="84p", loss_forward=value)  # pyright: ignore
        with pytest.raises(knee.ScenarioError, match=said) as caught:
            knee.run(knee.Scenario(path=path, flows=[knee.Flow("chd")]))
        assert caught.value.key == key
    if key == "seed":
        with pytest.raises(knee.ScenarioError, match=said):
            knee.run(TEXT, seed=2**64)


def test_set_takes_the_values_of_a_scenario() -> None:
    base = {"repeat": 1, "duration": "2s"}
    burst = {"path.burst_loss_forward": {"loss": 0.002, "burst": 4}}
    lossless = TEXT.replace("loss_forward = 0.002\n", "")
    assert "burst = 4" in knee.run(lossless, set={**base, **burst}).scenario
    assert "codel" in knee.run(TEXT, set={**base, "path.aqm": {"kind": "codel"}}).scenario
    for title in ("\U0001f600", 'a "b"\\ \x7f\n\t', "'", "é"):
        text = knee.run(TEXT, set={**base, "title": title}).scenario
        assert tomllib.loads(text)["title"] == title
    params = {"flow.0.params": {"qth": "30ms"}}
    table, key = (
        knee.run(TEXT, set={**base, **s}) for s in (params, {"flow.0.params.qth": "30ms"})
    )
    assert table.summary["runs"] == key.summary["runs"]


def test_integers_of_numpy() -> None:
    np = pytest.importorskip("numpy")
    path = knee.Path(rate="10mbit", rtt="40ms", queue="84p")
    flows = [knee.Flow("chd", count=np.int64(2), start_jitter="10ms")]
    results = knee.run(
        knee.Scenario(path=path, flows=flows, duration="1s"), seed=np.uint32(3), repeat=np.int8(1)
    )
    assert len(results.flow_names()) == 2
    results = knee.run(TEXT, repeat=1, set={"flow.0.count": np.int64(2), "duration": "2s"})
    assert [flow.kind for flow in results.flow_names()].count("chd") == 2
    # A boolean stays one.
    assert knee.Path(x=True).table()["x"] is True


def test_flows_that_are_refused() -> None:
    with pytest.raises(knee.ScenarioError, match="params: 'x' is no dict"):
        knee.Flow("chd", params="x", qth="20ms")
    with pytest.raises(knee.AlgorithmError, match="class int is no algorithm"):
        knee.Flow(int)  # pyright: ignore[reportArgumentType]


def test_one_scenario_is_not_many(file: Path) -> None:
    for one in (str(file), file, {"path": {}}, knee.Scenario(path={}, flows=[]), 5):
        with pytest.raises(knee.KneeError, match="scenarios is no list"):
            knee.run_many(one)  # pyright: ignore[reportArgumentType]


def test_bad_questions(results: knee.Results) -> None:
    for ask, said in [
        (lambda: results.goodput("nobody"), "no flow `nobody`"),
        (lambda: results.goodput(9), "no flow `9`"),
        (lambda: results.goodput(repetition=4), "there are 3, counted from 1"),
        (lambda: results.goodput(repetition=0), "there are 3"),
        (lambda: results.queueing_delay(95), "no percentile"),
        (lambda: results.percentiles("speed"), "no metric"),
        (lambda: results.metric("speed"), "no metric `speed` of a run"),
        (lambda: results.metric("jain", "chd-1"), "no metric `jain` of a flow"),
        (lambda: results.metric("timeouts", 0, from_s=1), "covers the whole run"),
        (lambda: results.metric("rtt_mean_ms", "nobody"), "no flow `nobody`"),
        (lambda: results.convergence(width_s=-1), "width_s = -1"),
        (lambda: results.convergence(width_s=0), "width_s = 0"),
        (lambda: results.convergence(threshold=5), "threshold = 5"),
        (lambda: results.convergence(hold_s=float("nan")), "hold_s = nan"),
        (lambda: results.plot("nothing"), "no chart"),
        (lambda: results.plot(kind="png"), "no kind"),  # pyright: ignore[reportArgumentType]
    ]:
        with pytest.raises(knee.KneeError, match=said):
            ask()
    assert results.goodput(from_s=90, to_s=95) is None


def test_algorithms() -> None:
    listed = json.loads(command("list", "--format", "json").stdout)
    assert knee.algorithms() == listed["algorithms"]
    assert [a["name"] for a in knee.algorithms("chd", "hd")] == ["chd", "hd"]
    with pytest.raises(knee.AlgorithmError, match="no such algorithm"):
        knee.algorithms("chdd")


def test_one_of_ones_own() -> None:
    text = MINE.read_text().replace("newreno", "mine_py").replace("NEWRENO", "MINE_PY")
    assert knee.load_c(text, file="mine_py.c") == "mine_py"
    path = knee.Path(rate="10mbit", rtt="40ms", queue="84p")

    def goodput(cc: str) -> float | None:
        flows = [knee.Flow(cc), knee.Flow("chd")]
        return knee.run(knee.Scenario(path=path, flows=flows, duration="5s")).goodput(0)

    assert goodput("mine_py") == goodput("newreno")
    with pytest.raises(knee.AlgorithmError, match=r"mine_py\.c:\d+:\d+: error"):
        knee.load_c(text.replace("reno_grow(", "grow("), file="mine_py.c")
    grow = "reno_grow(conn, p->count, p->ss_limit_pkts, ack->acked_pkts);"
    for code, said in [
        ("(void)p; (void)ack; conn->cwnd_pkts = 0;", "left a window of 0 packets"),
        ("(void)p; (void)ack; for (volatile u32 on = 1; on;) conn->cwnd_cnt++;", "did not return"),
    ]:
        broken = text.replace(grow, code).replace("mine_py", "broken")
        assert knee.load_c(broken.replace("MINE_PY", "BROKEN"), file="broken.c") == "broken"
        with pytest.raises(knee.HostError, match=rf"algorithm `broken` \(broken.c\).*{said}"):
            goodput("broken")


def test_a_duel_is_the_commands() -> None:
    duel = knee.duel("chd", "newreno", path="10mbit,40ms,84p", duration="10s", repeat=2)
    assert duel["sentence"].startswith("On 10mbit,40ms,84p")
    with pytest.raises(knee.CommandError, match="did you mean `chd`"):
        knee.duel("chdd", "newreno")


def test_arguments_of_commands_are_no_options() -> None:
    for asked in (
        lambda: knee.duel("--help", "hd"),
        lambda: knee.duel("chd", "hd", path="--help"),
        lambda: knee.matrix(["--help", "hd"], out="nowhere"),
        lambda: knee.reproduce("--help", out="nowhere"),
        lambda: knee.compare("--help"),
    ):
        with pytest.raises(knee.CommandError, match="--help"):
            asked()
    for asked, name in (
        (lambda: knee.matrix("chd", out="nowhere"), "algorithms"),
        (lambda: knee.matrix(["chd", "hd"], out="nowhere", paths="10mbit,40ms,84p"), "paths"),
        (lambda: knee.compare("file.toml", hosts="sim"), "hosts"),
    ):
        with pytest.raises(knee.KneeError, match=f"{name} is text"):
            asked()


def ended_by_ctrl_c(work: str, after_s: float = 0) -> float:
    """Starts Python with this line of work, and ends it by Ctrl-C; seconds that this takes."""
    # Tests that run in the background inherit an ignored SIGINT.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heed}; import knee; print('ready', flush=True); {work}"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        time.sleep(after_s)
        sent = time.monotonic()
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
    assert run.returncode != 0
    assert "KeyboardInterrupt" in said
    return time.monotonic() - sent


LONG = {
    "duration": "10000s",
    "path.rate": "1gbit",
    "record.queue_log": False,
    "record.trace": False,
}
"""A run of many minutes."""


def test_ctrl_c_ends_the_runs() -> None:
    ended_by_ctrl_c(f"knee.run({TEXT!r}, repeat=10_000)")


@pytest.mark.parametrize("work", ["run({0!r}, **{1!r})", "run_many([{0!r}] * 3, **{1!r})"])
def test_ctrl_c_ends_a_run_under_way(work: str) -> None:
    keys = {"repeat": 1, "set": LONG}
    assert ended_by_ctrl_c("knee." + work.format(TEXT, keys), after_s=1) < 20
