"""The types of the contract's functions, for compilers that are called from Python.

`cc/include/knee/contract.h` says for each function when it is called and which fields it may write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from knee import _knee
from knee._errors import AlgorithmError

Fields = list[tuple[str, str]]

STATE_BYTES = 88
"""Bytes of a connection's state; all 0 before `init`."""


def _fields(rows: Sequence[tuple[str, int, int, bool]]) -> Fields:
    return [(name, f"{'i' if signed else 'u'}{size}") for name, _, size, signed in rows]


def conn() -> Fields:
    """`struct cc_conn` for `numpy.dtype(...)`: names and types; there is no padding."""
    return _fields(_knee.layout()[0])


def ack() -> Fields:
    """`struct cc_ack` for `numpy.dtype(...)`: names and types; there is no padding."""
    return _fields(_knee.layout()[1])


def _struct(name: str, fields: Fields) -> str:
    kinds = {"i": "int", "u": "uint"}
    rows = (f"\t{kinds[kind[0]]}{8 * int(kind[1:])}_t {of};\n" for of, kind in fields)
    return f"struct {name} {{\n{''.join(rows)}}};\n"


def cdef() -> str:
    """The structures and the functions' types in C, for `cffi.FFI().cdef(...)`."""
    view = "struct cc_conn *conn, void *state, const uint32_t *params"
    return (
        _struct("cc_conn", conn())
        + _struct("cc_ack", ack())
        + f"typedef void cc_init({view});\n"
        + f"typedef void cc_on_ack({view}, const struct cc_ack *ack);\n"
        + f"typedef void cc_on_event({view}, uint32_t event);\n"
        + f"typedef uint32_t cc_window({view});\n"
        + "typedef void cc_observe(const void *state, const uint32_t *params, uint32_t *out);\n"
    )


def numba(state: Any = None) -> dict[str, Any]:
    """Signatures for `numba.cfunc`, by the functions' names.

    Pointers lead to records: `numba.carray(pointer, 1)[0]` is one. The state's is of `state`, a
    `numpy.dtype` of at most 88 bytes, or untyped. Parameters are an array of `uint32`.
    """
    import numba as nb  # pyright: ignore[reportMissingTypeStubs]
    import numpy as np

    types = cast(Any, nb).types

    def pointer(fields: Any) -> Any:
        return types.CPointer(cast(Any, nb).from_dtype(np.dtype(fields)))

    if state is not None and np.dtype(state).itemsize > STATE_BYTES:
        what = f"a state of {np.dtype(state).itemsize} bytes"
        raise AlgorithmError(what, f"{STATE_BYTES} bytes fit")
    own = types.voidptr if state is None else pointer(state)
    words = types.CPointer(types.uint32)
    view = (pointer(conn()), own, words)
    on_ack, window = types.void(*view, pointer(ack())), types.uint32(*view)
    return {
        "init": types.void(*view),
        "on_rtt": on_ack,
        "on_ack": on_ack,
        "ssthresh": window,
        "on_event": types.void(*view, types.uint32),
        "undo": window,
        "observe": types.void(own, words, words),
    }
