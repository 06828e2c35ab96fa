"""What goes to the program behind a wall and what comes back: JSON and raw float64, and nothing that is unpickled.

To the program: the length and the text of the first head (modules and folders), then those of the job's head, the days
as int64, each field as float64 in rows. From the program: a word and its versions once it stands; then the head of the
answer with the two bytes of the native sandbox's status, and words, or exactly as many bytes as the panel has values.
All numbers are little-endian.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..backend import check_values
from ..errors import BadResult, Crashed, OutOfMemory, SandboxError
from ..job import Job, Outcome
from ..limits import Limits
from .sources import modules

__all__ = ["READY", "job_pieces", "pack_greeting", "read_answer", "read_versions"]

READY = b"alph"
_LENGTH_FORMAT, _ANSWER_FORMAT, _MAX_WORDS_BYTES = struct.Struct("<I"), struct.Struct("<4s2xHdd"), 2000
_GOOD = b"G."
_ERROR_KINDS: dict[bytes, tuple[type[SandboxError], str]] = {
    b"C.": (Crashed, "code"),
    b"M.": (OutOfMemory, "memory_mb"),
    b"W.": (BadResult, "factor"),
}
ReadBytes = Callable[[int], bytes]
"""Gives exactly so many bytes, or raises."""


def pack_greeting(paths: tuple[str, ...]) -> bytes:
    """Return what the program is told before anything else."""
    return _pack_json({"modules": modules(), "paths": list(paths)})


def read_versions(read: ReadBytes) -> dict[str, Any]:
    """Read what an interpreter that stands has installed."""
    word, (length,) = read(len(READY)), _LENGTH_FORMAT.unpack(read(_LENGTH_FORMAT.size))
    if word != READY or length > _MAX_WORDS_BYTES:
        raise ValueError("it does not speak as it should")
    told: dict[str, Any] = json.loads(read(length))
    return told


def job_pieces(job: Job, limits: Limits) -> Iterator[bytes | memoryview]:
    """Yield a job, piece by piece; days behind `job.rows` are never sent."""
    days, _ = job.shape
    frames = job.frames
    yield _pack_json({
        "code": job.code, "days": days, "symbols": list(frames.symbols), "fields": list(frames.names),
        "memory_mb": limits.memory_mb, "wall_s": limits.wall_s,
    })  # fmt: skip
    yield frames.dates[:days].astype("<i8").tobytes()
    for values in frames.fields.values():
        yield memoryview(np.ascontiguousarray(values[:days], dtype="<f8").tobytes())


def read_answer(read: ReadBytes, job: Job, limits: Limits, clean: Callable[[bytes], str]) -> Outcome:
    """Read an answer; what is not of its form, or not of the panel's shape, is an error of the factor."""
    head, length, cpu_ms, peak_mb = _ANSWER_FORMAT.unpack(read(_ANSWER_FORMAT.size))
    costs = 0.0, _finite_or_zero(cpu_ms), _finite_or_zero(peak_mb)
    status = head[2:]
    if head[:2] != READY[:2] or length > _MAX_WORDS_BYTES or (status != _GOOD and status not in _ERROR_KINDS):
        return Outcome(None, BadResult("the answer has no known form", field="factor"), *costs)
    words = clean(read(length))
    if status != _GOOD:
        return Outcome(None, _error(status, words, limits), *costs)
    days, names = job.shape
    values = np.frombuffer(read(8 * days * names), dtype="<f8").astype(np.float64).reshape(days, names)
    values[np.isnan(values)] = np.nan  # one bit pattern
    error = check_values(values, job.shape)
    return Outcome(None if error else values, error, *costs)


def _pack_json(content: dict[str, Any]) -> bytes:
    text = json.dumps(content).encode()
    return _LENGTH_FORMAT.pack(len(text)) + text


def _finite_or_zero(figure: float) -> float:
    """Return a figure that the process told of itself; it decides nothing, so it need only be a number."""
    return figure if math.isfinite(figure) and figure >= 0 else 0.0


def _error(status: bytes, words: str, limits: Limits) -> SandboxError:
    kind, field = _ERROR_KINDS[status]
    if kind is OutOfMemory:
        return OutOfMemory("the call used too much memory", field=field, allowed=f"{limits.memory_mb} MiB")
    return kind(words, field=field)
