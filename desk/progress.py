"""The progress of a campaign on standard error: one panel that updates on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from .code import in_one_line
from .console import notices
from .figures import DASH, count, duration, money, plural

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from ..evidence import Progress
    from ..evidence.funnel import Best, Counts
    from .standing import Standing

__all__ = [
    "AGENTS",
    "Show",
    "best_line",
    "funnel_line",
    "shown_progress",
    "spend_line",
    "variety_line",
    "verdicts_line",
]

EVENTS = {
    "round": "hypotheses are being thought of",
    "survey": "surveying: what is scored now is to tell of the whole language",
    "scored": "a batch was scored",
    "gate": "the gate has judged",
    "seeds": "your own formulas are being scored",
    "no_news": "agents.news: no text of this workspace was known by the end of the search window",
    "no_passage": "context.documents: no passage could be told in this round",
    "own_agent": "your own agent failed in this round",
}
AGENTS = ("idea", "factor", "eval")
SEARCHING = "searching"
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
        counts = progress.counts
        news = (progress.phase, progress.round, progress.trials, counts.accepted, counts.watched, counts.awaiting)
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
    counts = progress.counts
    parts = [
        plural(counts.hypotheses, "hypothesis tested", "hypotheses tested") + variety_line(progress),
        funnel_line(counts, progress.evaluations_budget),
        *([f"best |t| on search {abs(progress.best.t):.1f}"] if progress.best else []),
        f"{plural(progress.trials, 'trial')}: {verdicts_line(counts)}",
        spend_line(progress),
        _time(progress),
    ]
    return f"{_where(progress)}: {'; '.join(parts)}{_doing(progress) or said}"


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
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    counts, total = progress.counts, max(progress.evaluations_budget, 1)
    grid.add_row("hypotheses", f"{counts.hypotheses}{variety_line(progress)}")
    grid.add_row("factors", Text(funnel_line(counts, progress.evaluations_budget)))
    grid.add_row("", ProgressBar(total=total, completed=min(counts.scored, total), width=40))
    grid.add_row("best", Text(best_line(progress.best), overflow="ellipsis", no_wrap=True))
    grid.add_row("verdicts", f"{plural(progress.trials, 'trial')}: {verdicts_line(counts)}")
    grid.add_row("spend", spend_line(progress))
    for agent in AGENTS:
        if agent in progress.doing:
            grid.add_row(agent, Text(progress.doing[agent], overflow="ellipsis", no_wrap=True))
    grid.add_row("time", _time(progress))
    if message := _message(progress):
        grid.add_row("", Text(message, style="dim"))
    return grid


def funnel_line(counts: Counts, budget: int) -> str:
    """Say how many got how far, from what was proposed to what came before the gate."""
    proposed, readable = f"{counts.proposed:,} proposed", f"{counts.readable:,} readable"
    return f"{proposed} → {readable} → {counts.scored:,} of {budget:,} scored → {counts.sent:,} sent"


def verdicts_line(counts: Counts) -> str:
    """Say what became of what was sent."""
    waits = f", {counts.awaiting} to approve" if counts.awaiting else ""
    return f"{counts.accepted} accepted, {counts.watched} watched, {counts.rejected} rejected{waits}"


def best_line(best: Best | None) -> str:
    """Say what is best so far, on search days alone."""
    return f"|t| {abs(best.t):.1f} on search: {in_one_line(best.text)}" if best else DASH


def spend_line(progress: Progress) -> str:
    """Say what models took, and what that is for each accepted factor."""
    spent, accepted = progress.spent, progress.counts.accepted
    each = f" ({money(progress.usd_per_accepted)} each accepted)" if accepted and spent.usd else ""
    return f"{plural(spent.calls, 'call')}, {count(spent.tokens)} tokens, {money(spent.usd)}{each}"


def _where(progress: Progress) -> str:
    return f"{progress.phase}, round {progress.round} of {progress.rounds}" if progress.round else progress.phase


def _message(progress: Progress) -> str:
    return EVENTS.get(progress.message, progress.message)


def variety_line(progress: Progress | Standing) -> str:
    """Say how different what is searched is, in brackets; nothing before there is any."""
    said = [] if progress.mechanisms is None else [f"{progress.mechanisms:.1f} mechanisms this round"]
    said += [f"{plural(progress.niches, 'niche')} filled"] if progress.niches else []
    return f" ({', '.join(said)})" if said else ""


def _doing(progress: Progress) -> str:
    """Say what agents do, or did last, while there is a search."""
    if progress.phase != SEARCHING:
        return ""
    doing = [f"{agent} {progress.doing[agent]}" for agent in AGENTS if agent in progress.doing]
    return f" | {', '.join(doing)}" if doing else ""


def _time(progress: Progress) -> str:
    left = "" if progress.remaining_s is None else f", about {duration(progress.remaining_s)} left"
    return f"{duration(progress.elapsed_s)}{left}"
