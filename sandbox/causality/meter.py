"""What the calls of a proof took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..job import Job, Outcome, Runner

__all__ = ["Cost", "CountingRunner"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What calls took: their number, CPU seconds of all, and of the dearest one wall milliseconds and resident MiB."""

    calls: int
    cpu_s: float
    wall_ms: float
    peak_mb: float

    def record(self) -> dict[str, Any]:
        """Return the cost as plain JSON."""
        return {
            "calls": self.calls, "cpu_s": round(self.cpu_s, 3), "wall_ms": round(self.wall_ms, 1),
            "peak_mb": round(self.peak_mb, 1),
        }  # fmt: skip


class CountingRunner:
    """A runner that counts what goes through another."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._seen: list[tuple[float, float, float]] = []
        self._tried: dict[str, None] = {}

    @property
    def stamp(self) -> str:
        """Return the other runner's stamp."""
        return self._runner.stamp

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job, and count what it took."""
        for outcome in self._runner.run_each(jobs):
            self._seen.append((outcome.cpu_ms, outcome.wall_ms, outcome.peak_mb))
            self._tried |= dict.fromkeys(outcome.tried)
            yield outcome

    def run(self, job: Job) -> Outcome:
        """Run one job."""
        [outcome] = self.run_each([job])
        return outcome

    @property
    def tried(self) -> tuple[str, ...]:
        """Return the system calls that the kernel refused to any call, in the order of their first appearance."""
        return tuple(self._tried)

    @property
    def cost(self) -> Cost:
        """Return what all calls took so far."""
        cpu, wall, peak = zip(*self._seen, strict=True) if self._seen else ((0.0,), (0.0,), (0.0,))
        return Cost(len(self._seen), sum(cpu) / 1000.0, max(wall), max(peak))
