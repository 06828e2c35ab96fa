"""The front of this room: code and a panel in, values or a typed error out."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .backend import Backend
from .causality.proof import prove
from .causality.proof_record import CausalProof
from .jail.frames import Frames
from .job import Job, Limits, Outcome
from .pool import WorkerPool


class Sandbox:
    """Run untrusted Python factors, each call in a fresh process that can only compute.

    Parameters
    ----------
    limits : Limits
        What each call may use.
    workers : int
        Calls that run at the same time.
    backend : str or Backend
        The wall: "native" (the kernel's own), "bubblewrap", "container" or "gvisor", each with its defaults, or a
        backend made by the caller. Never replaced by a weaker one.

    Raises
    ------
    SandboxUnavailable
        This machine lacks a primitive of the wall; `field` names it.
    """

    def __init__(self, limits: Limits | None = None, *, workers: int = 1, backend: str | Backend = "native") -> None:
        self.limits = limits or Limits()
        self._pool = WorkerPool(_choose_backend(backend), self.limits, workers)
        self._closing = weakref.finalize(self, self._pool.close)

    @property
    def stamp(self) -> str:
        """Return the warning that stays with every value computed here; empty behind a boundary."""
        return self._pool.stamp

    @property
    def backend(self) -> str:
        """Return the name of the wall."""
        return self._pool.name

    def run(self, code: str, frames: Frames, *, rows: int | None = None) -> NDArray[np.float64]:
        """Return the values of `factor(panel)`, `[T, N]` float64, NaN where there is none.

        Raises
        ------
        Refused, TimedOut, OutOfMemory, Crashed, BadResult, Busy, SandboxUnavailable
            Why there are no values.
        """
        return self._pool.run(Job(code, frames, rows)).unwrap()

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job in a fresh process; answers come in the order of the jobs, errors are answers too."""
        return self._pool.run_each(jobs)

    def prove(self, code: str, frames: Frames, sweep: bool = False, *, seed: int | None = None) -> CausalProof:
        """Show that code is deterministic and does not see the future on a panel; see `causality.prove`.

        Without a seed one is drawn now and recorded in the proof.

        Raises
        ------
        NotCausal, NotDeterministic
            It is not, with the day and the symbol.
        """
        return prove(self, code, frames, sweep, seed=seed)

    def close(self) -> None:
        """End the workers; this happens by itself when the sandbox is garbage-collected."""
        self._closing()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        self.close()


def _choose_backend(name: str | Backend) -> Backend:
    if not isinstance(name, str):
        return name
    from .backends import find_backend

    return find_backend(name)
