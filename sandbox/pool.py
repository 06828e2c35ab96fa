"""Warm workers for many calls: a bounded queue, one thread a worker, answers in order."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from .backend import Backend, Worker, WorkerBroken
from .errors import BadInput, Busy, SandboxError, SandboxUnavailable
from .job import Job, Limits, Outcome

_MAX_CALLS_WAITING = 64
"""Calls that may wait for a worker; one more is refused."""
_TRIES = 2


class _Batch:
    """Calls that are cancelled together."""

    def __init__(self) -> None:
        self._changing, self._over = threading.Lock(), False
        self._working: list[Worker] = []

    @contextmanager
    def track(self, worker: Worker) -> Iterator[None]:
        """Register a worker during its call; refused once the batch was given up."""
        with self._changing:
            if self._over:
                raise SandboxError("the calls were given up", field="sandbox", hint="Ask again.")
            self._working.append(worker)
        try:
            yield
        finally:
            with self._changing:
                self._working.remove(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """After an error or an interrupt, end the calls under way, and refuse any further one."""
        if error is None:
            return
        with self._changing:
            self._over = True
            for worker in self._working:
                worker.stop()


@dataclass(slots=True)
class _Slot:
    """A place in the pool: its worker, or none until one is started there."""

    worker: Worker | None

    def clear(self) -> None:
        if self.worker is not None:
            self.worker.close()
        self.worker = None


class WorkerPool:
    """Workers of one backend, started when they are first needed and replaced when they break.

    Attributes
    ----------
    free : int
        Further calls that would be accepted now, to run or to wait in the queue.
    """

    def __init__(self, backend: Backend, limits: Limits, workers: int, *, waiting: int = _MAX_CALLS_WAITING) -> None:
        if workers < 1:
            raise BadInput("a pool needs a worker", field="workers", got=workers, allowed="1 or more")
        backend.check()
        self.name, self.stamp = backend.name, backend.stamp
        self._backend, self._limits, self._workers = backend, limits, workers
        self._idle: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        for _ in range(workers):
            self._idle.put(None)
        self._most = self.free = workers + waiting
        self._count = threading.Lock()
        self._starting = threading.RLock()  # reentrant: the garbage collector may close the pool in this very thread
        self._returning = threading.RLock()
        self._closed, self._owner = False, os.getpid()

    def run(self, job: Job) -> Outcome:
        """Run one job; wait for a worker when all are busy."""
        self._enter(1)
        try:
            return self._run(job)
        finally:
            self._enter(-1)

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job; up to two for each worker are under way ahead of the next answer.

        A caller that leaves early, also by an interrupt, does not wait for them: they are given up.
        """
        if self._workers == 1:
            yield from map(self._run, jobs)
            return
        under_way: deque[Future[Outcome]] = deque()
        batch = _Batch()
        with ThreadPoolExecutor(self._workers, "sandbox") as threads, batch:
            for job in jobs:
                under_way.append(threads.submit(self._run, job, batch))
                if len(under_way) >= 2 * self._workers:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()

    def close(self) -> None:
        """End all workers."""
        with self._returning:
            self._closed = True
            while not self._idle.empty():
                worker = self._idle.get()
                if worker is not None:
                    worker.close()
            for _ in range(self._workers):
                self._idle.put(None)  # wakes the waiting calls, which are then refused
        with self._starting:
            self._backend.close()

    def _enter(self, calls: int) -> None:
        """Count the calls that run or wait, and refuse one too many."""
        with self._count:
            if calls > self.free:
                raise Busy(
                    "too many calls wait for the sandbox",
                    field="workers",
                    got=self._most + 1,
                    allowed=f"{self._most} at once",
                    hint="Call again later, or give it more workers.",
                )
            self.free -= calls

    def _run(self, job: Job, batch: _Batch | None = None) -> Outcome:
        if self._closed:
            raise SandboxError("the sandbox is closed", field="sandbox", hint="Make a new one.")
        if os.getpid() != self._owner:
            raise SandboxError("a fork took this sandbox along", field="sandbox", hint="Make one after the fork.")
        broken = ""
        with self._borrow_slot() as slot:
            for _ in range(_TRIES):
                try:
                    return self._call(slot, job, batch or _Batch())
                except WorkerBroken as error:
                    broken = str(error)
        raise SandboxUnavailable(
            f"a call could not be started, twice over: {broken}", field="server", hint="Ask: alphaloom sandbox status"
        )

    @contextmanager
    def _borrow_slot(self) -> Iterator[_Slot]:
        slot = _Slot(self._idle.get())
        try:
            yield slot
        finally:
            with self._returning:
                if self._closed:  # closed while this call was under way
                    slot.clear()
                self._idle.put(slot.worker)

    def _call(self, slot: _Slot, job: Job, batch: _Batch) -> Outcome:
        try:
            slot.worker = slot.worker or self._start()
            with batch.track(slot.worker):
                return slot.worker.call(job, self._limits.extend(job.patience))
        except BaseException:  # after an interrupt, too, an answer may still be under way
            slot.clear()
            raise

    def _start(self) -> Worker:
        with self._starting:
            if self._closed:
                raise SandboxError("the sandbox was closed", field="sandbox", hint="Make a new one.")
            return self._backend.start()
