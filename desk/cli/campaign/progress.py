"""The progress of a campaign on standard error: one panel that updates on a terminal, plain lines elsewhere."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, TypeAlias

from ...figures import DASH, count, duration, money, plural
from ...formula_views import summarise_formula
from ..console import stderr_console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from ....campaign import Best, Counts, Progress
    from ...facts.standing import RunStanding


EVENT_TEXTS = {
    "round": "hypotheses are being thought of",
    "survey": "surveying: what is scored now is to tell of the whole language",
    "scored": "a batch was scored",
    "gate": "the gate has judged",
    "seeds": "your own formulas are being scored",
    "mechanisms": "data-mined candidates were asked for a mechanism, and its refuter was tested on search days",
    "few_mechanisms": "fewer than three effective mechanisms in this round: the next one takes mechanisms not used yet",
    "no_news": "agents.news: no text of this workspace was known by the end of the search window",
    "no_passage": "context.documents: no passage could be told in this round",
    "own_agent": "your own agent failed in this round",
}
COUNTED_EVENTS = ("round", "survey", "scored", "gate", "seeds")
"""Events that add nothing to the counts; the others get a line of their own."""
AGENTS = ("idea", "factor", "eval")
SEARCHING = "searching"
MIN_LINE_SECONDS, MAX_LINE_SECONDS = 10.0, 60.0
"""Bounds of the time between plain lines without a decisive event, which is a twentieth of the elapsed time."""
BEAT_SECONDS = 1.0
LINE_WIDTH = 100

Show: TypeAlias = "Callable[[Progress], None]"


@contextmanager
def show_progress() -> Iterator[Show]:
    """Yield the function that shows progress, for as long as the campaign runs."""
    console = stderr_console()
    if not console.is_terminal or console.is_dumb_terminal:
        lines = PlainLines(console)
        with _run_heartbeat(lines):
            yield lines
        return
    from rich.live import Live

    with Live(console=console, refresh_per_second=8, transient=True) as live:
        yield ProgressPanel(live)


@contextmanager
def _run_heartbeat(lines: PlainLines) -> Iterator[None]:
    """Call `still` regularly while no progress arrives: a step may take minutes on a busy machine."""
    ended = Event()

    def beat() -> None:
        while not ended.wait(BEAT_SECONDS):
            lines.still()

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class PlainLines:
    """Print one short line when a round, phase or verdict changes, else one every ten seconds; rarer in long runs."""

    def __init__(self, console: Console, seconds: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._seconds = seconds
        self._said: tuple[object, ...] = ()
        self._message = ""
        self._at = self._heard = float("-inf")
        self._where = self._doing = ""
        self._lock = Lock()

    def __call__(self, progress: Progress, /) -> None:
        """Print a line unless one was just printed and nothing decisive happened; a new message is printed in full."""
        with self._lock:
            self._show(progress)

    def still(self) -> None:
        """Report the current step, if it takes long and nothing was printed for a while."""
        with self._lock:
            now = self._seconds()
            took = now - self._heard
            if self._where and took >= MIN_LINE_SECONDS and now - self._at >= _compute_line_interval(took):
                self._at = now
                self._print(f"{self._where}: still at the same step, for {duration(took)}{self._doing}")

    def _show(self, progress: Progress) -> None:
        counts, now = progress.counts, self._seconds()
        self._where, self._heard = _format_phase(progress, "/"), now
        self._doing = f"; {doing}" if (doing := _describe_agents(progress)) else ""
        alone = ""
        if progress.phase == SEARCHING and progress.message not in ("", self._message, *COUNTED_EVENTS):
            self._message, alone = progress.message, f"{_format_phase(progress, '/')}: {_find_message(progress)}"
            self._print(alone)
        news = (progress.phase, progress.round, counts.accepted, counts.watched, counts.awaiting)
        if news != self._said or now - self._at >= _compute_line_interval(progress.elapsed_s):
            self._said, self._at = news, now
            if (text := format_progress_line(progress)) != alone:  # before the first count the line is the message
                self._print(text)

    def _print(self, text: str) -> None:
        for part in textwrap.wrap(text, LINE_WIDTH, subsequent_indent="  ", break_on_hyphens=False):
            self._console.print(part, markup=False, soft_wrap=True)


class ProgressPanel:
    """A panel that is redrawn in place."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def __call__(self, progress: Progress, /) -> None:
        """Redraw the panel."""
        self._live.update(build_progress_panel(progress))


def _compute_line_interval(elapsed_s: float) -> float:
    """Return the seconds between two lines, from the elapsed time."""
    return min(max(MIN_LINE_SECONDS, elapsed_s / 20), MAX_LINE_SECONDS)


