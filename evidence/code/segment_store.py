"""Keep what was computed day by day on the disk: minutes of work, the same for the same code and the same days."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ledger.files import make_folder

__all__ = ["DailySegment", "Segments", "versions"]


SEGMENT_FORMAT = "single precision of the day's scale, columns of members, with the days of the start-up"


@dataclass(frozen=True, eq=False)
class DailySegment:
    """Rows of a factor `[D, N]` that were computed day by day, and what went wrong in them, if anything did.

    `start_up` is how many of them, at the panel's start, have no values since the code raises an error there. `lasting` is False where another try may go otherwise: what took too long on a busy machine is not kept.
    """

    values: NDArray[np.float32]
    fault: dict[str, Any] | None
    lasting: bool = True
    start_up: int = 0


@dataclass(frozen=True)
class Segments:
    """Segments in a folder, each a file that is sealed with the digest of its contents; None keeps nothing."""

    folder: Path | None

    def read(self, key: str, shape: tuple[int, int]) -> DailySegment | None:
        """Return what is kept under a key; None where there is nothing, or it is damaged."""
        try:
            seal, _, body = self._path(key).read_bytes().partition(b"\n") if self.folder else (b"", b"", b"")
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != seal:
            return None
        head, _, rows = body.partition(b"\n")
        told = json.loads(head)
        values = np.frombuffer(rows, dtype="<f4").reshape(shape)
        return DailySegment(values, told["fault"], start_up=told["start_up"])

    def write(self, key: str, segment: DailySegment) -> None:
        """Keep a segment; it is there whole or not at all."""
        if self.folder is None:
            return
        head = json.dumps({"fault": segment.fault, "start_up": segment.start_up}).encode()
        body = head + b"\n" + segment.values.astype("<f4").tobytes()
        path = self._path(key)
        make_folder(path.parent)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        new.replace(path)

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key[:32]}.rows"


@functools.cache
def versions() -> list[str]:
    """Return what else decides the values: Python, numpy, pandas, and the form in which they are kept."""
    from importlib.metadata import version

    return [sys.version.split()[0], version("numpy"), version("pandas"), SEGMENT_FORMAT]
