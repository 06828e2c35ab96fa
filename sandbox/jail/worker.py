"""One worker of the fork server, and the watch over each call: it forks the process and reports how it ended."""

from __future__ import annotations

import array
import os
import resource
import select
import signal
import socket
import time
from dataclasses import dataclass

from ..native import clock, landlock, namespaces, privileges, seccomp
from ..native.libc import prctl
from ..native.syscalls import Machine, find_machine
from .channel import CALL_ENDED, CALL_GONE, CALL_OVERTIME, CALL_STOPPED, REPLY, REPLY_WORDS_BYTES, REQUEST
from .entry import Inside, JailLock, JailTask, enter

_MAX_CALLS_TOLD, _MAX_CALLS_ANSWERED = 16, 10_000
"""Attempts that are reported by name, and the number of attempts after which a process is ended."""

_DEATH_SIGNAL, _PAGE_BYTES = 1, os.sysconf("SC_PAGESIZE")


def serve_jobs(descriptor: int, omitted: frozenset[str]) -> None:
    """Serve jobs from a socket until it is closed."""
    parent = socket.socket(fileno=descriptor)
    try:
        post = _prepare_worker(parent, omitted)
    except OSError as error:
        parent.sendall(f"X{error}".encode()[:REPLY_WORDS_BYTES])
        return
    if post is not None:
        parent.sendall(b"R")
        _serve(post)


@dataclass(frozen=True)
class WorkerPost:
    """The state of a prepared worker; `inside`: in namespaces of its own, unless they were left out."""

    parent: socket.socket
    machine: Machine
    lock: JailLock
    inside: bool
    statm: int

    def used(self) -> int:
        """Return the size of this process's address space in bytes."""
        return int(os.pread(self.statm, 64, 0).split()[0]) * _PAGE_BYTES


def _prepare_worker(parent: socket.socket, omitted: frozenset[str]) -> WorkerPost | None:
    """Enter the namespaces and prepare the walls; None in the process that stays behind."""
    machine = find_machine()
    if machine is None:
        raise OSError("this machine's system calls are not known")
    namespaces.become_nobody()
    inside = "namespaces" not in omitted
    if inside:
        namespaces.isolate()
        if os.fork():
            return None  # the child is the first process of the new namespace and continues
    lock = JailLock(seccomp.build_program(machine), landlock.read_version(), omitted)
    statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    if "clock" not in omitted:
        clock.cover_time()
    if inside:
        namespaces.empty_root()
    privileges.empty_bounding_set()
    privileges.close_memory()
    return WorkerPost(parent, machine, lock, inside, statm)


def _serve(post: WorkerPost) -> None:
    """Pass each job to a process of its own that watches it.

    The data of a call (its status, the arguments of stopped calls) is only in the memory of its watch, which ends with
    the call. Every call is forked from the same memory, so no call can leave data for a later one.
    """
    while True:
        data, ancillary, _, _ = post.parent.recvmsg(REQUEST.size, socket.CMSG_SPACE(8))
        if len(data) < REQUEST.size:
            return
        panel, answer = _descriptors(ancillary)
        pid = os.fork()
        if pid == 0:
            _watch_job(post, data, panel, answer)
        _close(panel, answer)
        if os.waitpid(pid, 0)[1]:
            return  # this process ends its namespace, with all processes in it
        _require_no_children()


def _watch_job(post: WorkerPost, data: bytes, panel: int, answer: int) -> None:
    """Run one job and answer; never returns, but raises `Inside` in the process that runs the code."""
    try:
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
        rows, code_bytes, budget, seconds = REQUEST.unpack(data)
        task = JailTask(rows, code_bytes, post.used() + os.fstat(answer).st_size + budget, seconds)
        post.parent.sendall(CallWatch(post, seconds).run(task, panel, answer))
    except Inside:
        raise
    except BaseException:  # noqa: BLE001 - a failed watch must not continue as a worker
        os._exit(1)
    os._exit(0)


