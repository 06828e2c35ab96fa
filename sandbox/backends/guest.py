"""A backend that starts a fresh interpreter behind a wall for every call, and the bytes exchanged with it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import math
import os
import queue
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..backend import check_values
from ..errors import BadResult, Crashed, OutOfMemory, Refused, SandboxError, SandboxUnavailable, TimedOut
from ..jail.text import clean, encode_code
from ..job import Job, Limits, Outcome
from .launch import InterpreterLaunch, Wall, collect_modules

_GUEST_START_S, _LISTENER_JOIN_S = 60.0, 1.0
_CHECKED_PACKAGES = ("numpy", "pandas")
"""Packages that must have the same version behind the wall, because the bytes depend on them."""
READY = b"alph"
_LENGTH_FORMAT, _ANSWER_FORMAT, _MAX_WORDS_BYTES = struct.Struct("<I"), struct.Struct("<4s2xHdd"), 2000
_GOOD = b"G."
_ERROR_KINDS: dict[bytes, tuple[type[SandboxError], str]] = {
    b"C.": (Crashed, "code"),
    b"M.": (OutOfMemory, "memory_mb"),
    b"W.": (BadResult, "factor"),
}
ReadBytes = Callable[[int], bytes]
"""Returns exactly so many bytes, or raises."""


class Guests:
    """A backend in which every call gets its own interpreter behind a wall, started in about a second."""

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self.name, self.stamp = wall.name, wall.stamp

    def check(self) -> None:
        """Start one interpreter and end it.

        Raises
        ------
        SandboxUnavailable
            The tool is missing, does not start an interpreter, or starts one with other versions of numpy or pandas.
        """
        self._wall.check()
        with _Guest(self._wall):
            pass

    def start(self) -> Self:
        """Return itself: a worker has no state between calls."""
        return self

    def call(self, job: Job, limits: Limits) -> Outcome:
        """Run a job in an interpreter that is started for it."""
        try:
            encode_code(job.code)
        except Refused as error:
            return Outcome(None, error, 0.0, 0.0, 0.0, stamp=self.stamp)
        with _Guest(self._wall) as guest:
            return replace(guest.ask(job, limits), stamp=self.stamp)

    def stop(self) -> None:
        """Do nothing: an interpreter ends with its call, within the limits of the call."""

    def close(self) -> None:
        """Do nothing: every interpreter has ended with its call."""


class _Ended(Exception):
    """The process has closed its output, or the time is over."""


class _Guest:
    """One interpreter."""

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self._launch: InterpreterLaunch = wall.launch()
        self._deadline = 0.0
        self._unread = b""
        self._pieces: queue.Queue[bytes] = queue.Queue(maxsize=16)
        self._over = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        """Start the interpreter and wait until it is ready."""
        launch = self._launch
        try:
            self._process = subprocess.Popen(
                launch.command, env=launch.environment, cwd=os.sep, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                bufsize=0, stderr=subprocess.PIPE, start_new_session=os.name == "posix", pass_fds=launch.descriptors,
            )  # fmt: skip  # a table
        finally:
            for descriptor in launch.descriptors:
                os.close(descriptor)
        self._listener.start()
        try:
            with self._limit_time(_GUEST_START_S):
                self._greet()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the interpreter."""
        self._end()

    def ask(self, job: Job, limits: Limits) -> Outcome:
        """Send the job and read the answer, within the time limit."""
        started = time.monotonic()
        try:
            with self._limit_time(limits.wall_s):
                for piece in pack_job(job, limits):
                    self._write(piece)
                outcome = read_answer(self._read, job, limits, clean)
        except (OSError, _Ended):
            outcome = self._make_failure(limits)
        return replace(outcome, wall_ms=1000 * (time.monotonic() - started))

    @contextlib.contextmanager
    def _limit_time(self, seconds: float) -> Iterator[None]:
        """Kill the process when the time is over, so that no read waits for it."""
        self._deadline = time.monotonic() + seconds
        watch = threading.Timer(seconds, self._kill)
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def _make_failure(self, limits: Limits) -> Outcome:
        if time.monotonic() >= self._deadline:
            error: SandboxError = TimedOut(
                "the call took too long",
                field="wall_s",
                got=f"{limits.wall_s:g} s and more",
                allowed=f"{limits.wall_s:g} s",
                hint="Vectorise loops over days or names.",
            )
        else:
            error = Crashed("the process ended and gave no answer", field="code", got="no answer")
        return Outcome(None, error, 0.0, 0.0, 0.0)

    def _greet(self) -> None:
        """Send the program's modules and paths, and check that it starts with the versions used here."""
        try:
            self._write(pack_greeting(self._launch.paths))
            theirs = read_versions(self._read)
        except (OSError, ValueError, _Ended):
            raise SandboxUnavailable(
                f"{self._wall.name} starts no interpreter: {self._read_complaint()}",
                field=self._wall.name,
                hint=self._wall.hint,
            ) from None
        for name in _CHECKED_PACKAGES:
            here = importlib.metadata.version(name)
            if theirs.get(name) != here:
                raise SandboxUnavailable(
                    f"behind {self._wall.name} there is another {name}, and values would differ",
                    field=name,
                    got=str(theirs.get(name))[:40],
                    allowed=here,
                    hint=self._wall.hint,
                )

    def _read_complaint(self) -> str:
        """Kill the process and return the last line of its error output."""
        self._kill()
        assert self._process.stderr is not None
        with contextlib.suppress(OSError):
            message = clean(self._process.stderr.read(8192).strip().rpartition(b"\n")[2])
            return message or "it ended without a word"
        return "it ended without a word"

    def _write(self, piece: bytes | memoryview) -> None:
        assert self._process.stdin is not None
        view = memoryview(piece)
        while view:
            view = view[self._process.stdin.write(view) :]

    def _read(self, count: int) -> bytes:
        """Return exactly `count` bytes."""
        pieces = [self._unread]
        while sum(map(len, pieces)) < count:
            try:
                piece = self._pieces.get(timeout=max(0.0, self._deadline - time.monotonic()))
            except queue.Empty:
                raise _Ended from None
            if not piece:
                raise _Ended
            pieces.append(piece)
        received = b"".join(pieces)
        self._unread = received[count:]
        return received[:count]

    def _listen(self) -> None:
        """Queue what the program writes; an empty piece means that it has ended."""
        assert self._process.stdout is not None
        piece = b"."
        while piece and not self._over.is_set():
            try:
                piece = self._process.stdout.read(2**18) or b""
            except (OSError, ValueError):
                piece = b""
            while not self._over.is_set():
                with contextlib.suppress(queue.Full):
                    self._pieces.put(piece, timeout=0.1)
                    break

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _end(self) -> None:
        """End the process and its launch; a listener thread that is still blocked is left alone."""
        self._over.set()
        self._kill()
        self._launch.end()
        self._process.wait()
        self._listener.join(_LISTENER_JOIN_S)
        streams = [self._process.stdin, self._process.stderr]
        for stream in [*streams, *([] if self._listener.is_alive() else [self._process.stdout])]:
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()


