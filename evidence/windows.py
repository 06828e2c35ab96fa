"""Three windows of days: search, which agents see; selection, which only the gate sees; sealed, which nobody sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..ledger import Boundaries, Fingerprint, Ledger, WindowKey
from ..market import Panel
from .errors import EvidenceError
from .settings import WindowSettings

Kind = TypeVar("Kind", bound=np.generic)
HORIZONS = (1, 2, 3, 5, 10, 20)
"""Days of the labels of the decay curve; the largest one sets the embargo."""


@dataclass(frozen=True)
class Window:
    """A run of panel rows, `start` inclusive, `stop` exclusive."""

    name: str
    start: int
    stop: int
    first_day: str
    last_day: str

    @property
    def days(self) -> int:
        """Count the days."""
        return self.stop - self.start

    def cut(self, frame: NDArray[Kind]) -> NDArray[Kind]:
        """Return the rows of a `[T, N]` frame that lie inside."""
        return frame[self.start : self.stop]

    def record(self) -> dict[str, object]:
        """Return what a report prints."""
        return {"first": self.first_day, "last": self.last_day, "days": self.days}


@dataclass(frozen=True)
class Windows:
    """The three windows of a data set, with the embargo between them.

    `inherited` says that an earlier campaign fixed them otherwise than this one asked for.
    """

    search: Window
    selection: Window
    sealed: Window
    embargo_days: int
    boundaries: Boundaries
    inherited: bool = False
    fingerprint: Fingerprint = field(default_factory=dict, compare=False, repr=False)

    def edges(self, through: Window, days: int) -> tuple[int, ...]:
        """Return the rows at which what is computed day by day is cut, up to a window's end; after sealed to the panel's end."""
        ends = (self.search.stop, self.selection.stop, days)
        return ends[: 1 + (self.search, self.selection, self.sealed).index(through)]

    def key(self, window: Window) -> WindowKey:
        """Return what identifies a window across data sets: its days, its names and the returns of the data."""
        edges = self.boundaries
        return WindowKey(edges.dataset, window.first_day, window.last_day, edges.names, self.fingerprint)


def fix_windows(panel: Panel, ledger: Ledger, settings: WindowSettings, dataset: str, *, store: bool = True) -> Windows:
    """Return the windows of a panel; the first campaign on its data fixes them for good, whatever its symbols and dates.

    Parameters
    ----------
    panel
        T days by N names.
    ledger
        Holds the boundaries of every data set of the workspace.
    settings
        Shares of the days, and the least number of days of each window.
    dataset
        What reports call the data.
    store
        False only says what would hold and fixes nothing.

    Raises
    ------
    EvidenceError
        A window would be shorter than `settings` allows (code `too_few_days`). Boundaries fixed earlier, for data that shares returns, or a day and a name, with this panel, do not fit it.
    """
    embargo = max(HORIZONS) + 1
    wanted = _propose(panel, settings, dataset, embargo)
    return _place(
        panel, ledger.fix_boundaries(wanted, store=store, fingerprint=panel.fingerprint), settings, embargo, wanted
    )


def windows_as_of(panel: Panel, ledger: Ledger, settings: WindowSettings, dataset: str) -> Windows:
    """Return the windows of a panel that was cut at a day, from nothing that was fixed on later days; fixes nothing.

    Boundaries that were fixed on days until then hold as for anybody. Those that were fixed on later days would tell of
    these. They do not hold, and need not: what is searched lies within what they leave to searches.

    Raises
    ------
    EvidenceError
        As `fix_windows`; or what would be searched here is kept from searches there. Which days that are is not told.
    """
    embargo = max(HORIZONS) + 1
    wanted = _propose(panel, settings, dataset, embargo)
    fixed = ledger.fix_boundaries(wanted, store=False, fingerprint=panel.fingerprint)
    if fixed.sealed_end <= wanted.sealed_end:
        return _place(panel, fixed, settings, embargo, wanted)
    if fixed.search_end < wanted.search_end:
        raise EvidenceError(
            "The windows that hold in this workspace leave too little to search as of this day.", field="as_of",
            got=wanted.sealed_end, hint="Name a later day, or another --workspace.", code="boundary_conflict", exit_code=1,
        )  # fmt: skip
    return _place(panel, wanted, settings, embargo, wanted)


def _propose(panel: Panel, settings: WindowSettings, dataset: str, embargo: int) -> Boundaries:
    total = panel.days
    ends = round(total * settings.search), round(total * (settings.search + settings.selection))
    _refuse_short(settings, total, ends[0], ends[1] - ends[0] - embargo, total - ends[1] - embargo)
    day = [str(value) for value in panel.dates]
    return Boundaries(
        dataset=dataset,
        names=panel.symbols,
        first_day=day[0],
        search_end=day[ends[0] - 1],
        selection_start=day[ends[0] + embargo],
        selection_end=day[ends[1] - 1],
        sealed_start=day[ends[1] + embargo],
        sealed_end=day[-1],
    )


def _refuse_short(settings: WindowSettings, total: int, search: int, selection: int, sealed: int) -> None:
    least = {
        "search": (search, settings.min_search_days),
        "selection": (selection, settings.min_selection_days),
        "sealed": (sealed, settings.min_sealed_days),
    }
    short = [f"{name} {max(days, 0)} (needs {need})" for name, (days, need) in least.items() if days < need]
    if short:
        raise EvidenceError(
            f"The panel has {total} days, too few for its windows: {', '.join(short)}.",
            field="panel",
            got=f"{total} days",
            allowed="three windows with 21 days between them",
            hint="Give a longer panel, or lower evidence.windows.min_*_days in the campaign file.",
            code="too_few_days",
        )


def _place(panel: Panel, fixed: Boundaries, settings: WindowSettings, embargo: int, wanted: Boundaries) -> Windows:
    names = ("search", "selection", "sealed")
    starts = (str(panel.dates[0]), fixed.selection_start, fixed.sealed_start)
    stops = (fixed.search_end, fixed.selection_end, fixed.sealed_end)
    windows = [_between(panel, *edges) for edges in zip(names, starts, stops, strict=True)]
    least = (settings.min_search_days, settings.min_selection_days, settings.min_sealed_days)
    if any(window.days < need for window, need in zip(windows, least, strict=True)):
        raise EvidenceError(
            f"The windows of these days and names were fixed earlier (search to {fixed.search_end}, "
            f"selection to {fixed.selection_end}, sealed to {fixed.sealed_end}) and do not fit this panel.",
            field="panel",
            got=f"{panel.dates[0]} to {panel.dates[-1]}",
            allowed=f"a panel that covers {fixed.first_day} to {fixed.sealed_end}",
            hint="Use the whole span, or another --workspace if the data has nothing to do with the earlier one.",
            code="boundary_conflict",
            exit_code=1,
        )
    search, selection, sealed = windows
    return Windows(search, selection, sealed, embargo, fixed, fixed != wanted, panel.fingerprint)


def _between(panel: Panel, name: str, first: str, last: str) -> Window:
    start = int(np.searchsorted(panel.dates, np.datetime64(first, "D"), side="left"))
    stop = int(np.searchsorted(panel.dates, np.datetime64(last, "D"), side="right"))
    if stop <= start:
        return Window(name, start, start, first, last)
    return Window(name, start, stop, str(panel.dates[start]), str(panel.dates[stop - 1]))
