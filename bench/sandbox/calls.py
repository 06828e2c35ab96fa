"""Many calls, good and bad ones, and what they leave: memory and descriptors of the caller, the server and its worker.

python -m bench.sandbox calls --count 10000

Of ten calls seven answer, one raises, one tries to open a socket and one gives an infinity; every hundredth has a new
panel, every five hundredth runs out of time. Exit code 1 if memory grew by more than 10 % between the first tenth and
the end, or a descriptor or a process more is there.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from alphaloom.sandbox import Frames, Job, Limits, Sandbox

GOOD = "def factor(panel):\n    return panel['close'].rolling(3).mean()\n"
BAD = (
    "def factor(panel):\n    raise ValueError('no')\n",
    "import socket\nsocket.socket()\n",
    "def factor(panel):\n    return panel['close'] / 0\n",
)
ENDLESS = "while True:\n    pass\n"
GROWTH = 1.10


@dataclass(frozen=True)
class Held:
    """What one process holds: MiB of memory of its own, and descriptors; None where only root may count them."""

    name: str
    memory_mb: float
    descriptors: int | None


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox calls", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    """Make the calls, and compare what is held after the first tenth with what is held at the end."""
    count = arguments(given).count
    failed = 0
    with Sandbox(Limits(wall_s=0.2, memory_mb=256)) as ours:
        frames = panel(0)
        begin: list[Held] = []
        for number in range(count):
            frames = panel(number) if number % 100 == 99 else frames
            (outcome,) = ours.run_each([job(number, frames)])
            failed += outcome.error is not None
            if number == count // 10:
                begin = held()
        end = held()
    print(f"{count} calls, {failed} of them with an error, as they should\n")
    print("\n".join(lines(begin, end)))
    return 0 if flat(begin, end) else 1


def job(number: int, frames: Frames) -> Job:
    """Return the call of a number; one that must run out of time gets little of it, others enough on a busy machine."""
    text = code(number)
    return Job(text, frames, patience=1 if text == ENDLESS else 100)


def code(number: int) -> str:
    """Return what the call of a number runs."""
    if number % 500 == 499:
        return ENDLESS
    return BAD[number % 10] if number % 10 < len(BAD) else GOOD


def panel(number: int) -> Frames:
    """Return a small panel that is like no other."""
    close = np.full((60, 10), 1.0 + number)
    return Frames({"close": close}, np.datetime64("2020-01-01") + np.arange(60), tuple("ABCDEFGHIJ"))


def held() -> list[Held]:
    """Return what this process and all that descend from it hold, by their place in the family."""
    gc.collect()
    found, waiting = [], [(os.getpid(), "caller")]
    while waiting:
        number, name = waiting.pop(0)
        found.append(Held(name, _private_mb(number), _descriptors(number)))
        tasks = Path(f"/proc/{number}/task").glob("*/children")
        children = [int(word) for task in tasks for word in task.read_text().split()]
        waiting += [
            (child, f"{name if name != 'caller' else 'server'}/{place}") for place, child in enumerate(children)
        ]
    return found


def _private_mb(number: int) -> float:
    """Return MiB that a process wrote and shares with no other; of a jailed one, without root, MiB in no file.

    Pages of library files do not count: they turn from shared to private when an unrelated Python ends.
    """
    try:
        rows = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
        return sum(int(row.split()[1]) for row in rows if row.startswith("Private_Dirty")) / 1024
    except PermissionError:
        resident, shared = map(int, Path(f"/proc/{number}/statm").read_text().split()[1:3])
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _descriptors(number: int) -> int | None:
    try:
        return len(os.listdir(f"/proc/{number}/fd"))
    except PermissionError:
        return None


def lines(begin: Sequence[Held], end: Sequence[Held]) -> list[str]:
    """Return the table."""
    text = [
        "| process | private MiB after a tenth | at the end | descriptors after a tenth | at the end |",
        "|---|---:|---:|---:|---:|",
    ]
    before = {process.name: process for process in begin}
    for each in end:
        one = before.get(each.name)
        first = (f"{one.memory_mb:.1f}", _written(one.descriptors)) if one else ("-", "-")
        text.append(f"| {each.name} | {first[0]} | {each.memory_mb:.1f} | {first[1]} | {_written(each.descriptors)} |")
    return text


def _written(descriptors: int | None) -> str:
    return "not allowed" if descriptors is None else str(descriptors)


def flat(begin: Sequence[Held], end: Sequence[Held]) -> bool:
    """Tell whether nothing grew."""
    before = {process.name: process for process in begin}
    return {process.name for process in end} == set(before) and all(
        process.memory_mb <= GROWTH * before[process.name].memory_mb + 1
        and (process.descriptors or 0) <= (before[process.name].descriptors or 0)
        for process in end
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
