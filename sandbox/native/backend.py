"""The native backend: a clean fork server, and the kernel's own walls around every call."""

from __future__ import annotations

import array
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Collection
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ..backend import ENVIRONMENT, WorkerBroken, check_values
from ..errors import BadResult, Crashed, OutOfMemory, Refused, SandboxError, SandboxUnavailable, TimedOut
from ..jail.bare_interpreter import build_command, fix_addresses
from ..jail.channel import (
    CALL_GONE,
    CALL_OVERTIME,
    CALL_STOPPED,
    CRASHED,
    GOOD_RESULT,
    OUT_OF_MEMORY,
    REPLY,
    REPLY_WORDS_BYTES,
    REQUEST,
    WRONG_RESULT,
    CallFile,
    share_panel,
)
from ..jail.text import clean, encode_code
from ..job import Job, Limits, Outcome
from .capability import examine_primitives, find_hint, unavailable_error
from .escapes import require_contained
from .syscalls import find_machine

LayerName = Literal["namespaces", "limits", "landlock", "seccomp", "clock"]
LAYERS: tuple[LayerName, ...] = get_args(LayerName)
"""The walls by name."""
_REFUSAL_WORDS = {
    "open openat openat2 newfstatat stat": "file",
    "clock_gettime time gettimeofday nanosleep clock_nanosleep": "clock",
    "getrandom": "randomness without a seed (np.random.default_rng(0))",
    "mmap mprotect": "memory that can be executed",
}
_CLOCKS = frozenset({"clock_gettime", "gettimeofday", "time"})
"""Some libraries silently read a refusal as the year 1970, so values that asked for the time are refused."""
_SERVER_START_S, _REPLY_GRACE_S = 60.0, 5.0


class Native:
    """Landlock, seccomp, namespaces and limits around a fork of a clean interpreter.

    Parameters
    ----------
    omit : collection of LayerName
        Walls to leave out, only to measure what the others stop: never for code of unknown origin. Every value is
        stamped.
    tested : bool
        True: the caller tries the escapes itself.
    """

    name = "native"

    def __init__(self, omit: Collection[LayerName] = (), *, tested: bool = False) -> None:
        self._server: _Server | None = None
        self._other: _Server | None = None
        self._starting = threading.Lock()
        self._omit = frozenset(omit)
        self.stamp = f"NOT CONTAINED: ran without {', '.join(sorted(omit))}" if omit else ""
        self._tested = tested or bool(omit)

    def check(self) -> None:
        """Raise SandboxUnavailable where the kernel lacks a wall."""
        for primitive in examine_primitives():
            if primitive.required and not primitive.works:
                raise unavailable_error(primitive)

    def start(self) -> NativeWorker:
        """Fork a worker from the server, which is started if needed; escapes are tried on the first worker."""
        try:
            channel = self._fork()
        except WorkerBroken:  # the server has died since its last use
            self.close()
            channel = self._fork()
        worker = NativeWorker(channel, self.stamp, self._start_apart)
        if not self._tested:
            require_contained(worker)
            self._tested = True
        return worker

    def _fork(self) -> socket.socket:
        if self._server is None:
            self._server = _Server(self._omit)
        return self._server.fork()

    def _start_apart(self) -> NativeWorker:
        """Start a worker of a second server, which has other memory addresses."""
        with self._starting:
            try:
                return self._fork_apart()
            except WorkerBroken:  # the server has died since its last use, or cannot start
                return self._fork_apart()

    def _fork_apart(self) -> NativeWorker:
        try:
            self._other = self._other or _Server(self._omit, chance=True)
            return NativeWorker(self._other.fork(), self.stamp)
        except WorkerBroken:
            if self._other is not None:
                self._other.close()
            self._other = None
            raise

    def close(self) -> None:
        """End the servers."""
        with self._starting:
            for server in (self._server, self._other):
                if server is not None:
                    server.close()
            self._server = self._other = None


