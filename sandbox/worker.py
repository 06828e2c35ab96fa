"""One worker of the fork server: takes a job, forks a process for it, watches it, and tells how it ended."""

from __future__ import annotations

import array
import os
import select
import signal
import socket
import time
from dataclasses import dataclass, field

from .cell import Lock, Task, enter
from .channel import ENDED, OVERTIME, REPLY, REQUEST, STOPPED
from .native import landlock, seccomp, warder
from .native.syscalls import Machine, this_machine

__all__ = ["work"]

_TOLD, _PATIENCE = 16, 10_000


def work(descriptor: int) -> None:
    """Serve jobs from a socket until it is closed."""
    parent = socket.socket(fileno=descriptor)
    machine = this_machine()
    if machine is None:
        raise OSError("this machine's system calls are not known")
    lock = Lock(seccomp.program(machine), landlock.version())
    statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    parent.sendall(b"R")
    while True:
        data, ancillary, _, _ = parent.recvmsg(REQUEST.size, socket.CMSG_SPACE(8))
        if len(data) < REQUEST.size:
            return
        descriptors = array.array("i")
        for _level, _kind, content in ancillary:
            descriptors.frombytes(content)
        rows, code_bytes, budget, seconds = REQUEST.unpack(data)
        panel, answer = descriptors
        mapped = os.fstat(panel).st_size * (1 if rows < 0 else 2) + os.fstat(answer).st_size
        used = int(os.pread(statm, 64, 0).split()[0]) * os.sysconf("SC_PAGESIZE")
        task = Task(rows, code_bytes, used + mapped + budget, seconds)
        watch = Watch(machine, parent, time.monotonic() + seconds)
        parent.sendall(watch.run(lock, task, panel, answer))


@dataclass
class Watch:
    """The watch over one call."""

    machine: Machine
    parent: socket.socket
    deadline: float
    status: bytes = b""
    ended: int = ENDED
    tried: list[int] = field(default_factory=list)
    calls: int = 0

    def run(self, lock: Lock, task: Task, panel: int, answer: int) -> bytes:
        """Fork the process, watch it to its end, and return the reply."""
        started = time.monotonic()
        reads, writes = os.pipe2(os.O_CLOEXEC)
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            enter(lock, task, (writes, there.fileno(), panel, answer))
        there.close()
        for one in (writes, panel, answer):
            os.close(one)
        process = os.pidfd_open(pid)
        try:
            self._follow(process, reads, here)
        finally:
            _kill(process)
            _, code, used = os.wait4(pid, 0)
            for one in (process, reads):
                os.close(one)
            here.close()
        sign = os.WTERMSIG(code) if os.WIFSIGNALED(code) else 0
        wall = 1000 * (time.monotonic() - started)
        told = (self.tried + [-1] * _TOLD)[:_TOLD]
        return REPLY.pack(
            self.status[:2].ljust(2), self.ended, min(len(self.tried), _TOLD), sign,
            1000 * (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024, wall, *told, self.status[2:],
        )  # fmt: skip

    def _follow(self, process: int, reads: int, here: socket.socket) -> None:
        """Answer what the filter stops until the process ends, the time is over, or it tries to get out."""
        poll = select.poll()
        for one in (process, reads, here, self.parent):
            poll.register(one, select.POLLIN)
        listener = -1
        try:
            while True:
                left = self.deadline - time.monotonic()
                ready = dict(poll.poll(max(0.0, 1000 * left))) if left > 0 else {}
                if not ready:
                    self.ended = OVERTIME
                    return
                if self.parent.fileno() in ready:
                    os._exit(0)
                if here.fileno() in ready:
                    poll.unregister(here)
                    listener = _listener(here)
                    if listener >= 0:
                        poll.register(listener, select.POLLIN)
                if reads in ready:
                    got = os.read(reads, 512)
                    self.status = self.status or got
                    if not got:
                        poll.unregister(reads)
                if listener in ready and not self._answered(listener):
                    return
                if process in ready:
                    return
        finally:
            if listener >= 0:
                os.close(listener)

    def _answered(self, listener: int) -> bool:
        attempt = warder.take(listener)
        if attempt is None:
            return True
        if attempt.number not in self.tried:
            self.tried.append(attempt.number)
        self.calls += 1
        if self.calls > _PATIENCE or self.machine.name(attempt.number) not in warder.HARMLESS:
            self.ended = STOPPED
            return False
        warder.answer(listener, attempt)
        return True


def _listener(here: socket.socket) -> int:
    received = array.array("i")
    _, ancillary, _, _ = here.recvmsg(1, socket.CMSG_SPACE(4))
    for _level, _kind, content in ancillary:
        received.frombytes(content[:4])
    return received[0] if received else -1


def _kill(process: int) -> None:
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except ProcessLookupError:
        return