def format_progress_line(progress: Progress) -> str:
    """Return a progress in one line of at most `LINE_WIDTH` characters; the least important parts are left out.

    Before the search there are no counts, and the line is the message.
    """
    counts = progress.counts
    if not progress.evaluations_budget:
        return f"{progress.phase}: {_find_message(progress)}" if progress.message else progress.phase
    parts = [
        ", ".join(_list_outcomes(counts)),
        _format_time(progress).replace("about ", ""),
        *([f"best |t| {abs(progress.best.t):.1f}"] if progress.best else []),
        *([f"${progress.spent.usd:,.2f}"] if progress.spent.usd else []),
        _describe_agents(progress) or (_find_message(progress) if progress.message in COUNTED_EVENTS else ""),
    ]
    line = f"{_format_phase(progress, '/')}: {counts.scored:,}/{progress.evaluations_budget:,} scored"
    for part in filter(None, parts):
        line += f"; {part}" if len(line) + len(part) + 2 <= LINE_WIDTH else ""
    return line


def _list_outcomes(counts: Counts) -> list[str]:
    """Return the counts of verdicts; with approval, what passed the gate is accepted only when a person approves it."""
    passed = [f"{counts.awaiting} passed, to approve"] if counts.awaiting else []
    accepted = [f"{counts.accepted} accepted"] if counts.accepted or not passed else []
    return [*passed, *accepted, f"{counts.watched} watched"]


def build_progress_panel(progress: Progress) -> RenderableType:
    """Return a progress as a panel."""
    from rich.panel import Panel
    from rich.text import Text

    body = _build_count_grid(progress) if progress.evaluations_budget else Text(progress.message)
    return Panel(body, title=Text(_format_phase(progress)), title_align="left", border_style="dim", width=76)


def _build_count_grid(progress: Progress) -> RenderableType:
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
    grid.add_row("time", _format_time(progress))
    if message := _find_message(progress):
        grid.add_row("", Text(message, style="dim"))
    return grid


def funnel_line(counts: Counts, budget: int) -> str:
    """Return the counts from proposed formulas to those sent to the gate."""
    proposed, readable = f"{counts.proposed:,} proposed", f"{counts.readable:,} readable"
    return f"{proposed} → {readable} → {counts.scored:,} of {budget:,} scored → {counts.sent:,} sent"


def verdicts_line(counts: Counts) -> str:
    """Return the counts of verdicts."""
    waits = f", {counts.awaiting} to approve" if counts.awaiting else ""
    proven = f", {counts.proven} proven but not tradable alone" if counts.proven else ""
    return f"{counts.accepted} accepted{proven}, {counts.watched} watched, {counts.rejected} rejected{waits}"


def best_line(best: Best | None) -> str:
    """Describe the best formula so far, by search days alone."""
    return f"|t| {abs(best.t):.1f} on search: {summarise_formula(best.text)}" if best else DASH


def spend_line(progress: Progress) -> str:
    """Return the models' spending, in total and for each accepted factor."""
    spent, accepted = progress.spent, progress.counts.accepted
    per_accepted = f" ({money(progress.usd_per_accepted)} each accepted)" if accepted and spent.usd else ""
    return f"{plural(spent.calls, 'call')}, {count(spent.tokens)} tokens, {money(spent.usd)}{per_accepted}"


def _format_phase(progress: Progress, of: str = " of ") -> str:
    return f"{progress.phase}, round {progress.round}{of}{progress.rounds}" if progress.round else progress.phase


def _find_message(progress: Progress) -> str:
    return EVENT_TEXTS.get(progress.message, progress.message)


def variety_line(progress: Progress | RunStanding) -> str:
    """Describe the variety of the search in brackets; empty before there is any."""
    parts = [] if progress.mechanisms is None else [f"{progress.mechanisms:.1f} mechanisms this round"]
    parts += [f"{progress.niches:,} cells of mechanism x horizon x turnover filled"] if progress.niches else []
    return f" ({', '.join(parts)})" if parts else ""


def _describe_agents(progress: Progress) -> str:
    """Return what the agents do, or did last, during a search."""
    if progress.phase != SEARCHING:
        return ""
    doing = [f"{agent} {progress.doing[agent]}" for agent in AGENTS if agent in progress.doing]
    return ", ".join(doing)


def _format_time(progress: Progress) -> str:
    remaining = "" if progress.remaining_s is None else f", about {duration(progress.remaining_s)} left"
    return f"{duration(progress.elapsed_s)}{remaining}"