class _Server:
    """The interpreter that was started by exec; with `chance` at addresses that the kernel draws at random."""

    def __init__(self, omit: frozenset[str], *, chance: bool = False) -> None:
        self._socket, there = socket.socketpair()
        with there, nullcontext() if chance else fix_addresses():
            self._process = subprocess.Popen(
                _build_server_command(there.fileno(), omit),
                env=ENVIRONMENT,
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        try:
            _await_ready(self._socket, "the fork server did not start")
        except (WorkerBroken, SandboxUnavailable):
            self.close()
            raise

    def fork(self) -> socket.socket:
        """Return the socket of a new worker."""
        here, there = socket.socketpair()
        try:
            with there:
                _send(self._socket, b"w", there.fileno())
            _await_ready(here, "a worker did not start")
        except OSError as error:
            here.close()
            raise WorkerBroken("the fork server is gone") from error
        except (WorkerBroken, SandboxUnavailable):
            here.close()
            raise
        return here

    def close(self) -> None:
        """End the server; its workers end when their sockets close."""
        self._socket.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class NativeWorker:
    """One forked worker and its socket; `other` starts the worker for jobs that run apart."""

    def __init__(self, channel: socket.socket, stamp: str, other: Callable[[], NativeWorker] | None = None) -> None:
        self._channel, self._stamp, self._make_other = channel, stamp, other
        self._other: NativeWorker | None = None

    def call(self, job: Job, limits: Limits) -> Outcome:
        """Run a job in a fresh process."""
        if job.apart and self._make_other is not None:
            self._other = self._other or self._make_other()
            return self._other.call(job, limits)
        started = time.perf_counter()
        try:
            code = encode_code(job.code)
        except Refused as error:
            return Outcome(None, error, 0.0, 0.0, 0.0)
        panel, answer = share_panel(job.frames), CallFile(job.shape, code)
        try:
            self._send(job, limits, len(code), panel.descriptor, answer.descriptor)
            reply = self._receive(limits.wall_s + _REPLY_GRACE_S)
            return _build_outcome(reply, answer, limits, started, self._stamp)
        finally:
            answer.close()

    def _send(self, job: Job, limits: Limits, code_bytes: int, panel: int, answer: int) -> None:
        request = REQUEST.pack(job.shape[0], code_bytes, limits.memory_mb << 20, limits.wall_s)
        try:
            _send(self._channel, request, panel, answer)
        except OSError as error:
            raise WorkerBroken("the worker is gone") from error

    def _receive(self, seconds: float) -> bytes:
        self._channel.settimeout(seconds)
        try:
            reply = self._channel.recv(REPLY.size, socket.MSG_WAITALL)
        except OSError as error:
            raise WorkerBroken("the worker does not answer") from error
        if len(reply) != REPLY.size:
            raise WorkerBroken("the worker is gone")
        return reply

    def stop(self) -> None:
        """Hang up: the watch ends the call, and the waiting thread gets `WorkerBroken`."""
        with suppress(OSError):  # the worker may have ended already
            self._channel.shutdown(socket.SHUT_RDWR)
        if self._other is not None:
            self._other.stop()

    def close(self) -> None:
        """Close the sockets; the workers end."""
        self._channel.close()
        if self._other is not None:
            self._other.close()


def _build_server_command(descriptor: int, omit: frozenset[str]) -> list[str]:
    import numpy as np
    import pandas as pd

    libraries = tuple(sorted({str(Path(str(module.__file__)).parents[1]) for module in (np, pd)}))
    return build_command("jail.server", "main", f"{descriptor}, frozenset({sorted(omit)!r})", libraries)


def _send(channel: socket.socket, data: bytes, *descriptors: int) -> None:
    channel.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])


def _await_ready(channel: socket.socket, words: str) -> None:
    """Wait for one letter: R, ready; X, with the missing primitive and the kernel's error."""
    channel.settimeout(_SERVER_START_S)
    try:
        ready = channel.recv(1 + REPLY_WORDS_BYTES)
    except OSError as error:
        raise WorkerBroken(f"{words}: {error}") from error
    if ready == b"":
        raise WorkerBroken(f"{words}: it ended")
    if ready != b"R":
        message = clean(ready[1:])
        primitive = message.partition(": ")[0]
        raise SandboxUnavailable(f"{words}: {message}", field=primitive, hint=find_hint(primitive))


