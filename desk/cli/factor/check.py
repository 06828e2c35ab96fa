"""The command that runs a Python factor contained, and says whether it is deterministic and sees the future."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...figures import duration
from ..console import print_object, stderr_console, stdout_console
from ..errors import NoFormula
from ..machine import cores
from ..options import AsJson, AsOf, PanelFile, SandboxBackend, SectorsFile
from .check_output import FactorCheck

if TYPE_CHECKING:
    from ....market import Panel
    from ....sandbox import Frames

__all__ = ["check", "frames_of"]

MAX_FACTOR_BYTES = 1_000_000
SWEEP_NOTICE_SECONDS = 5.0
MAX_CHECK_WORKERS = 8


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Python that defines factor(panel); - is stdin.")],
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Compute every day apart, without a later one: minutes on a large panel.")
    ] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=0.001, help="Wall clock of one call.")] = 10.0,
    memory: Annotated[
        int, typer.Option("--memory", min=16, metavar="MIB", help="Memory of one call beside the panel.")
    ] = 1024,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Of the days that are tried; without it one is drawn, and told.")
    ] = None,
    sandbox_backend: SandboxBackend = None,
    as_json: AsJson = False,
) -> None:
    """Run a Python factor contained, and say what it tried, what it took, and whether it sees the future.

    Without a panel a synthetic market of 500 days and 60 names is used.
    """
    code = _read(file)
    from ....evidence.values import SandboxSettings
    from ....sandbox import Limits, Sandbox

    wall = SandboxSettings().given(backend=sandbox_backend).backend
    limits = Limits(wall_s=seconds, memory_mb=memory)
    shown = _panel(panel, sectors, as_of.date() if as_of else None)
    workers = min(cores(), MAX_CHECK_WORKERS)
    with Sandbox(limits, workers=workers, backend=wall) as sandbox, _progress() as show:
        checked = check_code(sandbox, Path(file).name, code, frames_of(shown), sweep=sweep, seed=seed, show=show)
    checked = replace(checked, synthetic=panel is None)
    if as_json:
        print_object(checked.record())
    else:
        checked.print(stdout_console())
    if not checked.passed:
        raise typer.Exit(1)


def check_code(
    sandbox: Any,
    name: str,
    code: str,
    frames: Frames,
    *,
    sweep: bool,
    seed: int | None,
    show: Callable[[int, int], object],
) -> FactorCheck:
    """Read the code, run it, and try to prove it; what goes wrong with the code is in the answer.

    Raises
    ------
    SandboxUnavailable, Busy
        It could not be run; that says nothing about the code.
    """
    from ....factors.python import lint_code
    from ....sandbox import Busy, SandboxError, SandboxUnavailable, prove
    from ....sandbox.causality import CountingRunner

    meter, began, proof, error = CountingRunner(sandbox), monotonic(), None, None
    try:
        proof = prove(meter, code, frames, sweep, seed=seed, show=show)
    except (SandboxUnavailable, Busy):
        raise
    except SandboxError as refusal:
        error = refusal
    took, habits = monotonic() - began, _baseline_refusals(sandbox)
    return FactorCheck(
        name=name, frames=frames, remarks=lint_code(code, frames.names), proof=proof, error=error, cost=meter.cost,
        tried=tuple(call for call in meter.tried if call not in habits), seconds=took, stamp=sandbox.stamp, wall=sandbox.backend,
    )  # fmt: skip


def _baseline_refusals(sandbox: Any) -> tuple[str, ...]:
    """Return the refused system calls of a factor that does nothing: those are the interpreter's own."""
    import numpy as np

    from ....sandbox import Frames, Job

    frames = Frames({"close": np.ones((2, 1))}, np.array(["2000-01-03", "2000-01-04"], "datetime64[D]"), ("A",))
    [outcome] = sandbox.run_each([Job("def factor(panel):\n    return panel['close']\n", frames)])
    return tuple(outcome.tried)


def frames_of(panel: Panel) -> Frames:
    """Return a panel as a factor sees it: its columns, its groupings as codes (unknown is missing), and its universe as 0 and 1."""
    from ....evidence.values import coded_column
    from ....factors.python import UNIVERSE_COLUMN
    from ....sandbox import Frames

    names = (*panel.fields, *panel.groups, UNIVERSE_COLUMN)
    return Frames({name: coded_column(panel, name) for name in names}, panel.dates, panel.symbols)


def _read(file: str) -> str:
    from ....ledger.files import read_given_text

    if file == "-":
        return sys.stdin.read()
    path = Path(file)
    try:
        if path.stat().st_size > MAX_FACTOR_BYTES:
            raise NoFormula(f"{path} is too long for a factor", field="FILE", allowed=f"{MAX_FACTOR_BYTES:,} bytes")
        return read_given_text(path, "utf-8-sig")
    except UnicodeDecodeError:
        raise NoFormula(f"{path} is not text", field="FILE", hint="Give a file of Python source in UTF-8.") from None


def _panel(path: Path | None, sectors: Path | None, as_of: Any) -> Panel:
    from ....market import PanelSource, SyntheticConfig, read_panel, simulate

    if path is None:
        return simulate(SyntheticConfig(days=500, names=60)).panel
    return read_panel(PanelSource(path, sectors, as_of))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], object]]:
    """Give a function that tells on standard error how far a sweep is and how long it may take, every few seconds."""
    console, began, said = stderr_console(), [0.0], [monotonic()]

    def show(done: int, total: int) -> None:
        now = monotonic()
        began[0] = began[0] or now
        if now - said[0] >= SWEEP_NOTICE_SECONDS and now > began[0] + 1.0:
            said[0], left = now, (now - began[0]) / done * (total - done)
            console.print(
                f"swept {done:,} of {total:,} days, about {duration(left)} left", highlight=False, markup=False
            )

    yield show
