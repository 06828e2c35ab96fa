"""Long work of one caller: begun by one call, asked for by others, and never more than a few at once."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

import anyio

from ..ledger import AlphaloomError, compute_digest
from .answers import describe_refusal
from .errors import McpServerError, ServersEnd

__all__ = ["Jobs"]

JOBS_AT_ONCE = 2
"""Jobs of one caller that run at once; others wait."""
MAX_JOBS_UNDER_WAY = 8
"""Jobs of one caller that may wait or run; a further one is refused."""
MAX_ENDED_JOBS = 64
"""Ended jobs of which the answer is kept, the newest."""
WAITING_STATUS, RUNNING_STATUS = "waiting", "running"
JOB_POLL_S = 0.05
"""How often a call that waits looks at its job."""
Advance = Callable[[int], None]
"""Told how many steps of the work are done."""
LOG = logging.getLogger(__name__)


@dataclass
class LongJob:
    """One piece of work: what it is, how far it is, and what will come of it."""

    id: str
    what: str
    future: Future[Any] = field(default_factory=Future)
    steps: int = 0
    closing: Event = field(default_factory=Event)

    def advance(self, steps: int) -> None:
        """Note how many steps of the work are done; end it there when no more is wanted."""
        self.steps = steps
        if self.closing.is_set():
            raise ServersEnd("The servers end.", field="job", got=self.id)

    @property
    def failed(self) -> bool:
        """Tell whether it ended with nothing to show."""
        return self.future.done() and (self.future.cancelled() or self.future.exception() is not None)

    def record(self) -> dict[str, Any]:
        """Return how it stands, with what came of it."""
        told: dict[str, Any] = {"job": self.id, "what": self.what}
        if not self.future.done():
            return told | {
                "status": RUNNING_STATUS if self.future.running() else WAITING_STATUS,
                "steps_done": self.steps,
            }
        if self.future.cancelled():
            return told | {"status": "cancelled"}
        if (error := self.future.exception()) is None:
            return told | {"status": "done", "result": self.future.result()}
        if isinstance(error, AlphaloomError):
            return told | {"status": "failed", "error": describe_refusal(error)}
        LOG.error("%s failed", self.what, exc_info=error)
        said = {"code": "failed", "message": "It failed, by no fault of yours.", "hint": "Ask who runs the server."}
        return told | {"status": "failed", "error": said}


class Jobs:
    """Runs the long work of one caller on threads of its own; the same work asked for again is the same job."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, LongJob] = OrderedDict()
        self._turn, self._closing = Lock(), Event()
        self._threads: ThreadPoolExecutor | None = None

    def begin(
        self, kind: str, about: Mapping[str, Any], work: Callable[[Advance], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Begin a piece of work, or find the one that was begun; return how it stands. The work may tell its steps.

        Raises
        ------
        McpServerError
            So many wait or run already.
        """
        name = "j" + compute_digest([kind, dict(about)])[:16]
        with self._turn:
            if name not in self._jobs or self._jobs[name].failed:
                under_way = sum(not job.future.done() for job in self._jobs.values())
                if under_way >= MAX_JOBS_UNDER_WAY:
                    raise McpServerError(
                        "Too many of your jobs are under way.", field="job", got=under_way, allowed=MAX_JOBS_UNDER_WAY,
                        hint="Wait until get_job says that one is done.", code="too_many_jobs", exit_code=1,
                    )  # fmt: skip
                self._threads = self._threads or ThreadPoolExecutor(JOBS_AT_ONCE, thread_name_prefix="jobs")
                job = LongJob(name, kind, closing=self._closing)
                job.future = self._threads.submit(work, job.advance)
                self._jobs[name] = job
                self._forget()
            return self._jobs[name].record()

    def get(self, name: str) -> dict[str, Any]:
        """Return how a job stands.

        Raises
        ------
        McpServerError
            This caller has no such job.
        """
        with self._turn:
            job = self._jobs.get(name)
            known = list(self._jobs)
        if job is None:
            raise McpServerError(
                "You have no such job.", field="job", got=name[:80], allowed=known[-8:],
                hint="stress_factor and measure_decay begin jobs; they end with the server.", code="unknown_job",
            )  # fmt: skip
        return job.record()

    async def wait_for(self, name: str, wait_s: float) -> dict[str, Any]:
        """Return how a job stands, at once when it is done, after `wait_s` seconds at the latest; no thread waits meanwhile."""
        told = self.get(name)
        with anyio.move_on_after(wait_s):
            while told["status"] in (WAITING_STATUS, RUNNING_STATUS):
                await anyio.sleep(JOB_POLL_S)
                told = self.get(name)
        return told

    def close(self, wait_s: float | None = None) -> bool:
        """Take no more work; what waits is cancelled, and what runs ends at its next step.

        Return whether all of it ended, within so many seconds if they are said.
        """
        self._closing.set()
        if self._threads is not None:
            self._threads.shutdown(wait=wait_s is None, cancel_futures=True)
        return not wait([job.future for job in self._jobs.values()], wait_s).not_done

    def _forget(self) -> None:
        """Drop the oldest ended jobs beyond those that are kept."""
        ended = [name for name, job in self._jobs.items() if job.future.done()]
        for name in ended[: max(len(ended) - MAX_ENDED_JOBS, 0)]:
            del self._jobs[name]
