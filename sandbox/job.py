"""One call of a factor, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, SandboxError
from .jail.frames import Frames

__all__ = ["Job", "Outcome", "Runner"]


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
        The process sees only the first `rows` days, 0 to T, and nothing behind them lies in its memory; None: all.
    patience : int
        How many times the usual seconds by the wall clock it may take.
    apart : bool
        Its interpreter descends from another start than those of other jobs: it lies at other addresses, and what the kernel
        and the libraries drew by chance as it started is not the same.

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
        """Refuse days that the panel does not have: behind its last day lies the next field."""
        if not isinstance(self.frames, Frames):
            raise BadInput("a job needs a panel", field="frames", got=type(self.frames).__name__, allowed="Frames")
        if self.rows is None:
            return
        days = self.frames.shape[0]
        whole = isinstance(self.rows, Integral) and not isinstance(self.rows, bool)
        if not whole or not 0 <= self.rows <= days:
            raise BadInput(
                "the panel has no such number of days", field="rows", got=repr(self.rows),
                allowed=f"a whole number from 0 to {days}, or None for all", hint="Give as many days as there are.",
            )  # fmt: skip
        object.__setattr__(self, "rows", int(self.rows))

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape that the answer must have."""
        days, names = self.frames.shape
        return (days if self.rows is None else self.rows), names


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What came of a job: values or an error, never both.

    Attributes
    ----------
    values : NDArray[np.float64] or None
        `[rows, N]`, NaN where the factor has no value; never infinite.
    error : SandboxError or None
        Why there are none.
    wall_ms, cpu_ms : float
        Milliseconds by the wall clock from sending to answer, and of the process by its own CPU clock.
    peak_mb : float
        Largest resident memory of the process, MiB.
    tried : tuple of str
        System calls that the kernel refused, in the order of the first try.
    stamp : str
        What must stand beside the values wherever they are kept: empty behind a boundary, a warning without one.
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
    """Whatever runs jobs: the pool of this machine, a cluster, another backend."""

    @property
    def stamp(self) -> str:
        """Return what is written beside every value computed here: empty, unless there was no boundary."""
        ...

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job in a fresh process; answers come in the order of the jobs, errors are answers too."""
        ...
