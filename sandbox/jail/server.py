"""The clean fork server: an interpreter that was started without any data of the parent process.

It is started by exec: an environment of fixed variables, no descriptor but one socket, numpy and pandas imported, one
thread. On request it forks a worker, which forks one process a call. It holds no key, no label and no panel: a worker
passes the descriptors of the job on and closes them, and never reads their content.
"""

from __future__ import annotations

import array
import ctypes
import gc
import os
import random
import signal
import socket
import sys
from typing import Any

from ..native.libc import prctl

_SUBREAPER, _AT_RANDOM = 36, 25
_STANDARD_MODULES = (
    "abc bisect calendar cmath collections collections.abc contextlib copy dataclasses datetime decimal enum fractions "
    "functools heapq itertools json math numbers operator random re statistics string textwrap typing warnings"
)
"""Modules that a factor may import besides numpy and pandas."""

_INNER_MODULES = (
    "_strptime encodings.ascii encodings.latin_1 numpy.fft numpy.lib.recfunctions numpy.lib.stride_tricks numpy.linalg "
    "numpy.ma numpy.polynomial numpy.random numpy.strings pandas.api.indexers pandas.api.types "
    "pandas.core.computation.eval pandas.core.methods.select pandas.core.methods.to_dict pandas.core.reshape.reshape "
    "pandas.io.formats.format pandas.io.formats.string pandas.tseries.frequencies pandas.tseries.holiday "
    "pandas.tseries.offsets traceback zoneinfo"
)
"""Modules that the libraries import on first use, which would be after imports are closed."""


def main(control: int, omitted: frozenset[str]) -> None:
    """Import what factors need, then fork a worker for each socket that comes over `control`."""
    channel = socket.socket(fileno=control)
    try:
        _prepare()
        from .entry import Inside
        from .worker import serve_jobs
    except ImportError as error:
        channel.sendall(f"Xlibraries: {error}".encode()[:200])
        return
    _close_imports()

    _adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if len(os.listdir("/proc/self/task")) > 1:
        channel.sendall(b"Xsystem: a library has started a thread, so that nothing can be forked safely")
        return
    channel.sendall(b"R")
    gc.disable()
    gc.collect()
    gc.freeze()
    while (received := _receive(channel)) is not None:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            try:
                serve_jobs(received, omitted)
                os._exit(0)
            except Inside as inside:
                call = inside.call
                inside.__traceback__ = None  # drops the frames of the watch
            call.run()
        os.close(received)


def _adopt_orphans() -> None:
    """Become the parent of workers whose first parent has ended, and let the kernel reap them."""
    prctl(_SUBREAPER, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _prepare() -> None:
    """Import all that code may use, so that it never needs a file, and remove the sources of randomness."""
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # it starts a thread and opens files and sockets
    for name in ("numpy", "pandas", *_STANDARD_MODULES.split(), *_INNER_MODULES.split()):
        __import__(name)
    import numpy as np

    _overwrite_random_bytes()
    os.environ.clear()  # after the imports: it held the number of threads that OpenBLAS may start
    random.seed(0)
    np.random.seed(0)
    _spare_entropy(np.random)


def _overwrite_random_bytes() -> None:
    """Overwrite the random bytes that the kernel gives every program; its libraries have used them by now."""
    try:
        find = ctypes.CDLL(None).getauxval
    except (AttributeError, TypeError):  # not Linux
        return
    find.restype, find.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    if place := find(_AT_RANDOM):
        ctypes.memset(place, 0x41, 16)


def _spare_entropy(numbers: Any) -> None:
    """Let `RandomState(7)` work without entropy, which it requests before it takes the seed."""
    made = numbers.MT19937

    class Maker:
        """A stand-in for the class: makes instances with a seed and answers `isinstance`."""

        def __call__(self, *seed: Any) -> Any:
            return made(*(seed or (0,)))

        def __instancecheck__(self, instance: object) -> bool:
            return isinstance(instance, made)

    numbers.mtrand._MT19937 = Maker()


class _Closed:
    """Refuse every import of a module that is not loaded yet."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Raise an error that lists the modules that may be imported."""
        offered = ", ".join(one for one in _STANDARD_MODULES.split() if "." not in one)
        raise ModuleNotFoundError(f"{name} is not in the sandbox; there are np, pd and {offered}", name=name)


def _close_imports() -> None:
    sys.meta_path[:] = [_Closed]
    sys.path_hooks.clear()
    sys.path.clear()
    sys.path_importer_cache.clear()


def _receive(channel: socket.socket) -> int | None:
    received = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4))
    if not data:
        return None
    for _level, _kind, content in ancillary:
        received.frombytes(content[:4])
    return received[0]
