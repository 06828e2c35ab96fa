"""The program of the interpreter behind another wall: one job on standard input, its answer on standard output.

Nothing imports this file. Its text is passed to a fresh Python (`python -P -c`) that has numpy and pandas and need not
have Alphaloom: the modules with which the native sandbox runs a call are sent first as text, so that a call means the
same everywhere. The boundary is the wall around this process. `guest.py` defines the order of the bytes.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import json
import mmap
import os
import resource
import struct
import sys
import time
from typing import Any

LENGTH_FORMAT, ANSWER_FORMAT, READY = struct.Struct("<I"), struct.Struct("<4s2xHdd"), b"alph"


def main() -> None:
    """Report that the interpreter is ready, take one job, answer it, and end."""
    channel = os.dup(1)
    first = json.loads(read_exactly(*LENGTH_FORMAT.unpack(read_exactly(LENGTH_FORMAT.size))))
    sys.path.extend(first["paths"])
    sys.meta_path.insert(0, SentModules(first["modules"]))
    import numpy  # noqa: F401 - it reads the environment, which is emptied next

    from alphaloom.sandbox.jail import server

    server._prepare()
    from alphaloom.sandbox.jail import child

    report_ready(channel)
    job = json.loads(read_exactly(*LENGTH_FORMAT.unpack(read_exactly(LENGTH_FORMAT.size))))
    panel = child.read_panel(write_panel_file(job), job["days"])
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    sys.stdin = sys.stdout = sys.stderr = Silence()
    server._close_imports()
    confine(job["memory_mb"], job["wall_s"])
    started = time.process_time()
    status, content = child.compute(job["code"].encode(), panel)
    send_answer(channel, status, content, time.process_time() - started)
    os._exit(0)


class Silence:
    """A stream that drops the code's own output."""

    def write(self, text: str) -> int:
        """Drop a text."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


class SentModules(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Import modules whose text was sent."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Find a module that was sent; a name that is the prefix of another is a package."""
        if name not in self.sources:
            return None
        package = any(other.startswith(name + ".") for other in self.sources)
        return importlib.machinery.ModuleSpec(name, self, is_package=package)

    def get_source(self, name: str) -> str:
        """Return a module's text."""
        return self.sources[name]

    def is_package(self, name: str) -> bool:
        """Return whether the module contains others."""
        return any(other.startswith(name + ".") for other in self.sources)


def report_ready(channel: int) -> None:
    """Send the ready mark and the versions of numpy and pandas."""
    import numpy
    import pandas

    told = json.dumps({"numpy": numpy.__version__, "pandas": pandas.__version__}).encode()
    send(channel, READY + LENGTH_FORMAT.pack(len(told)) + told)


def write_panel_file(job: dict[str, Any]) -> int:
    """Read the days and the fields, and return them as a panel's file, as in the native sandbox."""
    import numpy

    from alphaloom.sandbox.jail.channel import PanelFile
    from alphaloom.sandbox.jail.frames import Frames

    shape = job["days"], len(job["symbols"])
    dates = numpy.frombuffer(read_exactly(8 * shape[0]), dtype="<i8").astype("datetime64[D]")
    fields = {
        name: numpy.frombuffer(read_exactly(8 * shape[0] * shape[1]), dtype="<f8").reshape(shape)
        for name in job["fields"]
    }
    return PanelFile.of(Frames(fields, dates, tuple(job["symbols"]))).descriptor


def confine(memory_mb: int, wall_s: float) -> None:
    """Give up files, processes and cores, and bound memory and time; a limit that the system lacks is left out."""
    nothing = ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE", "RLIMIT_NPROC")
    limits = dict.fromkeys(nothing, 0) | {"RLIMIT_CPU": int(time.process_time() + wall_s) + 2, "RLIMIT_NOFILE": 16}
    limits["RLIMIT_AS"] = measure_address_space() + memory_mb * 2**20
    for name, value in limits.items():
        with contextlib.suppress(AttributeError, OSError, ValueError):
            which = getattr(resource, name)
            _soft, hard = resource.getrlimit(which)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


def measure_address_space() -> int:
    """Return the bytes of address space in use, by bisection of the limit, since there may be no /proc."""
    low, high = 0, 2**48
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    while high - low > 2**16:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_AS, (middle, hard))
        try:
            mmap.mmap(-1, mmap.PAGESIZE).close()
            high = middle
        except (OSError, MemoryError):
            low = middle
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    return high


def send_answer(channel: int, status: bytes, content: Any, cpu_s: float) -> None:
    """Send the status with the words, or with the values row by row."""
    import numpy

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    words = content.encode("utf-8", "replace")[:2000] if isinstance(content, str) else b""
    send(channel, ANSWER_FORMAT.pack(READY[:2] + status, len(words), 1000 * cpu_s, peak) + words)
    if not isinstance(content, str):
        send(channel, numpy.ascontiguousarray(content, dtype="<f8").tobytes())


def read_exactly(count: int) -> bytes:
    """Read exactly `count` bytes from standard input; end the process where they do not come."""
    held = bytearray()
    while len(held) < count:
        got = os.read(0, min(count - len(held), 2**20))
        if not got:
            os._exit(3)
        held += got
    return bytes(held)


def send(channel: int, raw: Any) -> None:
    """Write all bytes of a buffer."""
    view = memoryview(raw)
    while view:
        view = view[os.write(channel, view) :]


if __name__ == "__main__":
    main()