def pack_greeting(paths: tuple[str, ...]) -> bytes:
    """Return the first message to the program: its modules and paths."""
    return _pack_json({"modules": collect_modules(), "paths": list(paths)})


def read_versions(read: ReadBytes) -> dict[str, Any]:
    """Read the ready mark and the versions of an interpreter."""
    word, (length,) = read(len(READY)), _LENGTH_FORMAT.unpack(read(_LENGTH_FORMAT.size))
    if word != READY or length > _MAX_WORDS_BYTES:
        raise ValueError("it does not speak as it should")
    versions: dict[str, Any] = json.loads(read(length))
    return versions


def pack_job(job: Job, limits: Limits) -> Iterator[bytes | memoryview]:
    """Yield a job, piece by piece; days after `job.rows` are never sent."""
    days, _ = job.shape
    frames = job.frames
    yield _pack_json(
        {
            "code": job.code,
            "days": days,
            "symbols": list(frames.symbols),
            "fields": list(frames.names),
            "memory_mb": limits.memory_mb,
            "wall_s": limits.wall_s,
        }
    )
    yield frames.dates[:days].astype("<i8").tobytes()
    for values in frames.fields.values():
        yield memoryview(np.ascontiguousarray(values[:days], dtype="<f8").tobytes())


def read_answer(read: ReadBytes, job: Job, limits: Limits, clean: Callable[[bytes], str]) -> Outcome:
    """Read an answer; one of another form, or not of the panel's shape, is an error of the factor."""
    head, length, cpu_ms, peak_mb = _ANSWER_FORMAT.unpack(read(_ANSWER_FORMAT.size))
    costs = 0.0, _finite_or_zero(cpu_ms), _finite_or_zero(peak_mb)
    status = head[2:]
    if head[:2] != READY[:2] or length > _MAX_WORDS_BYTES or (status != _GOOD and status not in _ERROR_KINDS):
        return Outcome(None, BadResult("the answer has no known form", field="factor"), *costs)
    words = clean(read(length))
    if status != _GOOD:
        return Outcome(None, _build_error(status, words, limits), *costs)
    days, names = job.shape
    values = np.frombuffer(read(8 * days * names), dtype="<f8").astype(np.float64).reshape(days, names)
    values[np.isnan(values)] = np.nan  # one bit pattern for NaN
    error = check_values(values, job.shape)
    return Outcome(None if error else values, error, *costs)


def _pack_json(content: dict[str, Any]) -> bytes:
    text = json.dumps(content).encode()
    return _LENGTH_FORMAT.pack(len(text)) + text


def _finite_or_zero(figure: float) -> float:
    """Return a figure that the process reports of itself, 0 where it is not a valid number; it decides nothing."""
    return figure if math.isfinite(figure) and figure >= 0 else 0.0


def _build_error(status: bytes, words: str, limits: Limits) -> SandboxError:
    kind, field = _ERROR_KINDS[status]
    if kind is OutOfMemory:
        return OutOfMemory("the call used too much memory", field=field, allowed=f"{limits.memory_mb} MiB")
    return kind(words, field=field)
