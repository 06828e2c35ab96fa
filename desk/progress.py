"""The progress of a campaign on standard error: one panel that updates on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from .console import notices
from .figures import duration, money, plural

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from ..evidence import Progress

__all__ = ["Show", "shown_progress"]

EVENTS = {"round": "hypotheses are being thought of", "scored": "a batch was scored", "gate": "the gate has judged"}
QUIET_SECONDS = 5.0  # between plain lines when nothing decisive happened

Show: TypeAlias = "Callable[[Progress], None]"


@contextmanager
def shown_progress() -> Iterator[Show]:
    """Give the function that shows progress, for as long as the campaign runs."""
    console = notices()
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainLines(console)
        return
    from rich.live import Live

    with Live(console=console, refresh_per_second=8, transient=True) as live:
        yield Panelled(live)


class PlainLines:
    """One line when a round, phase or verdict changes, else one every few seconds."""

    def __init__(self, console: Console, seconds: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._seconds = seconds
        self._said: tuple[object, ...] = ()
        self._at = float("-inf")

    def __call__(self, progress: Progress, /) -> None:
        """Print a line unless nothing decisive happened just after the last one."""
        news = (progress.phase, progress.round, progress.trials, progress.accepted, progress.watched)
        now = self._seconds()
        if news != self._said or now - self._at >= QUIET_SECONDS:
            self._said, self._at = news, now
            self._console.print(line(progress), markup=False, soft_wrap=True)


class Panelled:
    """A panel that is redrawn in place."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def __call__(self, progress: Progress, /) -> None:
        """Redraw the panel."""
        self._live.update(panel(progress))


def line(progress: Progress) -> str:
    """Return a progress in one line; before the search there is nothing to count."""
    said = f" | {_message(progress)}" if progress.message else ""
    if not progress.evaluations_budget:
        return f"{progress.phase}{said}"
    parts = [
        plural(progress.hypotheses, "hypothesis", "hypotheses") + _variety(progress),
        f"{plural(progress.attempts, 'factor')} tried",
        f"{progress.evaluations}/{progress.evaluations_budget} evaluations",
        plural(progress.trials, "trial"),
        _verdicts(progress),
        f"{money(progress.usd)} spent",
        _time(progress),
    ]
    return f"{_where(progress)}: {', '.join(parts)}{said}"


def panel(progress: Progress) -> RenderableType:
    """Return a progress as a panel."""
    from rich.panel import Panel
    from rich.text import Text

    body = _counts(progress) if progress.evaluations_budget else Text(progress.message)
    return Panel(body, title=Text(_where(progress)), title_align="left", border_style="dim", width=76)


def _counts(progress: Progress) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    done = min(progress.evaluations, progress.evaluations_budget)
    best = "" if progress.best_search_t is None else f", best |t| on search {abs(progress.best_search_t):.1f}"
    grid.add_row("hypotheses", f"{progress.hypotheses}{_variety(progress)}")
    grid.add_row("factors", f"{progress.attempts} tried, {progress.evaluations} evaluated{best}")
    grid.add_row("", ProgressBar(total=max(progress.evaluations_budget, 1), completed=done, width=40))
    grid.add_row("verdicts", f"{plural(progress.trials, 'trial')}: {_verdicts(progress)}")
    grid.add_row("spend", money(progress.usd))
    grid.add_row("time", _time(progress))
    grid.add_row("", Text(_message(progress), style="dim"))
    return grid


def _where(progress: Progress) -> str:
    return f"{progress.phase}, round {progress.round} of {progress.rounds}" if progress.round else progress.phase


def _message(progress: Progress) -> str:
    return EVENTS.get(progress.message, progress.message)


def _variety(progress: Progress) -> str:
    return "" if progress.mechanisms is None else f" ({progress.mechanisms:.1f} mechanisms this round)"


def _verdicts(progress: Progress) -> str:
    return f"{progress.accepted} accepted, {progress.watched} watched, {progress.rejected} rejected"


def _time(progress: Progress) -> str:
    left = "" if progress.remaining_s is None else f", about {duration(progress.remaining_s)} left"
    return f"{duration(progress.elapsed_s)}{left}"
