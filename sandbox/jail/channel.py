"""The data that crosses the boundary, as bytes of a fixed place and length: nothing is unpickled.

In: a sealed file in memory with days, symbols and fields, made once a panel and shared by all its calls.
Back: float64 of the requested shape, in a file in memory made for one call, whose size cannot be changed.
A text area follows the values: it brings the code in and an error's words out. The text is cut and cleaned here,
because the process in the jail can write anything there.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import threading
import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..native import shared_memory
from .frames import Frames
from .text import TEXT_BYTES, clean

REPLY_WORDS_BYTES = 200
GOOD_RESULT, CRASHED, OUT_OF_MEMORY, WRONG_RESULT = b"G.", b"C.", b"M.", b"W."
"""The two bytes of the status pipe: values follow; the code raised; memory ran out; the answer has a wrong form."""

REQUEST = struct.Struct("=qqqd")
"""To the server: rows, bytes of code, bytes of memory that the call may add, seconds.

The rows are always sent, so that a call on all days looks like any other.
"""

REPLY = struct.Struct("=2sBBiddd16i200s")
"""From the server: status, how it ended, attempts listed, signal, CPU ms, peak MiB, wall ms, attempted calls, words."""

CALL_ENDED, CALL_OVERTIME, CALL_STOPPED, CALL_GONE = range(4)
"""How a call ended: by itself; by the wall clock; by a system call that no factor makes; a wall could not be built."""

_ALIGN = 4096


@dataclass(frozen=True, slots=True)
class PanelFile:
    """A panel as one sealed file in memory.

    Layout: the length of the head (8 bytes), the head (JSON: days, symbols, fields), then from the next multiple of
    4096 the days (int64) and, from multiples of 64, the fields in their order, row by row (float64).
    """

    descriptor: int

    @classmethod
    def of(cls, frames: Frames) -> PanelFile:
        """Write a panel to a new file in memory."""
        days, _ = frames.shape
        head = json.dumps({"days": days, "symbols": frames.symbols, "fields": frames.names}).encode()
        start = align_to_page(8 + len(head))
        places, size = place_fields(start, *frames.shape, len(frames.names))
        descriptor = shared_memory.create_file("panel", size)
        with mmap.mmap(descriptor, size) as area:
            area[: 8 + len(head)] = struct.pack("=Q", len(head)) + head
            area[start : start + 8 * days] = frames.dates.astype(np.int64).tobytes()
            for place, values in zip(places, frames.fields.values(), strict=True):
                np.frombuffer(area, np.float64, values.size, place)[:] = values.ravel()
        shared_memory.seal_whole(descriptor)
        return cls(descriptor)


def align_to_page(size: int) -> int:
    """Return the smallest multiple of 4096 that is at least `size`."""
    return -(-size // _ALIGN) * _ALIGN


def place_fields(start: int, days: int, names: int, fields: int) -> tuple[list[int], int]:
    """Return where each field begins, and the size of the file."""
    first, width = start + -(-8 * days // 64) * 64, -(-8 * days * names // 64) * 64
    return [first + i * width for i in range(fields)], first + max(fields * width, 64)


_PANEL_FILES: weakref.WeakKeyDictionary[Frames, PanelFile] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def share_panel(frames: Frames) -> PanelFile:
    """Return a panel's file, written once and closed when the panel is garbage-collected."""
    with _LOCK:
        if frames not in _PANEL_FILES:
            _PANEL_FILES[frames] = made = PanelFile.of(frames)
            weakref.finalize(frames, os.close, made.descriptor)
        return _PANEL_FILES[frames]


class CallFile:
    """The file in memory that brings one call's code in and its values or error out."""

    def __init__(self, shape: tuple[int, int], code: bytes) -> None:
        self.shape = shape
        self.values_bytes = 8 * shape[0] * shape[1]
        size = self.values_bytes + max(len(code), TEXT_BYTES)
        self.descriptor = shared_memory.create_file("answer", size)
        shared_memory.seal_size(self.descriptor)
        os.pwrite(self.descriptor, code, self.values_bytes)

    def values(self) -> NDArray[np.float64]:
        """Return a copy of the values, `[rows, N]`; the process that could change them has ended by then.

        Every NaN gets the same bits: code could hide data in other bit patterns, which no comparison of values shows.
        """
        values = np.empty(self.shape)
        got = os.preadv(self.descriptor, [values.data.cast("B")], 0) if values.size else 0
        if got != self.values_bytes:
            raise OSError("the answer could not be read in full")
        values[np.isnan(values)] = np.nan
        return values

    def text(self) -> str:
        """Return the error's words, cut and cleaned."""
        return clean(os.pread(self.descriptor, TEXT_BYTES, self.values_bytes))

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.descriptor)
