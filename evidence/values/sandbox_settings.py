"""Settings of the sandbox, its start with the first Python factor, and the seed of the causality screens.

A cluster that runs Python factors scores formulas too (`LazySandbox.crew`).

The seed decides the days on which code is screened. It is drawn when the run begins, before any code is proposed, and
written to the ledger, so a resumed run screens as before. It does not depend on the campaign file or the run's id: an
author may know both, and choose code that behaves on the days that will be tested. A new run of the same file draws
another seed. Its results are byte-identical, unless code looks ahead on so few days that a screen may miss it. No
figure of a factor depends on the seed, only whether the factor passes a screen. The gate's sweep, which tests every
day, uses no seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...ledger import Ledger, read_settings
from ...sandbox import Job, Limits, Outcome, Runner, Sandbox, SandboxError
from ...sandbox.backends import UNSAFE, UNSAFE_STAMP
from ..errors import NeedsSandbox

if TYPE_CHECKING:
    from ...sandbox import Crew

SEED_EVENT_KIND, SEED_EVENT_KEY = "screening", "seed"


class SandboxSettings(BaseModel):
    """Where Python factors run, what one call may use, and how many run at once; on a cluster, formulas too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    executor: Literal["local", "ray"] = Field(
        default="local", description="this machine, or the workers of a Ray cluster, which then score formulas too"
    )
    address: str = Field(default="", description="of a Ray cluster that runs already; empty: one is started here")
    backend: Literal["native", "bubblewrap", "container", "gvisor", "unsafe_no_isolation_i_accept_the_risk"] = Field(
        default="native", description="what contains a call"
    )
    command: str = Field(default="", description="the tool of another backend, where it is not the usual one: podman")
    image: str = Field(default="", description="of a container")
    platform: str = Field(default="", description="of gVisor: systrap, ptrace or kvm")

    wall_s: float = Field(default=10.0, gt=0, le=600, description="seconds by the wall clock")
    memory_mb: int = Field(default=1024, ge=64, le=65_536, description="MiB beside the panel")
    workers: int = Field(default=2, ge=1, le=64, description="calls at once")

    @model_validator(mode="after")
    def _check_backend(self) -> Self:
        if self.executor == "ray" and self.backend != "native":
            raise ValueError("the workers of a cluster hold native sandboxes: leave the backend away")
        return self

    @property
    def stamp(self) -> str:
        """Return the warning that every value must carry; empty if the code is isolated."""
        return UNSAFE_STAMP if self.backend == UNSAFE else ""

    def given(self, executor: str | None = None, backend: str | None = None) -> SandboxSettings:
        """Return the settings with the options of a command line.

        Raises
        ------
        SettingsError
            There is no such executor or backend, or they do not go together.
        """
        options = {"executor": executor, "backend": backend}
        settings = self.model_dump() | {name: value for name, value in options.items() if value is not None}
        if settings == self.model_dump():
            return self
        return read_settings(None, SandboxSettings, [f"{name}={json.dumps(value)}" for name, value in settings.items()])

    @property
    def chosen(self) -> bool:
        """True if a person chose another sandbox than the native one of this machine."""
        return (self.executor, self.backend) != ("local", "native")


@contextmanager
def open_sandbox(settings: SandboxSettings) -> Iterator[Runner]:
    """Open the sandbox that the settings name: on this machine, with another isolation backend, or on a cluster."""
    with _make_sandbox(settings, Limits(wall_s=settings.wall_s, memory_mb=settings.memory_mb)) as sandbox:
        yield cast("Runner", sandbox)


def _make_sandbox(settings: SandboxSettings, limits: Limits) -> Sandbox:
    if settings.executor == "ray":
        from ...sandbox import Cluster

        return Cluster(limits, workers=settings.workers, address=settings.address or None)
    from ...sandbox.backends import find_backend

    backend = find_backend(settings.backend, command=settings.command, image=settings.image, platform=settings.platform)
    return Sandbox(limits, workers=settings.workers, backend=backend)


class LazySandbox:
    """A runner that starts its sandbox with the first job, since a run without Python factors needs none."""

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self._settings = settings or SandboxSettings()
        self._open = ExitStack()
        self._runner: Runner | None = None

    @property
    def stamp(self) -> str:
        """Return the warning that every value must carry; empty if the code is isolated."""
        return self._settings.stamp or str(getattr(self._runner, "stamp", ""))

    def ready(self, *, needed: bool = False) -> Self:
        """Start the sandbox now if it is needed or chosen by name, so that it fails before any work.

        Raises
        ------
        NeedsSandbox
            It cannot start here.
        """
        if needed or self._settings.chosen:
            self._start_once()
        return self

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Run each job in a fresh process; see `Runner`.

        Raises
        ------
        NeedsSandbox
            The sandbox cannot start here; no job was run.
        """
        return self._start_once().run_each(jobs)

    @property
    def has_cluster(self) -> bool:
        """True if the executor is a cluster, whose workers can score formulas too."""
        return self._settings.executor == "ray"

    def crew(self, build: Callable[[], Callable[[Any], Any]]) -> Crew:
        """Return the cluster's workers for batches; see `Cluster.crew`.

        Raises
        ------
        NeedsSandbox
            The cluster cannot start here.
        """
        return cast("Crew", cast("Any", self._start_once()).crew(build))

    def _start_once(self) -> Runner:
        if self._runner is None:
            try:
                self._runner = self._open.enter_context(open_sandbox(self._settings))
            except SandboxError as error:
                raise NeedsSandbox(
                    error.message, field=error.field, got=error.got, allowed=error.allowed, hint=error.hint
                ) from error
        return self._runner

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        self._open.close()
        self._runner = None


def note_screening_seed(ledger: Ledger, run: str, seed: int) -> None:
    """Write the seed of a new run into the ledger; authors of code never see it."""
    ledger.events.record(run, SEED_EVENT_KIND, SEED_EVENT_KEY, seed)


def read_screening_seed(ledger: Ledger, run: str) -> int | None:
    """Return the seed of a run's screens; None outside a campaign, where each screen draws its own."""
    event = ledger.events.get(run, SEED_EVENT_KIND, SEED_EVENT_KEY)
    return None if event is None else int(event.body)
