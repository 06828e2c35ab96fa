"""The clean fork server: an interpreter that was started with an empty environment and knows nothing.

It is started by exec, before anything else: no environment, no descriptor but one socket, numpy and pandas imported, one
thread. On request it forks a worker, which forks one process a call. It holds no key, no label and no panel: a worker
passes the descriptors of the job on and closes them, and never reads what is in them.
"""

from __future__ import annotations

import array
import gc
import os
import random
import signal
import socket
import sys

__all__ = ["main"]

_MODULES = (
    "abc bisect calendar cmath collections collections.abc contextlib copy dataclasses datetime decimal enum fractions "
    "functools heapq itertools json math numbers numpy numpy.fft numpy.lib.stride_tricks numpy.linalg numpy.random "
    "operator pandas random re statistics string textwrap typing warnings zoneinfo"
)


def main(control: int) -> None:
    """Import what factors need, then fork a worker for each socket that comes over `control`."""
    _prepare()
    from .worker import work

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=control)
    channel.sendall(b"R")
    gc.disable()
    gc.collect()
    gc.freeze()
    while (received := _receive(channel)) is not None:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            work(received)
            os._exit(0)
        os.close(received)


def _prepare() -> None:
    """Import all that code may want, so that it never needs a file, and forget how to import anything else."""
    os.environ.clear()
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # it starts a thread and opens files and sockets
    for name in _MODULES.split():
        __import__(name)
    import numpy as np

    random.seed(0)
    np.random.seed(0)


def _receive(channel: socket.socket) -> int | None:
    received = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4))
    if not data:
        return None
    for _level, _kind, content in ancillary:
        received.frombytes(content[:4])
    return received[0]
