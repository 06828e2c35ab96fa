"""Five escapes, tried in a real jail before it is used: a wall that is present but does not work must be noticed.

Each snippet answers with ones where it got out and with zeros where it did not; a jail may also end it. Each has a
target: a file, a listening port, the calling process.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from ..backend import Worker
from ..errors import Crashed, Refused, SandboxUnavailable
from ..jail.frames import Frames
from ..job import Job, Limits, Outcome

_OUT = "it got out"
_FACTOR_TEMPLATE = """
def attempt():
{body}

def factor(panel):
    try:
        out = attempt()
    except OSError:
        out = False
    return panel["close"] * 0 + float(bool(out))
"""
ESCAPES = {
    "read a file": "    return open({file!r}).read() == 'canary'",
    "connect to a port": (
        "    import _socket\n    s = _socket.socket()\n    s.connect(('127.0.0.1', {port}))\n    return True"
    ),
    "start a process": "    import os\n    return os.fork() >= 0",
    "signal a process": "    import os\n    os.kill({pid}, 0)\n    return True",
    "make memory executable": (
        "    import ctypes\n    libc = ctypes.CDLL(None)\n    libc.mmap.restype = ctypes.c_void_p\n"
        "    return libc.mmap(None, 4096, 7, 0x22, -1, 0) not in (None, 2**64 - 1)"
    ),
}
"""The code of each escape by its name. `_socket` may be missing in the jail, which counts as contained."""


@dataclass(frozen=True, slots=True)
class Escape:
    """One escape that was tried: whether it was contained, and the evidence."""

    name: str
    contained: bool
    found: str

    @property
    def open(self) -> bool:
        """Return whether the code got out; an escape that is neither open nor contained could not be tried."""
        return self.found == _OUT

    @property
    def words(self) -> str:
        """Return the problem as a part of a sentence."""
        return f"code could {self.name}" if self.open else f"whether code could {self.name} is {self.found}"


def try_escapes(worker: Worker) -> Iterator[Escape]:
    """Try each escape behind a worker's wall."""
    frames = Frames({"close": np.ones((2, 2))}, np.array(["2000-01-03", "2000-01-04"], "datetime64[D]"), ("A", "B"))
    with _offer_baits() as baits:
        for name, body in ESCAPES.items():
            code = _FACTOR_TEMPLATE.format(body=body.format(**baits))
            yield _judge_escape(name, worker.call(Job(code, frames), Limits(wall_s=10, memory_mb=256)))


def require_contained(worker: Worker) -> None:
    """Raise SandboxUnavailable unless every escape from a worker's wall is contained."""
    for escape in try_escapes(worker):
        if not escape.contained:
            worker.close()
            raise SandboxUnavailable(
                f"the jail {'does not hold' if escape.open else 'could not be tested'}: {escape.words}",
                field=escape.name,
                hint="Ask: alphaloom sandbox status; use another backend until it is mended.",
            )


def _judge_escape(name: str, outcome: Outcome) -> Escape:
    if outcome.values is not None:
        out = bool(outcome.values.any())
        return Escape(name, not out, _OUT if out else f"denied: {', '.join(outcome.tried) or 'by an error'}")
    if isinstance(outcome.error, Refused):
        return Escape(name, True, f"ended at {outcome.error.got}")
    known = isinstance(outcome.error, Crashed) and "ModuleNotFoundError" in str(outcome.error)
    return Escape(name, known, "nothing there to try it with" if known else f"unclear: {outcome.error}")


@contextmanager
def _offer_baits() -> Iterator[dict[str, object]]:
    """Yield the targets: a world-readable file, a listening port, and this process."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="alphaloom-"))
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "canary")
        with open(path, "w", encoding="utf-8") as file:
            file.write("canary")
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        yield {"file": path, "port": listening.getsockname()[1], "pid": os.getpid()}
