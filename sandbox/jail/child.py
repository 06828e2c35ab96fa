"""The process that runs one call: build the frames, run the code, return bytes.

The checks of the answer here only make good error messages: the code owns this process and can forge any answer. The
parent reads a fixed number of bytes and checks them itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import types
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..native import shared_memory
from .channel import CRASHED, GOOD_RESULT, OUT_OF_MEMORY, WRONG_RESULT, align_to_page, place_fields
from .text import TEXT_BYTES

CODE_FILENAME = "<factor>"
"""The file name that the code's own lines carry in a traceback."""

_NO_FACTOR = "the code defines no function named factor; define: def factor(panel): ..."
_NUMERIC = "biuf"


class JailPanel(dict[str, pd.DataFrame]):
    """The fields by name; a missing field raises a KeyError that lists the fields."""

    def __missing__(self, name: object) -> pd.DataFrame:
        """Raise the error."""
        raise KeyError(f"the panel has no field {name!r}; it has: {', '.join(self)}")


def read_panel(descriptor: int, rows: int) -> JailPanel:
    """Build the frames of a panel's file, of the first `rows` days only.

    All days: the frames are views of the sealed file. Fewer: the days are copied and the file is unmapped, so that no
    later row is in memory. In both cases the arrays are read-only, and pandas copies before it writes.
    """
    size = os.fstat(descriptor).st_size
    address = shared_memory.map_file(descriptor, size, write=False)
    os.close(descriptor)
    days = int(_read_head(shared_memory.view(address, size))[0]["days"])
    if not 0 <= rows <= days:  # the next field follows the last day
        raise ValueError(f"the panel has {days} days, not {rows}")
    if rows < days:
        address, size = _copy_shortened(address, size, rows)
    return _build_frames(shared_memory.view(address, size))


def _copy_shortened(whole: int, size: int, rows: int) -> tuple[int, int]:
    """Copy the first `rows` days of a panel's file, unmap the file, and return address and size of the copy."""
    source = shared_memory.view(whole, size)
    head, start = _read_head(source)
    days, symbols, fields = int(head["days"]), len(head["symbols"]), len(head["fields"])
    new = json.dumps({**head, "days": rows}).encode()
    begin = align_to_page(8 + len(new))
    old_places, _ = place_fields(start, days, symbols, fields)
    new_places, length = place_fields(begin, rows, symbols, fields)
    part = shared_memory.map_anonymous(length)
    ctypes.memmove(part, struct.pack("=Q", len(new)) + new, 8 + len(new))
    for to, origin, width in [
        (begin, start, 8 * rows),
        *((to, origin, 8 * rows * symbols) for to, origin in zip(new_places, old_places, strict=True)),
    ]:
        ctypes.memmove(part + to, whole + origin, width)
    shared_memory.release(whole, size)
    shared_memory.make_read_only(part, length)
    return part, length


def _read_head(area: memoryview) -> tuple[dict[str, Any], int]:
    length = struct.unpack_from("=Q", area)[0]
    return json.loads(bytes(area[8 : 8 + length])), align_to_page(8 + length)


def _build_frames(area: memoryview) -> JailPanel:
    head, start = _read_head(area)
    shape = int(head["days"]), len(head["symbols"])
    days = np.frombuffer(area, np.int64, shape[0], start).astype("datetime64[D]").astype("datetime64[ns]")
    index, columns = pd.DatetimeIndex(days), pd.Index(head["symbols"], dtype=object)
    places, _ = place_fields(start, *shape, len(head["fields"]))
    panel = JailPanel()
    for name, place in zip(head["fields"], places, strict=True):
        values = np.frombuffer(area, np.float64, shape[0] * shape[1], place).reshape(shape)
        frame = pd.DataFrame(values, index=index, columns=columns, copy=False)
        _HELD_FRAMES.append(frame)
        panel[name] = frame.copy(deep=False)  # a second reference: pandas copies before the first write
    return panel


_HELD_FRAMES: list[pd.DataFrame] = []


def compute(code: bytes, panel: JailPanel) -> tuple[bytes, NDArray[np.float64] | str]:
    """Run the code on a panel and return a status with the values, or with the words of an error."""
    first = next(iter(panel.values()))
    index, columns = first.index, first.columns
    try:
        module = sys.modules["factor"] = types.ModuleType("factor")  # dataclasses look up their own module
        names: dict[str, Any] = module.__dict__
        names |= {"np": np, "pd": pd}
        text = code.decode()  # as text: a line `# coding:` would change the meaning of bytes
        exec(_compile_code(text), names)  # noqa: S102 - the walls are up
        if not callable(factor := names.get("factor")):
            return CRASHED, _NO_FACTOR
        return _check_result(factor(panel), index, columns)
    except MemoryError:
        return OUT_OF_MEMORY, ""
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are ways to crash, too
        return CRASHED, _describe_error(error)


def _compile_code(text: str) -> types.CodeType:
    try:
        return compile(text, CODE_FILENAME, "exec", dont_inherit=True)
    except MemoryError:  # of the parser's own stack, which is small
        raise SyntaxError("the code is nested too deeply, or too large, to be compiled") from None


def _check_result(result: object, index: pd.Index, columns: pd.Index) -> tuple[bytes, NDArray[np.float64] | str]:
    if type(result) is not pd.DataFrame:
        return WRONG_RESULT, f"factor returned {type(result).__name__}; allowed: one pandas DataFrame"
    if result.shape != (len(index), len(columns)):
        return (
            WRONG_RESULT,
            f"the answer is {result.shape}; allowed: {(len(index), len(columns))}, like the panel's fields",
        )
    if not result.index.equals(index) or not result.columns.equals(columns):
        return WRONG_RESULT, "the answer has other dates or symbols than the panel, or another order"
    for name, kind in zip(columns, result.dtypes, strict=True):
        if not isinstance(kind, np.dtype) or kind.kind not in _NUMERIC:
            return WRONG_RESULT, f"column {name} holds {kind}; allowed: numbers, so .astype(float)"
    return GOOD_RESULT, pd.DataFrame.to_numpy(result, dtype=np.float64)


def _describe_error(error: BaseException) -> str:
    """Return the error's type, its words and its line in the code."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == CODE_FILENAME:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    line = lines[-1] if lines else None
    if line is None and isinstance(error, SyntaxError) and type(error.lineno) is int:
        line = error.lineno
    words = _format_error(error)[:TEXT_BYTES]
    return f"line {line}: {words}" if line else words


def _format_error(error: BaseException) -> str:
    """Return the error's type and words; the words of a type made by the code may raise."""
    if isinstance(error, OSError) and error.filename == "/dev/urandom":
        return f"{type(error).__name__}: there is no randomness without a seed; give one: np.random.default_rng(0)"
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - its __str__ is the code's
        return f"{type(error).__name__}, whose own words could not be read"


def write_answer(address: int, room: int, status: bytes, content: NDArray[np.float64] | str) -> None:
    """Write values to the start of a mapping, or words to the area after the values."""
    if isinstance(content, str):
        text = content.encode("utf-8", "replace")[: TEXT_BYTES - 1] + b"\0"
        ctypes.memmove(address + room, text, len(text))
    elif status == GOOD_RESULT:
        values = np.ascontiguousarray(content)
        ctypes.memmove(address, values.ctypes.data, min(values.nbytes, room))