class CallWatch:
    """The watch over one call, from its fork until its process is reaped."""

    def __init__(self, post: WorkerPost, seconds: float) -> None:
        self._post = post
        self._seconds = seconds
        self._listener = -1
        self._standing = False  # the walls: until they stand, the process runs only our code
        self._status = b""
        self._ended = CALL_ENDED
        self._tried: list[int] = []
        self._calls = 0

    def run(self, task: JailTask, panel: int, answer: int) -> bytes:
        """Fork the process, watch it to its end, and return the reply."""
        reads, writes = os.pipe2(os.O_CLOEXEC)
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = namespaces.fork_apart() if self._post.inside else os.fork()
        if pid == 0:
            courier = there.detach()
            here.detach(), self._post.parent.detach()  # their numbers will be reused for other descriptors
            enter(self._post.lock, task, (writes, courier, panel, answer))
        self._began = time.monotonic()  # after the fork, or the code would find the time in its memory
        self._deadline = self._began + self._seconds
        there.close()
        _close(writes, panel, answer)
        process = os.pidfd_open(pid)
        try:
            self._follow(process, reads, here)
        finally:
            _kill(process)
            _, code, used = os.wait4(pid, 0)
            _close(process, reads)
            here.close()
            if self._listener >= 0:
                _close(self._listener)
        return self._reply(code, used)

    def _reply(self, code: int, used: resource.struct_rusage) -> bytes:
        if not self._standing and self._ended == CALL_ENDED:
            self._ended = CALL_GONE
        told = (self._tried + [-1] * _MAX_CALLS_TOLD)[:_MAX_CALLS_TOLD]
        return REPLY.pack(
            self._status[:2].ljust(2),
            self._ended,
            min(len(self._tried), _MAX_CALLS_TOLD),
            os.WTERMSIG(code) if os.WIFSIGNALED(code) else 0,
            1000 * (used.ru_utime + used.ru_stime),
            used.ru_maxrss / 1024,
            1000 * (time.monotonic() - self._began),
            *told,
            self._status[2:],
        )

    def _follow(self, process: int, reads: int, here: socket.socket) -> None:
        """Answer stopped calls until the process ends, the time is over, or it tries a forbidden call."""
        poll = select.poll()
        for one in (process, reads, here, self._post.parent):
            poll.register(one, select.POLLIN)
        while self._ended == CALL_ENDED:
            left = self._deadline - time.monotonic()
            ready = dict(poll.poll(1000 * left)) if left > 0 else {}
            if not ready:
                self._ended = CALL_OVERTIME
            if self._post.parent.fileno() in ready:
                os._exit(1)  # the caller has hung up
            if here.fileno() in ready:
                poll.unregister(here)
                self._hear(here, poll)
            if reads in ready and not self._read(reads):
                poll.unregister(reads)
            if ready.get(self._listener, 0) & select.POLLIN:
                self._answer()
            elif self._listener in ready:
                poll.unregister(self._listener)  # the process is ending and makes no further call
            if process in ready:
                self._read(reads)
                return

    def _hear(self, here: socket.socket, poll: select.poll) -> None:
        """Receive the filter's listener: from now on the code runs."""
        data, ancillary, _, _ = here.recvmsg(1, socket.CMSG_SPACE(4))
        self._standing = data == b"L"
        for one in _descriptors(ancillary):
            self._listener = one
            poll.register(one, select.POLLIN)

    def _read(self, reads: int) -> bool:
        got = os.read(reads, REPLY_WORDS_BYTES)
        self._status = self._status or got
        return bool(got)

    def _answer(self) -> None:
        attempt = seccomp.take_refused_call(self._listener)
        if attempt is None:
            return
        if attempt.number not in self._tried:
            self._tried.append(attempt.number)
        self._calls += 1
        if self._calls > _MAX_CALLS_ANSWERED or self._post.machine.name(attempt.number) not in seccomp.HARMLESS_CALLS:
            self._tried.remove(attempt.number)
            self._tried = [*self._tried[: _MAX_CALLS_TOLD - 1], attempt.number]
            self._ended = CALL_STOPPED
        else:
            seccomp.deny_call(self._listener, attempt)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    received = array.array("i")
    for _level, _kind, content in ancillary:
        received.frombytes(content)
    return received.tolist()


def _close(*descriptors: int) -> None:
    for one in descriptors:
        os.close(one)


def _kill(process: int) -> None:
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _require_no_children() -> None:
    """End this worker, and with it all processes of its namespace, if the call left one behind."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    os._exit(1)
