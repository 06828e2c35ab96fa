"""Long work of one caller: started by one call, polled by others, with a limit on concurrent jobs."""

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

JOBS_AT_ONCE = 2
"""Jobs of one caller that run at once; others wait."""
MAX_JOBS_UNDER_WAY = 8
"""Maximum jobs of one caller that wait or run; further ones are refused."""
MAX_ENDED_JOBS = 64
"""Number of ended jobs, the newest, whose result is kept."""
WAITING_STATUS, RUNNING_STATUS = "waiting", "running"
JOB_POLL_S = 0.05
"""Poll interval of a call that waits for a job."""
Advance = Callable[[int], None]
"""Called with the number of completed steps."""
LOG = logging.getLogger(__name__)


@dataclass
class LongJob:
    """One job: its id, kind, progress and future result."""

    id: str
    what: str
    future: Future[Any] = field(default_factory=Future)
    steps: int = 0
    closing: Event = field(default_factory=Event)

    def advance(self, steps: int) -> None:
        """Note the completed steps; raise `ServersEnd` to stop the work when the servers end."""
        self.steps = steps
        if self.closing.is_set():
            raise ServersEnd("The servers end.", field="job", got=self.id)

    @property
    def failed(self) -> bool:
        """Whether it ended without a result."""
        return self.future.done() and (self.future.cancelled() or self.future.exception() is not None)

    def record(self) -> dict[str, Any]:
        """Return the status, with the result or the error."""
        record: dict[str, Any] = {"job": self.id, "what": self.what}
        if not self.future.done():
            return record | {
                "status": RUNNING_STATUS if self.future.running() else WAITING_STATUS,
                "steps_done": self.steps,
            }
        if self.future.cancelled():
            return record | {"status": "cancelled"}
        if (error := self.future.exception()) is None:
            return record | {"status": "done", "result": self.future.result()}
        if isinstance(error, AlphaloomError):
            return record | {"status": "failed", "error": describe_refusal(error)}
        LOG.error("%s failed", self.what, exc_info=error)
        failure = {"code": "failed", "message": "It failed, by no fault of yours.", "hint": "Ask who runs the server."}
        return record | {"status": "failed", "error": failure}


class Jobs:
    """Runs the long work of one caller on its own threads; the same work requested again is the same job."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, LongJob] = OrderedDict()
        self._turn, self._closing = Lock(), Event()
        self._threads: ThreadPoolExecutor | None = None

    def begin(
        self, kind: str, about: Mapping[str, Any], work: Callable[[Advance], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Start a job, or find the running one, and return its status. The work may report its steps.

        Raises
        ------
        McpServerError
            Too many of this caller's jobs wait or run already.
        """
        name = "j" + compute_digest([kind, dict(about)])[:16]
        with self._turn:
            if name not in self._jobs or self._jobs[name].failed:
                under_way = sum(not job.future.done() for job in self._jobs.values())
                if under_way >= MAX_JOBS_UNDER_WAY:
                    raise McpServerError(
                        "Too many of your jobs are under way.",
                        field="job",
                        got=under_way,
                        allowed=MAX_JOBS_UNDER_WAY,
                        hint="Wait until get_job says that one is done.",
                        code="too_many_jobs",
                        exit_code=1,
                    )
                self._threads = self._threads or ThreadPoolExecutor(JOBS_AT_ONCE, thread_name_prefix="jobs")
                job = LongJob(name, kind, closing=self._closing)
                job.future = self._threads.submit(work, job.advance)
                self._jobs[name] = job
                self._forget()
            return self._jobs[name].record()

    def get(self, name: str) -> dict[str, Any]:
        """Return the status of a job.

        Raises
        ------
        McpServerError
            This caller has no such job.
        """
        with self._turn:
            job = self._jobs.get(name)
            names = list(self._jobs)
        if job is None:
            raise McpServerError(
                "You have no such job.",
                field="job",
                got=name[:80],
                allowed=names[-8:],
                hint="stress_factor and measure_decay begin jobs; they end with the server.",
                code="unknown_job",
            )
        return job.record()

    async def wait_for(self, name: str, wait_s: float) -> dict[str, Any]:
        """Return the status of a job as soon as it is done, at the latest after `wait_s` seconds; no thread waits."""
        record = self.get(name)
        with anyio.move_on_after(wait_s):
            while record["status"] in (WAITING_STATUS, RUNNING_STATUS):
                await anyio.sleep(JOB_POLL_S)
                record = self.get(name)
        return record

    def close(self, wait_s: float | None = None) -> bool:
        """Take no more work, cancel waiting jobs, and end running ones at their next step.

        Returns whether all jobs ended, within `wait_s` seconds if given.
        """
        self._closing.set()
        if self._threads is not None:
            self._threads.shutdown(wait=wait_s is None, cancel_futures=True)
        return not wait([job.future for job in self._jobs.values()], wait_s).not_done

    def _forget(self) -> None:
        """Drop the oldest ended jobs beyond `MAX_ENDED_JOBS`."""
        ended = [name for name, job in self._jobs.items() if job.future.done()]
        for name in ended[: max(len(ended) - MAX_ENDED_JOBS, 0)]:
            del self._jobs[name]
