"""The protocol of a backend, which isolates jobs, and of its workers.

A backend is chosen by name (`Sandbox(backend="native")`) and never replaced: where it cannot contain code on this
machine, `check` raises `SandboxUnavailable` and nothing runs. A pool calls `start` once for each of its workers; a
worker runs one job at a time, each in a fresh process, and is used by one thread at a time.

    class Mine:                                     a backend
        name, stamp = "mine", ""
        def check(self) -> None: ...                raises SandboxUnavailable(field=what is missing, hint=what to do)
        def start(self) -> Worker: ...              may be called again when a worker has broken
        def close(self) -> None: ...                ends all that it started

    class MineWorker:                               a worker
        def call(self, job, limits) -> Outcome: ... errors of the code are in the outcome, never raised
        def stop(self) -> None: ...                 from another thread: give up the call under way
        def close(self) -> None: ...

`call` raises `WorkerBroken` when the worker itself (not the code) has failed: the pool closes it, starts another and
runs the job once more. Values from behind the boundary must be checked with `check_values` before they become an
outcome. `child.read_panel`, `child.compute` and `child.write_answer` run inside, for backends with a wall of their own.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import BadResult, SandboxError
from .job import Job, Limits, Outcome

ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}
"""The whole environment of an interpreter that runs factors; it is emptied before the code runs."""


class WorkerBroken(Exception):
    """A worker has failed, not the code that it ran; start another."""


class Worker(Protocol):
    """A worker that runs one job at a time, each in a fresh process behind a wall."""

    def call(self, job: Job, limits: Limits) -> Outcome:
        """Run a job; errors of the code are in the outcome."""
        ...

    def stop(self) -> None:
        """End the call under way in another thread, where that is possible; the worker cannot be used afterwards."""
        ...

    def close(self) -> None:
        """End the worker and all that it started."""
        ...


class Backend(Protocol):
    """A wall, and how to start workers behind it."""

    name: str
    stamp: str
    """Empty behind a wall; without one, the warning that goes with every value."""

    def check(self) -> None:
        """Raise SandboxUnavailable where this machine lacks a primitive of the wall."""
        ...

    def start(self) -> Worker:
        """Start a worker."""
        ...

    def close(self) -> None:
        """End all that was started."""
        ...


def check_values(values: NDArray[np.float64], shape: tuple[int, int]) -> SandboxError | None:
    """Return the error in values from behind a wall (another shape, an infinity); None if they are usable."""
    if values.shape != shape or values.dtype != np.float64:
        return BadResult(
            "the answer has another shape than the panel", field="factor", got=str(values.shape), allowed=str(shape)
        )
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        row, column = (int(i) for i in infinite[0])
        return BadResult(
            f"the answer holds {len(infinite)} infinite values, the first in row {row}, column {column}",
            field="factor",
            got="inf",
            allowed="finite numbers and NaN",
            hint="Divide where the divisor is not zero: x / y.where(y != 0).",
        )
    return None
