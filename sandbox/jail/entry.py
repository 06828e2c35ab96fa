"""The entry into the jail: the steps of a fresh process between the fork and the first line of the code.

Order matters. Descriptors are sorted and the panel is mapped while that is still possible; then come capabilities,
limits, Landlock and seccomp, each of which removes the means to undo the one before. An error on the way ends the
process: the code runs behind all walls or not at all.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import gc
import os
import random
import socket
from dataclasses import dataclass

from ..native import landlock, privileges, seccomp, shared_memory
from ..native.libc import PrimitiveMissing, name_primitive, syscall
from . import child

_PANEL_FD, _ANSWER_FD, _FIRST_FREE_FD = 5, 6, 64
_MAX_DESCRIPTORS, _MARGIN_BYTES = 8, 1 << 20


@dataclass(frozen=True, slots=True)
class JailLock:
    """The parts of the walls of every call, prepared once, before the first fork."""

    filter_program: bytes
    landlock_abi: int
    omitted: frozenset[str]


@dataclass(frozen=True, slots=True)
class JailTask:
    """One call, as the fresh process receives it: rows, bytes of code, bytes of memory besides the panel, seconds."""

    rows: int
    code_bytes: int
    address_space: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JailCall:
    """The state of a process behind all walls: the code, the panel, and where the answer goes."""

    code: bytes
    panel: child.JailPanel
    address: int
    room: int

    def run(self) -> None:
        """Run the code and answer; never returns."""
        status, content = child.compute(self.code, self.panel)
        child.write_answer(self.address, self.room, status, content)
        os.write(seccomp.STATUS_FD, status)
        os._exit(0)


class Inside(BaseException):
    """Raised once all walls stand, to leave the frames of the watch, which code could find by inspecting the stack."""

    def __init__(self, call: JailCall) -> None:
        super().__init__()
        self.call = call


def enter(lock: JailLock, task: JailTask, descriptors: tuple[int, int, int, int]) -> None:
    """Become the process that runs the code; never returns, but raises `Inside` when all walls stand.

    `descriptors`: the status pipe, the courier's socket, the panel, the answer. Only the first outlives this function.
    """
    try:
        os.setsid()
        _sort(descriptors)
        panel = child.read_panel(_PANEL_FD, task.rows)
        size = os.fstat(_ANSWER_FD).st_size
        address = shared_memory.map_file(_ANSWER_FD, size, write=True)
        os.close(_ANSWER_FD)
        room = 8 * next(iter(panel.values())).size
        code = ctypes.string_at(address + room, task.code_bytes)
        ctypes.memset(address + room, 0, size - room)
        gc.enable()
        random.seed(0)  # the fork reseeded it
        held = sum(8 * frame.size for frame in panel.values()) + _MARGIN_BYTES  # only of the days that the call sees
        _shut(lock, task, held)
    except BaseException as error:  # noqa: BLE001 - after any error the code must not run
        _give_up(error)
    raise Inside(JailCall(code, panel, address, room))


def _sort(descriptors: tuple[int, int, int, int]) -> None:
    """Move the needed descriptors to fixed numbers and close all others."""
    high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_FD) for one in descriptors]
    for one, number in zip(high, (seccomp.STATUS_FD, seccomp.COURIER_FD, _PANEL_FD, _ANSWER_FD), strict=True):
        os.dup2(one, number, inheritable=False)
    syscall("close_range", _ANSWER_FD + 1, 0x7FFFFFFF, 0)


def _shut(lock: JailLock, task: JailTask, held: int) -> None:
    """Build the walls: after this no file, socket, process or descriptor can be opened."""
    courier = socket.socket(fileno=seccomp.COURIER_FD)
    with name_primitive("privileges"):
        privileges.drop_privileges()
    if "limits" not in lock.omitted:
        with name_primitive("limits"):
            privileges.set_limits(task.address_space + held, task.seconds, _MAX_DESCRIPTORS)
    if "landlock" not in lock.omitted:
        with name_primitive("landlock"):
            landlock.restrict_process(lock.landlock_abi)
    if "seccomp" in lock.omitted:
        courier.sendmsg([b"L"])
    else:
        with name_primitive("seccomp"):
            listener = seccomp.install_filter(lock.filter_program)
        try:
            courier.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
        finally:
            os.close(listener)  # else a stopped call would wait for ever once the watch has ended
    courier.close()


def _give_up(error: BaseException) -> None:
    kind = "" if isinstance(error, PrimitiveMissing) else f"{type(error).__name__}: "
    words = f"X.{kind}{error}".encode("utf-8", "replace")[:512]
    os.write(seccomp.STATUS_FD, words)
    os._exit(70)
