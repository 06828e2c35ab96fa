"""A process that answers requests: JSON objects, one a line, over a pair of pipes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..errors import ExecutionError

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Longest message: a session of 100,000 symbols fits."""
READ_BYTES: Final = 1 << 16
ANSWER_S: Final = 120.0
"""Seconds to wait for an answer; a process that takes longer is ended."""
END_S: Final = 5.0
"""Seconds in which a process must end once its pipe is closed."""
SHOWN_BYTES: Final = 2_000
"""Last bytes of standard error that an error shows."""


class LinePipe:
    """One end of a pair of pipes.

    Parameters
    ----------
    reads, writes
        File descriptors.
    """

    def __init__(self, reads: int, writes: int) -> None:
        self.reads, self._writes = reads, writes
        self._rest = b""

    def write(self, message: Mapping[str, Any]) -> None:
        """Write a message; `BrokenPipeError` where nobody reads, `ExecutionError` where it is too long."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(line) > MAX_MESSAGE_BYTES:
            raise ExecutionError(
                "A message between processes is too long.",
                field="message",
                got=f"{len(line):,} bytes",
                allowed=f"at most {MAX_MESSAGE_BYTES:,} bytes",
                code="message_too_long",
            )
        while line:
            line = line[os.write(self._writes, line) :]

    def read(self, timeout_s: float | None = None, watched: int | None = None) -> dict[str, Any] | None:
        """Return the next message; None where the other end is closed.

        Parameters
        ----------
        timeout_s
            Seconds to wait; None waits as long as it takes.
        watched
            A further descriptor: when it has something to read, or is closed, waiting ends with `InterruptedError`.

        Raises
        ------
        TimeoutError
            Nothing came in time.
        ExecutionError
            A line is longer than `MAX_MESSAGE_BYTES`, or no JSON object.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        parts = [self._rest]
        length = len(self._rest)
        while b"\n" not in parts[-1]:
            if length > MAX_MESSAGE_BYTES:
                raise malformed(f"more than {MAX_MESSAGE_BYTES:,} bytes")
            waited = [self.reads] if watched is None else [self.reads, watched]
            ready = select.select(waited, [], [], None if until is None else max(until - time.monotonic(), 0))[0]
            if not ready:
                raise TimeoutError
            if self.reads not in ready:
                raise InterruptedError
            part = os.read(self.reads, READ_BYTES)
            if not part:
                return None
            parts.append(part)
            length += len(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            raise malformed(repr(line[:80])) from None
        if not isinstance(message, dict):
            raise malformed(repr(line[:80]))
        return message


def malformed(got: str) -> ExecutionError:
    """Return the error for a line that is no message."""
    return ExecutionError(
        "A process answered with a malformed message.", got=got, allowed="a JSON object on one line", code="message"
    )


class PipedProcess:
    """A process that says hello, and then answers each request.

    It runs in a session of its own, so Ctrl-C reaches this process alone; it ends when its pipe is closed.

    Parameters
    ----------
    name
        What a person calls it, for errors.
    command
        Program and arguments.
    environment
        Its environment variables; nothing else is passed on.
    watched
        A descriptor that ends every wait when it is closed (`LinePipe.read`).
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], watched: int | None = None
    ) -> None:
        self._name, self._watched = name, watched
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        try:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise ExecutionError(
                f"{name} cannot be started: {error.strerror}.", got=command[0], code="not_started", exit_code=3
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipe = LinePipe(self._process.stdout.fileno(), self._process.stdin.fileno())
        try:
            self.hello = self._read()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises
        ------
        ExecutionError
            The answer is an error, or the process ended, or took longer than `ANSWER_S`.
        """
        try:
            self._pipe.write(request)
        except BrokenPipeError:
            raise self._explain_end() from None
        return self._read()

    def close(self) -> None:
        """End the process; a second time does nothing."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _read(self) -> dict[str, Any]:
        try:
            answer = self._pipe.read(ANSWER_S, self._watched)
        except TimeoutError:
            self._process.kill()
            raise ExecutionError(
                f"{self._name} did not answer within {ANSWER_S:g} s, and was ended.", code="no_answer", exit_code=1
            ) from None
        if answer is None:
            raise self._explain_end()
        if answer.get("type") == "error":
            raise ExecutionError(**answer["error"])
        return answer

    def _explain_end(self) -> ExecutionError:
        """Return the error that says how the process ended, with the last lines that it printed."""
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        self._errors.seek(0)
        printed = self._errors.read()[-SHOWN_BYTES:].decode(errors="replace").strip()
        last = "\n".join(line for line in printed.splitlines() if line.strip())
        return ExecutionError(
            f"{self._name} ended {how}; this process goes on, and sends nothing more to it.",
            got=last or None,
            hint="Open the venue again; its simulated positions are gone, those on record are not.",
            code="process_ended",
            exit_code=1,
        )
