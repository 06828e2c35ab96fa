"""The sandbox of a campaign: what a call may use, and a runner that starts with the first Python factor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Self, cast

from pydantic import BaseModel, ConfigDict, Field

from ..sandbox import Job, Limits, Outcome, Runner, Sandbox, SandboxError
from .errors import NeedsSandbox

__all__ = ["Jail", "SandboxSettings", "Start", "on_this_machine"]


class SandboxSettings(BaseModel):
    """What one call of a Python factor may use, and how many run at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wall_s: float = Field(default=10.0, gt=0, le=600, description="seconds by the wall clock")
    memory_mb: int = Field(default=1024, ge=64, le=65_536, description="MiB beside the panel")
    workers: int = Field(default=2, ge=1, le=64, description="calls at once")


Start = Callable[[SandboxSettings], AbstractContextManager[Runner]]
"""Makes a runner by what a call may use."""


@contextmanager
def on_this_machine(settings: SandboxSettings) -> Iterator[Runner]:
    """Open the sandbox of this machine."""
    with Sandbox(Limits(wall_s=settings.wall_s, memory_mb=settings.memory_mb), workers=settings.workers) as sandbox:
        yield cast("Runner", sandbox)


class Jail:
    """A runner that starts its sandbox when the first job comes: whoever has no Python factor needs none.

    Parameters
    ----------
    settings
        What a call may use.
    start
        Makes the runner, which lives until the jail is left; by default the sandbox of this machine.
    """

    def __init__(self, settings: SandboxSettings | None = None, start: Start | None = None) -> None:
        self._settings = settings or SandboxSettings()
        self._start = start or on_this_machine
        self._open = ExitStack()
        self._runner: Runner | None = None

    @property
    def stamp(self) -> str:
        """Return what must stand beside every value that was computed here; empty behind a boundary."""
        return str(getattr(self._runner, "stamp", ""))

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job in a fresh process; see `Runner`.

        Raises
        ------
        NeedsSandbox
            The sandbox cannot start here; nothing was run.
        """
        if self._runner is None:
            try:
                self._runner = self._open.enter_context(self._start(self._settings))
            except SandboxError as error:
                raise NeedsSandbox(error.message, field=error.field, hint=error.hint) from error
        return self._runner.run_each(jobs)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        self._open.close()
        self._runner = None
