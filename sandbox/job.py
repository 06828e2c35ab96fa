"""One call of a factor, its outcome, and the limits of a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, SandboxError
from .jail.frames import Frames

_WALL_S, _MEMORY_MB = (0.001, 86_400.0), (16, 1 << 20)


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Python code to be called once in a fresh process.

    Attributes
    ----------
    code : str
        Source that defines `factor(panel)`.
    frames : Frames
        The panel.
    rows : int or None
        The process sees only the first `rows` days, 0 to T; no later day is in its memory. None: all.
    patience : int
        Factor on the seconds by the wall clock that it may take.
    apart : bool
        Its interpreter descends from another start than those of other jobs: its memory addresses, and the random
        numbers that the kernel and the libraries drew at the start, are different.

    Raises
    ------
    BadInput
        No panel, or more days than it has.
    """

    code: str
    frames: Frames
    rows: int | None = None
    patience: int = 1
    apart: bool = False

    def __post_init__(self) -> None:
        """Refuse days that the panel does not have: in the file the next field follows its last day."""
        if not isinstance(self.frames, Frames):
            raise BadInput("a job needs a panel", field="frames", got=type(self.frames).__name__, allowed="Frames")
        if self.rows is None:
            return
        days = self.frames.shape[0]
        is_integer = isinstance(self.rows, Integral) and not isinstance(self.rows, bool)
        if not is_integer or not 0 <= self.rows <= days:
            raise BadInput(
                "the panel has no such number of days",
                field="rows",
                got=repr(self.rows),
                allowed=f"a whole number from 0 to {days}, or None for all",
                hint="Give as many days as there are.",
            )
        object.__setattr__(self, "rows", int(self.rows))

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape that the answer must have."""
        days, names = self.frames.shape
        return (days if self.rows is None else self.rows), names


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The result of a job: values or an error, never both.

    Attributes
    ----------
    values : NDArray[np.float64] or None
        `[rows, N]`, NaN where the factor has no value; never infinite.
    error : SandboxError or None
        Why there are no values.
    wall_ms, cpu_ms : float
        Milliseconds by the wall clock from sending to answer, and of the process by its own CPU clock.
    peak_mb : float
        Largest resident memory of the process, MiB.
    tried : tuple of str
        System calls that the kernel refused, in the order of the first try.
    stamp : str
        The warning that must stay with the values wherever they are stored; empty behind a boundary.
    """

    values: NDArray[np.float64] | None
    error: SandboxError | None
    wall_ms: float
    cpu_ms: float
    peak_mb: float
    tried: tuple[str, ...] = ()
    stamp: str = ""

    def unwrap(self) -> NDArray[np.float64]:
        """Return the values, or raise the error."""
        if self.values is None:
            raise self.error or SandboxError("the call gave neither values nor an error")
        return self.values


class Runner(Protocol):
    """A runner of jobs: the pool of this machine, a cluster, another backend."""

    @property
    def stamp(self) -> str:
        """Return the warning that stays with every value computed here; empty behind a boundary."""
        ...

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job in a fresh process; answers come in the order of the jobs, errors are answers too."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that one call may use; a call that exceeds them is ended.

    Attributes
    ----------
    wall_s : float
        Seconds by the wall clock, from the fork to the answer; 0.001 to 86,400, which is a day.
    memory_mb : int
        MiB of address space that the call may use besides the panel; 16 to 1,048,576, which is one TiB.

    Raises
    ------
    BadInput
        A limit that is not a number, or out of range.
    """

    wall_s: float = 10.0
    memory_mb: int = 1024

    def __post_init__(self) -> None:
        """Refuse limits under which nothing could run, and those that the kernel cannot enforce."""
        _check_bounds("wall_s", self.wall_s, Real, "a number of seconds", _WALL_S)
        _check_bounds("memory_mb", self.memory_mb, Integral, "a whole number of MiB", _MEMORY_MB)
        object.__setattr__(self, "wall_s", float(self.wall_s))
        object.__setattr__(self, "memory_mb", int(self.memory_mb))

    def extend(self, patience: int) -> Limits:
        """Return the limits with `patience` times the seconds, at most the largest `wall_s` allowed."""
        return self if patience == 1 else replace(self, wall_s=min(self.wall_s * patience, _WALL_S[1]))


def _check_bounds(name: str, value: object, kind: type, words: str, bounds: tuple[float, float]) -> None:
    least, most = bounds
    number = isinstance(value, kind) and not isinstance(value, bool)
    if not number or not least <= value <= most:  # type: ignore[operator]  # NaN fails, too
        raise BadInput(
            f"{name} is not a limit that can be kept",
            field=name,
            got=repr(value),
            allowed=f"{words} from {least:g} to {most:,}",
            hint=f"Give {name} a value between them.",
        )