def _explain_refusals(text: str, calls: tuple[str, ...]) -> str:
    """Return a hint that names what the kernel refused before the code failed; empty if nothing."""
    if any(f"{kind}: " in text[:60] for kind in ("SyntaxError", "IndentationError", "TabError")):
        return "Mend that line: it is not Python."
    missing = [words for names, words in _REFUSAL_WORDS.items() if set(names.split()) & set(calls)]
    if not missing and "PermissionError" in text:
        missing = ["file", "clock", "process"]
    return f"In the sandbox there is no {', no '.join(missing)}." if missing else ""


def _build_outcome(reply: bytes, answer: CallFile, limits: Limits, started: float, stamp: str) -> Outcome:
    status, ended, count, sign, cpu_ms, peak_mb, _, *numbers, words = REPLY.unpack(reply)
    machine = find_machine()
    calls = tuple(machine.name(number) for number in numbers[:count]) if machine else ()
    values, error = None, _build_error(_Ending(status, ended, sign, calls, clean(words)), answer, limits)
    if error is None:
        values = answer.values()
        error = check_values(values, answer.shape)
    wall_ms = 1000 * (time.perf_counter() - started)
    return Outcome(None if error else values, error, wall_ms, cpu_ms, peak_mb, calls, stamp)


def _is_forbidden(status: bytes, answer: CallFile) -> bool:
    """Return whether the code failed at a refusal: Python 3.13 raises, earlier ones read a refused clock as 1970."""
    return status == CRASHED and "PermissionError: " in answer.text()


class _Ending(NamedTuple):
    """How a call ended, as its supervisor reports it.

    Attributes
    ----------
    status : bytes
        What the process wrote of itself.
    ended : int
        Who ended it, one of the ``CALL_`` numbers.
    sign : int
        The signal that ended the process, 0 for none.
    calls : tuple of str
        The system calls that were refused.
    words : str
        What the supervisor says of a failure.
    """

    status: bytes
    ended: int
    sign: int
    calls: tuple[str, ...]
    words: str


def _build_error(ending: _Ending, answer: CallFile, limits: Limits) -> SandboxError | None:
    status, ended, sign, calls, words = ending
    if ended == CALL_OVERTIME:
        return TimedOut(
            "the call took too long",
            field="wall_s",
            got=f"{limits.wall_s:g} s and more",
            allowed=f"{limits.wall_s:g} s",
            hint="Vectorise loops over days or names.",
        )
    if ended == CALL_STOPPED or sign == signal.SIGSYS:
        last = calls[-1] if calls else "a call of another architecture"
        return Refused(f"the code tried {last}, which no factor needs; it was ended", field="code", got=last)
    if ended == CALL_GONE:
        raise SandboxUnavailable(
            f"the walls could not be built: {words or 'the process ended first'}",
            field=words.partition(": ")[0],
            hint="Ask: alphaloom sandbox status",
        )
    if (clock_calls := sorted(_CLOCKS & set(calls))) and (status == GOOD_RESULT or _is_forbidden(status, answer)):
        return Refused(
            f"the code asked for the time ({', '.join(clock_calls)}), and there is no clock in the sandbox",
            field="code",
            got=clock_calls[0],
            hint="Take days from the panel: panel['close'].index.",
        )
    if status == GOOD_RESULT:
        return None
    if status == OUT_OF_MEMORY or sign == signal.SIGKILL:
        return OutOfMemory("the call used too much memory", field="memory_mb", allowed=f"{limits.memory_mb} MiB")
    if status == WRONG_RESULT:
        return BadResult(answer.text(), field="factor")
    if status == CRASHED:
        return Crashed(text := answer.text(), field="code", hint=_explain_refusals(text, calls))
    if sign in set(signal.Signals):
        name = signal.Signals(sign).name
        return Crashed(f"the process was ended by {name} before it gave an answer", field="code", got=name)
    return Crashed(
        "the code ended its process without an answer",
        field="code",
        got="no answer",
        hint="Return the frame from factor(panel).",
    )
