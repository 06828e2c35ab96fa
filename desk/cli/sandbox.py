"""The commands on the sandbox: what this machine can contain, and checks of a Python factor."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DeskError
from ..figures import count, duration, percent, plural
from .console import print_object, stderr_console, stdout_console
from .machine import cores
from .options import AsJson, AsOf, PanelFile, SandboxBackend, SectorsFile

if TYPE_CHECKING:
    from rich.console import Console

    from ...factors.python import Remark
    from ...market import Panel
    from ...sandbox import CausalProof, Frames, SandboxError, Status
    from ...sandbox.causality import Cost


EXIT_MISSING_WALL = 3
app = typer.Typer(no_args_is_help=True, help="Run generated Python, contained.")


@app.callback()
def _sandbox() -> None:
    """Run generated Python, contained."""


@app.command(short_help="Say which walls work on this machine.")
def status(as_json: AsJson = False) -> None:
    """Try each wall of the sandbox, then five ways out of a real jail; what is missing is named with what to do."""
    from ...sandbox import probe_sandbox

    capability = probe_sandbox()
    if as_json:
        print_object(capability.record())
    else:
        _print(capability)
    if not capability.available:
        raise typer.Exit(EXIT_MISSING_WALL)


def _print(capability: Status) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text("walls", style="bold"))
    walls = Table.grid(padding=(0, 2))
    for wall in capability.primitives:
        word, style = ("ok", "green") if wall.works else ("missing", "bold red") if wall.required else ("no", "yellow")
        walls.add_row(Text(f"  {wall.name}"), Text(word, style), Text(wall.found), Text(wall.stops))
    console.print(walls)
    if capability.escapes:
        console.print(Text("ways out, tried in a real jail", style="bold"))
        ways = Table.grid(padding=(0, 2))
        for way in capability.escapes:
            ways.add_row(
                Text(f"  {way.name}"),
                Text("held", "green") if way.contained else Text("OPEN", "bold red"),
                Text(way.found),
            )
        console.print(ways)
    able = "generated Python can be run here" if capability.available else f"nothing is run here: {capability.problem}"
    console.print(Text(able, style="bold green" if capability.available else "bold red"), soft_wrap=True)
    for hint in dict.fromkeys([wall.hint for wall in capability.primitives if wall.hint] + [capability.hint]):
        if hint:
            console.print(Text(f"  to do: {hint}"), soft_wrap=True)


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
    code = _read_source(file)
    from ...evidence.values import SandboxSettings
    from ...sandbox import Limits, Sandbox

    wall = SandboxSettings().given(backend=sandbox_backend).backend
    limits = Limits(wall_s=seconds, memory_mb=memory)
    prices = _read_panel(panel, sectors, as_of.date() if as_of else None)
    workers = min(cores(), MAX_CHECK_WORKERS)
    with Sandbox(limits, workers=workers, backend=wall) as sandbox, _show_progress() as show:
        checked = check_code(sandbox, Path(file).name, code, frames_of(prices), sweep=sweep, seed=seed, show=show)
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
    """Run the code and try to prove that it is causal; an error of the code is part of the answer.

    Raises
    ------
    SandboxUnavailable, Busy
        The code could not be run, which says nothing about it.
    """
    from ...factors.python import lint_code
    from ...sandbox import Busy, SandboxError, SandboxUnavailable, prove
    from ...sandbox.causality import CountingRunner

    meter, began, proof, error = CountingRunner(sandbox), monotonic(), None, None
    try:
        proof = prove(meter, code, frames, sweep, seed=seed, show=show)
    except (SandboxUnavailable, Busy):
        raise
    except SandboxError as refusal:
        error = refusal
    took, habits = monotonic() - began, _find_baseline_refusals(sandbox)
    return FactorCheck(
        name=name, frames=frames, remarks=lint_code(code, frames.names), proof=proof, error=error, cost=meter.cost,
        tried=tuple(call for call in meter.tried if call not in habits), seconds=took,
        stamp=sandbox.stamp, wall=sandbox.backend,
    )  # fmt: skip  # a table


def _find_baseline_refusals(sandbox: Any) -> tuple[str, ...]:
    """Return the refused system calls of a factor that does nothing: the interpreter's own."""
    import numpy as np

    from ...sandbox import Frames, Job

    frames = Frames({"close": np.ones((2, 1))}, np.array(["2000-01-03", "2000-01-04"], "datetime64[D]"), ("A",))
    [outcome] = sandbox.run_each([Job("def factor(panel):\n    return panel['close']\n", frames)])
    return tuple(outcome.tried)


