"""One fresh interpreter behind a wall: started, asked once, ended; and the backend that starts one for every call."""

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
"""What must have the same version behind the wall, since the bytes hang on it."""
READY = b"alph"
_LENGTH_FORMAT, _ANSWER_FORMAT, _MAX_WORDS_BYTES = struct.Struct("<I"), struct.Struct("<4s2xHdd"), 2000
_GOOD = b"G."
_ERROR_KINDS: dict[bytes, tuple[type[SandboxError], str]] = {
    b"C.": (Crashed, "code"),
    b"M.": (OutOfMemory, "memory_mb"),
    b"W.": (BadResult, "factor"),
}
ReadBytes = Callable[[int], bytes]
"""Gives exactly so many bytes, or raises."""


class Guests:
    """A backend: every call gets an interpreter of its own behind a wall, which starts in about a second."""

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self.name, self.stamp = wall.name, wall.stamp

    def check(self) -> None:
        """Start one interpreter and end it.

        Raises
        ------
        SandboxUnavailable
            The tool is missing, does not start an interpreter, or shows one other versions of numpy or pandas.
        """
        self._wall.check()
        with _Guest(self._wall):
            pass

    def start(self) -> Self:
        """Return itself: a worker keeps nothing from call to call."""
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
        """Do nothing: an interpreter ends with its call, within the limits of that."""

    def close(self) -> None:
        """Do nothing: every interpreter has ended with its call."""


class _Ended(Exception):
    """There is no more to read, or no more time to read it in."""


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
        """Start it and wait until it stands."""
        launch = self._launch
        try:
            self._process = subprocess.Popen(
                launch.command, env=launch.environment, cwd=os.sep, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                stderr=subprocess.PIPE, start_new_session=os.name == "posix", pass_fds=launch.descriptors,
            )  # fmt: skip
        finally:
            for descriptor in launch.descriptors:
                os.close(descriptor)
        self._listener.start()
        try:
            with self._within(_GUEST_START_S):
                self._greet()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it, whatever it does."""
        self._end()

    def ask(self, job: Job, limits: Limits) -> Outcome:
        """Send the job and read the answer, for as long as the limits say."""
        started = time.monotonic()
        try:
            with self._within(limits.wall_s):
                for piece in pack_job(job, limits):
                    self._write(piece)
                outcome = read_answer(self._read, job, limits, clean)
        except (OSError, _Ended):
            outcome = self._no_answer(limits)
        return replace(outcome, wall_ms=1000 * (time.monotonic() - started))

    @contextlib.contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """End the process when the time is over, so that nobody waits for it."""
        self._deadline = time.monotonic() + seconds
        watch = threading.Timer(seconds, self._kill)
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def _no_answer(self, limits: Limits) -> Outcome:
        if time.monotonic() >= self._deadline:
            error: SandboxError = TimedOut(
                "the call took too long", field="wall_s", got=f"{limits.wall_s:g} s and more",
                allowed=f"{limits.wall_s:g} s", hint="Vectorise loops over days or names.",
            )  # fmt: skip
        else:
            error = Crashed("the process ended and gave no answer", field="code", got="no answer")
        return Outcome(None, error, 0.0, 0.0, 0.0)

    def _greet(self) -> None:
        """Send what the program needs, and see that it stands with the versions that are used here."""
        try:
            self._write(pack_greeting(self._launch.paths))
            theirs = read_versions(self._read)
        except (OSError, ValueError, _Ended):
            raise SandboxUnavailable(
                f"{self._wall.name} starts no interpreter: {self._complaint()}", field=self._wall.name,
                hint=self._wall.hint,
            ) from None  # fmt: skip
        for name in _CHECKED_PACKAGES:
            here = importlib.metadata.version(name)
            if theirs.get(name) != here:
                raise SandboxUnavailable(
                    f"behind {self._wall.name} there is another {name}, and values would differ", field=name,
                    got=str(theirs.get(name))[:40], allowed=here, hint=self._wall.hint,
                )  # fmt: skip

    def _complaint(self) -> str:
        """Return the last line that the tool said."""
        self._kill()
        assert self._process.stderr is not None
        with contextlib.suppress(OSError):
            said = clean(self._process.stderr.read(8192).strip().rpartition(b"\n")[2])
            return said or "it ended without a word"
        return "it ended without a word"

    def _write(self, piece: bytes | memoryview) -> None:
        assert self._process.stdin is not None
        view = memoryview(piece)
        while view:
            view = view[self._process.stdin.write(view) :]

    def _read(self, count: int) -> bytes:
        """Return exactly so many bytes."""
        held = [self._unread]
        while sum(map(len, held)) < count:
            try:
                piece = self._pieces.get(timeout=max(0.0, self._deadline - time.monotonic()))
            except queue.Empty:
                raise _Ended from None
            if not piece:
                raise _Ended
            held.append(piece)
        whole = b"".join(held)
        self._unread = whole[count:]
        return whole[:count]

    def _listen(self) -> None:
        """Pass on what the program writes; nothing at all means that it has ended."""
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
        """End the process and what it was started with; a listener that somebody else keeps waiting is left alone."""
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
    """Return what the program is told before anything else."""
    return _pack_json({"modules": collect_modules(), "paths": list(paths)})


def read_versions(read: ReadBytes) -> dict[str, Any]:
    """Read what an interpreter that stands has installed."""
    word, (length,) = read(len(READY)), _LENGTH_FORMAT.unpack(read(_LENGTH_FORMAT.size))
    if word != READY or length > _MAX_WORDS_BYTES:
        raise ValueError("it does not speak as it should")
    told: dict[str, Any] = json.loads(read(length))
    return told


def pack_job(job: Job, limits: Limits) -> Iterator[bytes | memoryview]:
    """Yield a job, piece by piece; days behind `job.rows` are never sent."""
    days, _ = job.shape
    frames = job.frames
    yield _pack_json({
        "code": job.code, "days": days, "symbols": list(frames.symbols), "fields": list(frames.names),
        "memory_mb": limits.memory_mb, "wall_s": limits.wall_s,
    })  # fmt: skip
    yield frames.dates[:days].astype("<i8").tobytes()
    for values in frames.fields.values():
        yield memoryview(np.ascontiguousarray(values[:days], dtype="<f8").tobytes())


def read_answer(read: ReadBytes, job: Job, limits: Limits, clean: Callable[[bytes], str]) -> Outcome:
    """Read an answer; what is not of its form, or not of the panel's shape, is an error of the factor."""
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
    values[np.isnan(values)] = np.nan  # one bit pattern
    error = check_values(values, job.shape)
    return Outcome(None if error else values, error, *costs)


def _pack_json(content: dict[str, Any]) -> bytes:
    text = json.dumps(content).encode()
    return _LENGTH_FORMAT.pack(len(text)) + text


def _finite_or_zero(figure: float) -> float:
    """Return a figure that the process told of itself; it decides nothing, so it need only be a number."""
    return figure if math.isfinite(figure) and figure >= 0 else 0.0


def _build_error(status: bytes, words: str, limits: Limits) -> SandboxError:
    kind, field = _ERROR_KINDS[status]
    if kind is OutOfMemory:
        return OutOfMemory("the call used too much memory", field=field, allowed=f"{limits.memory_mb} MiB")
    return kind(words, field=field)
