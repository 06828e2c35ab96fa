"""The way into the jail: what a fresh process does between the fork and the first line of the code.

Order matters. Descriptors are sorted out and the panel is mapped while that is still possible; then capabilities, limits,
Landlock and seccomp, each of which takes away the means to undo the one before. An error on the way ends the process:
the code runs behind all walls or not at all.
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

from ..native import landlock, memory, privileges, rlimits, seccomp
from ..native.layers import Missing, building
from ..native.libc import syscall
from . import child

__all__ = ["Call", "Inside", "Lock", "Task", "enter"]

_PANEL, _ANSWER, _ABOVE = 5, 6, 64
_MOST_DESCRIPTORS, _MARGIN = 8, 1 << 20


@dataclass(frozen=True, slots=True)
class Lock:
    """What the walls of every call are made of; prepared once, before the first fork."""

    filter_program: bytes
    landlock_abi: int
    omitted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Task:
    """One call, as the fresh process is told of it: rows, bytes of code, bytes of memory beside the panel, seconds."""

    rows: int
    code_bytes: int
    address_space: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """What a process behind all walls has in hand: the code, the panel, and where the answer goes."""

    code: bytes
    panel: child.Panel
    address: int
    room: int

    def run(self) -> None:
        """Run the code and answer; never returns."""
        status, content = child.compute(self.code, self.panel)
        child.write_answer(self.address, self.room, status, content)
        os.write(seccomp.STATUS, status)
        os._exit(0)


class Inside(BaseException):
    """The walls stand. Raised to leave the frames of the watch, so that code that looks above itself finds nothing."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


def enter(lock: Lock, task: Task, descriptors: tuple[int, int, int, int]) -> None:
    """Become the process that runs the code; never returns, but raises `Inside` when all walls stand.

    `descriptors`: the status pipe, the courier's socket, the panel, the answer. Only the first outlives this function.
    """
    try:
        os.setsid()
        _sort(descriptors)
        panel = child.read_panel(_PANEL, task.rows)
        size = os.fstat(_ANSWER).st_size
        address = memory.map_file(_ANSWER, size, write=True)
        os.close(_ANSWER)
        room = 8 * next(iter(panel.values())).size
        code = ctypes.string_at(address + room, task.code_bytes)
        ctypes.memset(address + room, 0, size - room)
        gc.enable()
        random.seed(0)  # a fork had seeded it anew
        held = sum(8 * frame.size for frame in panel.values()) + _MARGIN  # of the days that it sees, and of no others
        _shut(lock, task, held)
    except BaseException as error:  # noqa: BLE001 - whatever it was, the code must not run
        _give_up(error)
    raise Inside(Call(code, panel, address, room))


def _sort(descriptors: tuple[int, int, int, int]) -> None:
    """Move what is kept to fixed numbers and close all else."""
    high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for one in descriptors]
    for one, number in zip(high, (seccomp.STATUS, seccomp.COURIER, _PANEL, _ANSWER), strict=True):
        os.dup2(one, number, inheritable=False)
    syscall("close_range", _ANSWER + 1, 0x7FFFFFFF, 0)


def _shut(lock: Lock, task: Task, held: int) -> None:
    """Shut the door: after this nothing can be opened, reached, started or made."""
    courier = socket.socket(fileno=seccomp.COURIER)
    with building("privileges"):
        privileges.drop()
    if "limits" not in lock.omitted:
        with building("limits"):
            rlimits.seal(task.address_space + held, task.seconds, _MOST_DESCRIPTORS)
    if "landlock" not in lock.omitted:
        with building("landlock"):
            landlock.seal(lock.landlock_abi)
    if "seccomp" in lock.omitted:
        courier.sendmsg([b"L"])
    else:
        with building("seccomp"):
            listener = seccomp.seal(lock.filter_program)
        try:
            courier.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
        finally:
            os.close(listener)  # or a stopped call would wait for ever once the warder is gone
    courier.close()


def _give_up(error: BaseException) -> None:
    kind = "" if isinstance(error, Missing) else f"{type(error).__name__}: "
    words = f"X.{kind}{error}".encode("utf-8", "replace")[:512]
    os.write(seccomp.STATUS, words)
    os._exit(70)
