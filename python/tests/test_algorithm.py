"""Algorithms in Python against those in C: the same windows, and clear ends of mistakes."""

from __future__ import annotations

import contextlib
import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import knee
from knee import contract

ROOT = Path(__file__).parents[2]
PATH = knee.Path(rate="10mbit", rtt="40ms", queue="84p", loss_forward=0.002)


def scenario(*flows: object, duration: str = "3s", **record: bool) -> knee.Scenario:
    table: Any = [flow if isinstance(flow, knee.Flow) else knee.Flow(flow) for flow in flows]  # pyright: ignore
    return knee.Scenario(path=PATH, flows=table, duration=duration, record=record)


def rows(results: knee.Results) -> list[list[Any]]:
    """The results of the flows, without the calls and states of algorithms."""
    names = ("time_s", "cwnd_pkts", "ssthresh_pkts", "goodput_bps", "sent_pkts", "lost_pkts")
    return [results.flows.column(name) for name in names]


class Reno(knee.Algorithm):
    """NewReno again, in Python."""

    observes = ("prior_pkts",)

    def __init__(self) -> None:
        self.prior_pkts = 0

    def init(self, conn: knee.Conn) -> None:
        self.prior_pkts = conn.cwnd_pkts

    def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
        if not conn.cwnd_limited:
            return
        left = ack.acked_pkts
        if conn.cwnd_pkts < conn.ssthresh_pkts:
            add = min(left, conn.ssthresh_pkts - conn.cwnd_pkts)
            conn.cwnd_pkts += add
            left -= add
        if left:
            steps, conn.cwnd_cnt = divmod(conn.cwnd_cnt + left, conn.cwnd_pkts)
            conn.cwnd_pkts += steps

    def ssthresh(self, conn: knee.Conn) -> int:
        self.prior_pkts = conn.cwnd_pkts
        return max(min(conn.cwnd_pkts, conn.outstanding_pkts) // 2, 2)

    def undo(self, conn: knee.Conn) -> int:
        return max(conn.cwnd_pkts, self.prior_pkts)


def test_a_class_behaves_as_the_same_in_c() -> None:
    python, c = (knee.run(scenario(cc, cc, trace=True), seed=3) for cc in (Reno, "newreno"))
    assert rows(python) == rows(c)
    calls = ("call", "cwnd_pkts_after", "ssthresh_pkts_after", "result")
    known = [name for name in calls if name in dict(c.trace.columns)]
    for name in known:
        assert python.trace.column(name) == c.trace.column(name), name
    assert max(python.flows.column("observe_0")) > 0
    assert python.flow_names()[0].kind == "reno"


def test_newreno_replaces_missing_methods() -> None:
    class Watches(knee.Algorithm):
        rtts: list[int]

        def __init__(self) -> None:
            self.rtts = []
            seen.append(self)

        def on_rtt(self, conn: knee.Conn, ack: knee.Ack) -> None:
            self.rtts.append(ack.rtt_us)

    seen: list[Watches] = []
    assert rows(knee.run(scenario(Watches))) == rows(knee.run(scenario("newreno")))
    assert len(seen) == 1 and len(seen[0].rtts) > 500 and max(seen[0].rtts) > 40_000


class Steady(knee.Algorithm):
    """Keeps as many packets as fit the path and a little more, once per round."""

    parameters = {  # noqa: RUF012
        "delay": knee.Parameter("time", "5ms", "1ms", "1s", help="queueing delay that it aims at"),
        "gain": knee.Parameter("number", 0.5),
        "way": knee.Parameter("choice", "up", choices=("up", "down")),
    }

    def __init__(self) -> None:
        self.base_us = 1 << 31
        assert (self.params.way, self.params.gain) == ("up", 0.5)

    def on_round(self, conn: knee.Conn, round: knee.Round) -> None:
        if round.rtt_mean_us is None or round.rtt_min_us is None:
            return
        self.base_us = min(self.base_us, round.rtt_min_us)
        target = conn.cwnd_pkts * (self.base_us + self.params.delay) / round.rtt_mean_us
        pkts = conn.cwnd_pkts + self.params.gain * (target - conn.cwnd_pkts)
        conn.cwnd_pkts = max(2, round_half(pkts))


def round_half(pkts: float) -> int:
    return int(pkts + 0.5)


def test_once_per_round_with_parameters() -> None:
    path = knee.Path(rate="10mbit", rtt="40ms", queue="84p")

    def delay_ms(**params: Any) -> float:
        flows = [knee.Flow(Steady, **params)]
        results = knee.run(knee.Scenario(path=path, flows=flows, duration="10s"))
        assert max(results.flows.column("observe_0")) < 10 / 0.04
        utilisation, delay = results.utilisation(from_s=5), results.queueing_delay(from_s=5)
        assert utilisation is not None and delay is not None and utilisation > 0.95
        return delay

    assert delay_ms() < 10 < delay_ms(delay="30ms") < 40
    with pytest.raises(knee.ScenarioError, match="out of range"):
        delay_ms(delay="2s")


class Raises(knee.Algorithm):
    def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
        if conn.now_us > 1_000_000:
            raise ZeroDivisionError("no window")


class Zero(knee.Algorithm):
    def on_round(self, conn: knee.Conn, round: knee.Round) -> None:
        conn.cwnd_pkts = 0


class Negative(knee.Algorithm):
    def on_rtt(self, conn: knee.Conn, ack: knee.Ack) -> None:
        conn.cwnd_pkts = -1


class Half(knee.Algorithm):
    def on_rtt(self, conn: knee.Conn, ack: knee.Ack) -> None:
        conn.cwnd_pkts = conn.cwnd_pkts / 2  # pyright: ignore[reportAttributeAccessIssue]


class Silent(knee.Algorithm):
    def on_rtt(self, conn: knee.Conn, ack: knee.Ack) -> None:
        pass

    def ssthresh(self, conn: knee.Conn) -> int:
        return None  # pyright: ignore[reportReturnType]


class Low(Silent):
    def ssthresh(self, conn: knee.Conn) -> int:
        return 1


class Loops(knee.Algorithm):
    limit_s = 0.2

    def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
        while True:
            with contextlib.suppress(Exception):
                conn.cwnd_cnt += 1


class Unborn(Silent):
    def __init__(self) -> None:
        raise RuntimeError("not today")


class Observed(Silent):
    observes = ("nothing",)


class Writes(knee.Algorithm):
    def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
        conn.now_us = 0  # pyright: ignore[reportAttributeAccessIssue]


class Paces(knee.Algorithm):
    def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
        conn.pacing_bytes_per_s = 1_000_000


class Fewer(Silent):
    def ssthresh(self, conn: knee.Conn) -> int:
        return -1


@pytest.mark.parametrize(
    ("cc", "said", "cause"),
    [
        (Raises, r"on_ack\(\) raised ZeroDivisionError: no window", ZeroDivisionError),
        (Zero, r"on_round\(\) left a window of 0 packets; it must be 1 to", type(None)),
        (Negative, r"on_rtt\(\) raised OverflowError", OverflowError),
        (Half, r"on_rtt\(\) raised TypeError", TypeError),
        (Silent, r"ssthresh\(\) raised TypeError: it returned None", TypeError),
        (Low, r"ssthresh\(\) returned 1 packets; it must be 2 or more", type(None)),
        (Loops, r"on_ack\(\) did not return within 0.2 s of processor time", BaseException),
        (Unborn, r"__init__\(\) raised RuntimeError: not today", RuntimeError),
        (Observed, r"observe\(\) raised AttributeError", AttributeError),
        (Writes, r"on_ack\(\) raised AttributeError", AttributeError),
        (Paces, r"on_ack\(\) wrote pacing_bytes_per_s, which only profile `rate`", type(None)),
        (Fewer, r"ssthresh\(\) raised OverflowError: it returned -1, not a", OverflowError),
    ],
)
def test_mistakes_end_the_run(cc: type[knee.Algorithm], said: str, cause: type) -> None:
    name = rf"algorithm `{cc.__name__.lower()}` \(class {cc.__name__}\): "
    with pytest.raises(knee.HostError, match=name + said) as caught:
        knee.run(scenario("newreno", cc))
    assert isinstance(caught.value.__cause__, cause)
    # The next run knows nothing of it.
    assert knee.run(scenario(Reno)).goodput()


@pytest.mark.parametrize(
    ("field", "given", "said"),
    [
        ("cwnd_pkts", -1, r"OverflowError: conn.cwnd_pkts = -1: .* an integer from 1 to \d+$"),
        ("cwnd_pkts", 2**32, r"OverflowError: conn.cwnd_pkts = 4294967296: .* from 1 to \d+$"),
        ("cwnd_pkts", 1.5, r"TypeError: conn.cwnd_pkts = 1.5: it must be an integer from 1 to"),
        ("ssthresh_pkts", 10**30, "ssthresh_pkts = 1000.*: .* from 2 to 4294967295"),
        ("cwnd_cnt", -1, "cwnd_cnt = -1: .* from 0 to 4294967295"),
        ("notes", "x", "TypeError: conn.notes = 'x': .* from 0 to 4294967295"),
        ("pacing_bytes_per_s", -1, "pacing_bytes_per_s = -1: .* from 0 to 18446744073709551615"),
    ],
)
def test_values_that_a_field_cannot_hold(field: str, given: object, said: str) -> None:
    class Puts(knee.Algorithm):
        profile = "rate"

        def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
            setattr(conn, field, given)

    with pytest.raises(knee.HostError) as caught:
        knee.run(scenario(Puts))
    assert re.search(said, caught.value.what)


def fixed(pkts: int) -> type[knee.Algorithm]:
    """A class of the same name each time."""

    class Same(knee.Algorithm):
        def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
            conn.cwnd_pkts = pkts

    return Same


def test_classes_of_one_name_run_their_own_code() -> None:
    path = knee.Path(rate="10mbit", rtt="40ms", queue="84p")

    def of(*flows: knee.Flow) -> knee.Scenario:
        return knee.Scenario(path=path, flows=flows, duration="10s")

    def mbit(results: knee.Results, *flows: Any) -> float:
        return round((results.goodput(*flows, from_s=2) or 0) / 1e6, 1)

    classes = [fixed(pkts) for pkts in (3, 6, 12)]
    # Windows of so many packets of 1448 bytes in 41.2 ms each.
    expected = [pytest.approx(pkts * 1448 * 8 / 41.2e3, rel=0.1) for pkts in (3, 6, 12)]
    flows = [knee.Flow(each) for each in classes]
    assert [mbit(results) for results in knee.run_many([of(flow) for flow in flows])] == expected
    assert [mbit(knee.run(of(flow))) for flow in flows] == expected
    together = knee.run(of(*flows))
    assert [mbit(together, each) for each in classes] == expected
    assert [flow.kind for flow in together.flow_names()] == ["same", "same_2", "same_3"]
    # The same class is the same algorithm.
    assert knee.Flow(classes[0]).table()["cc"] == flows[0].table()["cc"] == "same"


def test_a_class_whose_name_is_taken(library: Path, tmp_path: Path) -> None:
    class Taken(knee.Algorithm):
        def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
            calls.append(self)

    calls: list[Taken] = []
    flow = knee.Flow(Taken)
    knee.load_functions("taken", on_ack=ctypes.CDLL(str(library)).on_ack)
    assert knee.run(scenario("taken")).goodput() and not calls
    assert knee.run(scenario(flow)).flow_names()[0].kind == "taken_2" and calls
    # By a file that the same call loads.
    text = (ROOT / "cc/algorithms/newreno.c").read_text()
    file = tmp_path / "taken.c"
    file.write_text(text.replace("newreno", "taken_2").replace("NEWRENO", "TAKEN_2"))
    calls.clear()
    with pytest.raises(knee.AlgorithmError, match=r"a class and another .* called `taken_2`"):
        knee.run(scenario(str(file), flow))
    assert not calls
    both = knee.run(scenario(str(file), flow))
    assert [flow.kind for flow in both.flow_names()] == ["taken_2", "taken_3"] and calls


def test_other_exceptions_are_not_changed() -> None:
    class Quits(knee.Algorithm):
        def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        knee.run(scenario(Quits))


def test_a_method_may_run_a_scenario() -> None:
    class Plans(Reno):
        planned: float | None = None

        def on_ack(self, conn: knee.Conn, ack: knee.Ack) -> None:
            if self.planned is None:
                self.planned = knee.run(scenario(Reno, duration="1s")).goodput()
            super().on_ack(conn, ack)

    assert rows(knee.run(scenario(Plans, duration="1s"))) == rows(
        knee.run(scenario("newreno", duration="1s"))
    )


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "reacts to nothing"),
        ({"on_ack": lambda self, conn: None}, r"on_ack: .*too many positional"),  # pyright: ignore
        ({"on_rtt": Reno.on_ack, "profile": "rate"}, "has no on_ack"),
        ({"on_ack": Reno.on_ack, "profile": "fast"}, "no profile `fast`"),
        ({"on_ack": Reno.on_ack, "name": "cubic"}, "`cubic` is the name of a built-in"),
        ({"on_ack": Reno.on_ack, "name": "My Own"}, "its name is not of a-z"),
        ({"on_ack": Reno.on_ack, "limit_s": 0.0}, "limit_s"),
        ({"on_ack": Reno.on_ack, "observes": tuple("abcde")}, "it observes 5 values"),
        (
            {"on_ack": Reno.on_ack, "parameters": {"x": knee.Parameter("time", "5")}},
            "`x`: .*unit",
        ),
        (
            {"on_ack": Reno.on_ack, "parameters": {"x": knee.Parameter("hours", 9)}},  # pyright: ignore
            "class Wrong: `x`: no unit `hours`",
        ),
        (
            {"on_ack": Reno.on_ack, "parameters": {"x": knee.Parameter("count", 9, 1, 5)}},
            "`x`: its default 9 is not from 1 to 5",
        ),
    ],
)
def test_classes_that_are_refused(members: dict[str, Any], said: str) -> None:
    with pytest.raises(knee.AlgorithmError, match=said):
        knee.Flow(type("Wrong", (knee.Algorithm,), members))


