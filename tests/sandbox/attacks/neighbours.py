"""Processes on the host: a sibling that counts the signals it gets, and whoever descends from the host."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["Crowd", "Sampler", "Sibling", "crowd"]

WAIT = """
import os, signal, sys
held = open(sys.argv[2])
for number in (1, 2, 3, 10, 12, 14, 15, 18, 23, 28, 29):
    signal.signal(number, lambda got, _: os.write(1, bytes([got])))
os.write(1, b"R")
while True:
    signal.pause()
"""


class Sibling:
    """A process beside the sandbox, with a secret in its arguments, its environment and its open file."""

    def __init__(self, secret: str, file: Path) -> None:
        command = [sys.executable, "-I", "-S", "-c", WAIT, secret, str(file)]
        self._process = subprocess.Popen(command, env={"SIBLING_KEY": secret}, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._told = self._process.stdout.fileno()
        if os.read(self._told, 1) != b"R":
            raise OSError("the sibling did not start")

    @property
    def number(self) -> int:
        """Return its process number."""
        return self._process.pid

    def noticed(self) -> list[str]:
        """Return the signals that it got since the last time, and whether it is gone."""
        found: list[str] = []
        while select.select([self._told], [], [], 0)[0]:
            text = os.read(self._told, 64)
            if not text:
                return [*found, "the sibling is gone"]
            found += [f"the sibling had signal {number}" for number in text]
        return found if self._process.poll() is None else [*found, "the sibling is gone"]

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class Crowd:
    """Those that descend from one process: their numbers, their threads, their resident memory in MiB."""

    numbers: frozenset[int]
    threads: int
    memory_mb: float


def crowd(root: int, without: int = -1) -> Crowd:
    """Count the descendants of a process, except one and its own."""
    numbers: set[int] = set()
    threads, pages = 0, 0
    waiting = _children(root)
    while waiting:
        number = waiting.pop()
        if number == without or number in numbers:
            continue
        try:
            tasks = len(os.listdir(f"/proc/{number}/task"))
            pages += int(Path(f"/proc/{number}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        numbers.add(number)
        threads += tasks
        waiting += _children(number)
    return Crowd(frozenset(numbers), threads, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


class Sampler:
    """Looks at the descendants again and again, and keeps the most that it saw."""

    def __init__(self, without: int, every_s: float = 0.03) -> None:
        self._without, self._every = without, every_s
        self.threads, self.memory_mb = 0, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(self._every):
            seen = crowd(os.getpid(), self._without)
            self.threads, self.memory_mb = max(self.threads, seen.threads), max(self.memory_mb, seen.memory_mb)

    def restart(self) -> None:
        """Forget what was seen."""
        self.threads, self.memory_mb = 0, 0.0

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        self._thread.join()


def settled(wanted: frozenset[int], without: int, patience_s: float = 5.0) -> frozenset[int]:
    """Return the descendants beyond those that are wanted, once they had time to go."""
    end = time.monotonic() + patience_s
    while (extra := crowd(os.getpid(), without).numbers - wanted) and time.monotonic() < end:
        time.sleep(0.01)
    return extra


def _children(number: int) -> list[int]:
    """Return the children of all threads of a process; a process may go while it is asked."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{number}/task"):
            found += map(int, Path(f"/proc/{number}/task/{thread}/children").read_text().split())
    except OSError:
        return found
    return found