def frames_of(panel: Panel) -> Frames:
    """Return a panel as factors see it: columns, groupings as codes (unknown: missing), and the universe as 0 and 1."""
    from ...evidence.values import coded_column
    from ...factors.python import UNIVERSE_COLUMN
    from ...sandbox import Frames

    names = (*panel.fields, *panel.groups, UNIVERSE_COLUMN)
    return Frames({name: coded_column(panel, name) for name in names}, panel.dates, panel.symbols)


def _read_source(file: str) -> str:
    from ...ledger.files import read_given_text

    if file == "-":
        return sys.stdin.read()
    path = Path(file)
    try:
        if path.stat().st_size > MAX_FACTOR_BYTES:
            raise DeskError(
                f"{path} is too long for a factor",
                field="FILE",
                allowed=f"{MAX_FACTOR_BYTES:,} bytes",
                code="no_formula",
            )
        return read_given_text(path, "utf-8-sig")
    except UnicodeDecodeError:
        raise DeskError(
            f"{path} is not text", field="FILE", hint="Give a file of Python source in UTF-8.", code="no_formula"
        ) from None


def _read_panel(path: Path | None, sectors: Path | None, as_of: Any) -> Panel:
    from ...market import PanelSource, SyntheticConfig, read_panel, simulate

    if path is None:
        return simulate(SyntheticConfig(days=500, names=60)).panel
    return read_panel(PanelSource(path, sectors, as_of))


@contextmanager
def _show_progress() -> Iterator[Callable[[int, int], object]]:
    """Yield a function that reports a sweep's progress and remaining time on standard error every few seconds."""
    console, began, reported = stderr_console(), [0.0], [monotonic()]

    def show(finished: int, total: int) -> None:
        now = monotonic()
        began[0] = began[0] or now
        if now - reported[0] >= SWEEP_NOTICE_SECONDS and now > began[0] + 1.0:
            reported[0], remaining = now, (now - began[0]) / finished * (total - finished)
            console.print(
                f"swept {finished:,} of {total:,} days, about {duration(remaining)} left", highlight=False, markup=False
            )

    yield show


Rows = list[tuple[str, str, str]]
GOOD_STYLE, BAD_STYLE, DIM_STYLE = "green", "bold red", "dim"