def test_where_a_class_cannot_run() -> None:
    with pytest.raises(knee.HostError, match="class Reno keeps its own"):
        knee.run(scenario(Reno), host="quic")
    study = {"scenario": scenario(Reno), "repeat": 2, "axes": {"path.loss_forward": [0, 0.01]}}
    with pytest.raises(knee.StudyError, match="`reno` exists in this process only"):
        list(knee.sweep_rows(study, out="nowhere"))  # pyright: ignore
    assert not Path("nowhere").exists()


C = """
void on_ack(struct cc_conn *conn, void *state, const uint32_t *params, const struct cc_ack *ack)
{
    uint32_t left = ack->acked_pkts;
    if (!conn->cwnd_limited)
        return;
    if (conn->cwnd_pkts < conn->ssthresh_pkts) {
        uint32_t room = conn->ssthresh_pkts - conn->cwnd_pkts;
        uint32_t add = left < room ? left : room;
        conn->cwnd_pkts += add;
        left -= add;
    }
    if (left) {
        conn->cwnd_cnt += left;
        conn->cwnd_pkts += conn->cwnd_cnt / conn->cwnd_pkts;
        conn->cwnd_cnt %= conn->cwnd_pkts;
    }
}
void wrong(struct cc_conn *conn, void *state, const uint32_t *params, const struct cc_ack *ack)
{
    conn->cwnd_pkts = params[0] - 7;
}
void loops(struct cc_conn *conn, void *state, const uint32_t *params, const struct cc_ack *ack)
{
    for (;;)
        *(volatile uint32_t *)state += 1;
}
_Static_assert(sizeof(struct cc_conn) == 64 && sizeof(struct cc_ack) == 48, "layout");
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "f.c").write_text("#include <stdint.h>\n" + contract.cdef() + C)
    made = folder / "f.so"
    words = ["cc", "-std=c11", "-O2", "-shared", "-fPIC", "-o", str(made), str(folder / "f.c")]
    subprocess.run(words, check=True)
    return made


def test_compiled_functions(library: Path) -> None:
    loaded = ctypes.CDLL(str(library))
    assert knee.load_functions("compiled", on_ack=loaded.on_ack) == "compiled"
    # Its growth after a window of 1 differs from NewReno's by the order of two lines only.
    assert knee.run(scenario("compiled")).goodput()
    for host in ("sim", "quic"):
        assert knee.run(scenario("compiled"), host=host).goodput(), host
    parameters = {"least": knee.Parameter("packets", "7p")}
    knee.load_functions("wrong", on_ack=loaded.wrong, parameters=parameters)
    with pytest.raises(knee.HostError, match=r"\(functions of `wrong`\).*a window of 0 packets"):
        knee.run(scenario("wrong"))
    assert knee.run(scenario(knee.Flow("wrong", least="9p"))).goodput()
    knee.load_functions("loops", on_ack=loaded.loops)
    with pytest.raises(knee.HostError, match=r"on_ack\(\) did not return within a second"):
        knee.run(scenario("loops"))


def test_functions_of_cffi(library: Path) -> None:
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef(contract.cdef() + "cc_on_ack on_ack;")
    lib = ffi.dlopen(str(library))
    knee.load_functions("from_cffi", on_ack=ffi.addressof(lib, "on_ack"))
    loaded = ctypes.CDLL(str(library))
    knee.load_functions("from_ctypes", on_ack=loaded.on_ack)
    runs = [rows(knee.run(scenario(name))) for name in ("from_cffi", "from_ctypes")]
    assert runs[0] == runs[1]
    back = ffi.callback("cc_on_ack", lambda *_: None)
    with pytest.raises(knee.AlgorithmError, match="calls back into Python"):
        knee.load_functions("back", on_ack=back)


def test_functions_of_numba() -> None:
    numba = pytest.importorskip("numba")
    np = pytest.importorskip("numpy")
    state = np.dtype([("prior_pkts", "u4"), ("acks", "u4")])
    types = contract.numba(state)

    @numba.cfunc(types["on_ack"])
    def on_ack(conn_p: Any, state_p: Any, params: Any, ack_p: Any) -> None:
        conn, ack = numba.carray(conn_p, 1)[0], numba.carray(ack_p, 1)[0]
        numba.carray(state_p, 1)[0].acks += 1
        if not conn.cwnd_limited:
            return
        left = ack.acked_pkts
        if conn.cwnd_pkts < conn.ssthresh_pkts:
            add = min(left, conn.ssthresh_pkts - conn.cwnd_pkts)
            conn.cwnd_pkts += add
            left -= add
        if left > 0:
            count = conn.cwnd_cnt + left
            conn.cwnd_cnt = count % conn.cwnd_pkts
            conn.cwnd_pkts += count // conn.cwnd_pkts

    @numba.cfunc(types["observe"])
    def observe(state_p: Any, params: Any, out: Any) -> None:
        out[0] = numba.carray(state_p, 1)[0].acks

    knee.load_functions("with_numba", on_ack=on_ack, observe=observe, observes=["acks"])
    lossless = {"path.loss_forward": 0}
    mine, newreno = (knee.run(scenario(cc), set=lossless) for cc in ("with_numba", "newreno"))
    assert rows(mine) == rows(newreno)
    assert max(mine.flows.column("observe_0")) > 500


def test_values_that_are_no_function() -> None:
    callback = ctypes.CFUNCTYPE(None)(lambda: None)
    for given, said in [
        (len, "no compiled function"),
        (callback, "calls back into Python"),
        (0, "no address"),
    ]:
        with pytest.raises(knee.AlgorithmError, match=said):
            knee.load_functions("nothing", on_ack=given)


def test_layout_is_the_contracts() -> None:
    header = (ROOT / "cc/include/knee/contract.h").read_text()
    for struct, fields in (("cc_conn", contract.conn()), ("cc_ack", contract.ack())):
        start = header.index(f"struct {struct} {{")
        body = header[start : header.index("\n};", start)]
        at = [body.index(f" {name};") for name, _ in fields]
        assert at == sorted(at)
        assert sum(int(kind[1:]) for _, kind in fields) == {"cc_conn": 64, "cc_ack": 48}[struct]
