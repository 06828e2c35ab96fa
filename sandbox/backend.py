"""What can run a job: the small protocol behind which every backend stands.

A backend is chosen by name (`Sandbox(backend="native")`) and never silently: where it cannot contain code on this
machine, `check` raises `SandboxUnavailable` and nothing runs. A pool asks a backend to `start` as many workers as it
was told; a worker runs one job at a time, each in a fresh process, and is used by one thread at a time.

    class Mine:                                     a backend
        name, stamp = "mine", ""
        def check(self) -> None: ...                raises SandboxUnavailable(field=what is missing, hint=what to do)
        def start(self) -> Worker: ...              may be called again when a worker has broken
        def close(self) -> None: ...                ends all that it started

    class MineWorker:                               a worker
        def call(self, job, limits) -> Outcome: ... errors of the code are in the outcome, never raised
        def stop(self) -> None: ...                 from another thread: nobody waits for the call under way any more
        def close(self) -> None: ...

`call` raises `WorkerBroken` when the worker itself (not the code) has failed: the pool closes it, starts another and runs the
job once more. Whatever comes back from behind the boundary must be checked with `check_values` before it becomes an outcome.
`child.read_panel`, `child.compute` and `child.write_answer` are the part that runs inside, for backends that bring
their own wall.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import BadResult, SandboxError
from .job import Job, Limits, Outcome

ENVIRONMENT = {
    "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TZ": "UTC",
}  # fmt: skip
"""All that an interpreter which runs factors finds in its environment; it is emptied before the code runs."""


class WorkerBroken(Exception):
    """A worker has failed, not the code that it ran; start another."""


class Worker(Protocol):
    """Something that runs one job at a time, each in a fresh process behind a wall."""

    def call(self, job: Job, limits: Limits) -> Outcome:
        """Run a job; what goes wrong with the code is in the outcome."""
        ...

    def stop(self) -> None:
        """End the call that is under way in another thread, where that can be done; the worker is of no use after it."""
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
        """Raise SandboxUnavailable where this machine lacks what the wall is made of."""
        ...

    def start(self) -> Worker:
        """Start a worker."""
        ...

    def close(self) -> None:
        """End all that was started."""
        ...


def check_values(values: NDArray[np.float64], shape: tuple[int, int]) -> SandboxError | None:
    """Say what is wrong with values that came from behind a wall; None when they may be used."""
    if values.shape != shape or values.dtype != np.float64:
        return BadResult("the answer has another shape than the panel", field="factor", got=str(values.shape),
                         allowed=str(shape))  # fmt: skip
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        row, column = (int(i) for i in infinite[0])
        return BadResult(
            f"the answer holds {len(infinite)} infinite values, the first in row {row}, column {column}",
            field="factor", got="inf", allowed="finite numbers and NaN",
            hint="Divide where the divisor is not zero: x / y.where(y != 0).",
        )  # fmt: skip
    return None