@dataclass(frozen=True, eq=False)
class FactorCheck:
    """A checked factor: a proof or an error, the cost of its calls, and the system calls that it tried."""

    name: str
    frames: Frames
    remarks: tuple[Remark, ...]
    proof: CausalProof | None
    error: SandboxError | None
    cost: Cost
    tried: tuple[str, ...]
    seconds: float
    stamp: str = ""
    wall: str = "native"
    synthetic: bool = False

    @property
    def passed(self) -> bool:
        """Whether it ran, is deterministic, and did not change with any later day that was tried."""
        return self.error is None

    @property
    def _code(self) -> str:
        return "" if self.error is None else self.error.code

    @property
    def ran(self) -> bool:
        """Whether it gave values on the whole panel."""
        return self._code in {"", "not_causal", "not_deterministic"}

    @property
    def deterministic(self) -> bool | None:
        """Whether two calls gave the same bits; None if that is unknown."""
        return None if not self.ran else self._code != "not_deterministic"

    @property
    def causal(self) -> bool | None:
        """Whether no value changed with later days; None if that is unknown."""
        return {"": True, "not_causal": False}.get(self._code)

    def record(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        days, names = self.frames.shape
        return {
            "file": self.name,
            "panel": {
                "days": days,
                "names": names,
                "first_day": str(self.frames.dates[0]),
                "last_day": str(self.frames.dates[-1]),
                "columns": list(self.frames.names),
                "synthetic": self.synthetic,
            },
            "backend": self.wall,
            "stamp": self.stamp,
            "passed": self.passed,
            "ran": self.ran,
            "deterministic": self.deterministic,
            "causal": self.causal,
            "unshown_days": self.proof.start_up if self.proof else 0,
            "swept": bool(self.proof and self.proof.point_in_time),
            "lint": [remark.record() for remark in self.remarks],
            "refused_system_calls": list(self.tried),
            "cost": self.cost.record(),
            "proof": self.proof.record() if self.proof else None,
            "error": self.error.record() if self.error else None,
        }

    def print(self, console: Console) -> None:
        """Print it for a person."""
        from rich.table import Table
        from rich.text import Text

        days, names = self.frames.shape
        market = "the SYNTHETIC market (for your own prices add --panel FILE), " if self.synthetic else ""
        span = f"{market}{days:,} days of {names:,} names, {self.frames.dates[0]} to {self.frames.dates[-1]}"
        console.print(Text.assemble((self.name, "bold"), f" on {span}"))
        table = Table.grid(padding=(0, 2))
        for word, text, style in self._list_rows():
            table.add_row(Text(f"  {word}", style=DIM_STYLE), Text(text, style=style))
        console.print(table)
        words = Table.grid(padding=(0, 1))
        for sentence in self.proof.words if self.proof else ():
            words.add_row("-", Text(sentence))
        console.print(words)

    def _list_rows(self) -> Rows:
        return [*self._list_remarks(), *self._list_costs(), *self._list_verdicts(), *self._list_advice()]

    def _list_remarks(self) -> Rows:
        remarks = [
            (f"line {remark.line}: " if remark.line else "") + f"{remark.message}. {remark.hint}"
            for remark in self.remarks
        ]
        style = "yellow" if remarks else ""
        return [
            ("first reading" if not place else "", text, style)
            for place, text in enumerate(remarks or ["nothing to say"])
        ]

    def _list_costs(self) -> Rows:
        attempts = f"the kernel refused {', '.join(self.tried)}" if self.tried else "it tried nothing that is forbidden"
        behind = (
            f"yes; {attempts}" if self.wall == "native" else f"yes, by {self.wall}, which does not tell what it tried"
        )
        isolation = f"NO: {self.stamp}" if self.stamp else behind
        one = f"at most {self.cost.wall_ms / 1000.0:.2f} s and {self.cost.peak_mb:.0f} MiB"
        share = "each " if self.cost.calls > 1 else ""
        took = f"{plural(self.cost.calls, 'call')}, {share}in a fresh process, in {duration(self.seconds)}"
        return [("contained", isolation, BAD_STYLE if self.stamp else ""), ("one call", one, ""), ("all", took, "")]

    def _list_verdicts(self) -> Rows:
        if not self.ran:
            return [
                (
                    "values",
                    f"none: {self._code.replace('_', ' ')}: {self.error.message if self.error else ''}",
                    BAD_STYLE,
                )
            ]
        values = [("values", self._describe_values(), "")] if self.proof else []
        steady = "yes, in two calls" if self.deterministic else f"no: {self.error.message if self.error else ''}"
        rows = [*values, ("deterministic", steady, GOOD_STYLE if self.deterministic else BAD_STYLE)]
        return [*rows, ("causal", *self._describe_causality())]

    def _describe_values(self) -> str:
        if self.proof is None:
            return ""
        share = percent(self.proof.record()["covered"])
        return f"from {self.proof.first} on, after {plural(self.proof.warm_up, 'day')} of warm-up; {share} of all cells"

    def _describe_causality(self) -> tuple[str, str]:
        if self.causal is None:
            return "not asked: first it must give the same values twice", DIM_STYLE
        if self.error is not None:
            return f"no: {self.error.message}", BAD_STYLE
        late, style = self._describe_unshown()
        if self.proof is not None and self.proof.point_in_time:
            return f"yes, on each of {count(self.proof.swept - self.proof.start_up)} days{late}", style
        return f"nothing was seen at a few days; --sweep asks every day{late}", style

    def _describe_unshown(self) -> tuple[str, str]:
        """Return a remark on the days that the code cannot compute by themselves, and its style."""
        days = 0 if self.proof is None else self.proof.start_up
        text = f"; not shown for the first {plural(days, 'day')}, on which it raises an error" if days else ""
        return text, "yellow" if days else GOOD_STYLE

    def _list_advice(self) -> Rows:
        return [("to do", self.error.hint, "")] if self.error is not None and self.error.hint else []
