"""Three windows of days: search, which agents see; selection, which only the gate sees; sealed (hold-out)."""

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
        """Return the JSON form, as reports print it."""
        return {"first": self.first_day, "last": self.last_day, "days": self.days}


@dataclass(frozen=True)
class Windows:
    """The three windows of a data set, with the embargo between them.

    `inherited` is True if an earlier campaign fixed them otherwise than these settings would.
    """

    search: Window
    selection: Window
    sealed: Window
    embargo_days: int
    boundaries: Boundaries
    inherited: bool = False
    fingerprint: Fingerprint = field(default_factory=dict, compare=False, repr=False)

    def edges(self, through: Window, days: int) -> tuple[int, ...]:
        """Return the ends of the segments of a daily computation up to a window; those of sealed end at `days`."""
        ends = (self.search.stop, self.selection.stop, days)
        return ends[: 1 + (self.search, self.selection, self.sealed).index(through)]

    def key(self, window: Window) -> WindowKey:
        """Return the identity of a window across data sets: its days, its names and the returns of the data."""
        edges = self.boundaries
        return WindowKey(edges.dataset, window.first_day, window.last_day, edges.names, self.fingerprint)


def fix_windows(panel: Panel, ledger: Ledger, settings: WindowSettings, dataset: str, *, store: bool = True) -> Windows:
    """Return the windows of a panel; the first campaign on its data, under any symbols and dates, fixes them for good.

    Parameters
    ----------
    panel
        T days by N names.
    ledger
        The ledger with the boundaries of every data set of the workspace.
    settings
        Shares of the days, and the least number of days of each window.
    dataset
        Name of the data in reports.
    store
        False returns the windows without fixing them.

    Raises
    ------
    EvidenceError
        A window would be shorter than `settings` allows (code `too_few_days`). Or boundaries that were fixed earlier,
        for data that shares returns, or a day and a name, with this panel, do not fit it (code `boundary_conflict`).
    """
    embargo = max(HORIZONS) + 1
    proposed = _propose_boundaries(panel, settings, dataset, embargo)
    return _place_windows(
        panel,
        ledger.trials.fix_boundaries(proposed, store=store, fingerprint=panel.fingerprint),
        settings,
        embargo,
        proposed,
    )


def windows_as_of(panel: Panel, ledger: Ledger, settings: WindowSettings, dataset: str) -> Windows:
    """Return the windows of a panel that ends on an as-of day, independent of later days; fixes nothing.

    Boundaries that were fixed on days up to then apply. Boundaries that were fixed on later days would reveal those
    days, so they do not apply. They need not: the days searched here lie within the days that they leave to search.

    Raises
    ------
    EvidenceError
        As `fix_windows`; or later boundaries keep days from search that would be searched here. The error does not name
        these days.
    """
    embargo = max(HORIZONS) + 1
    proposed = _propose_boundaries(panel, settings, dataset, embargo)
    fixed = ledger.trials.fix_boundaries(proposed, store=False, fingerprint=panel.fingerprint)
    if fixed.sealed_end <= proposed.sealed_end:
        return _place_windows(panel, fixed, settings, embargo, proposed)
    if fixed.search_end < proposed.search_end:
        raise EvidenceError(
            "The windows that hold in this workspace leave too little to search as of this day.",
            field="as_of",
            got=proposed.sealed_end,
            hint="Name a later day, or another --workspace.",
            code="boundary_conflict",
            exit_code=1,
        )
    return _place_windows(panel, proposed, settings, embargo, proposed)


def _propose_boundaries(panel: Panel, settings: WindowSettings, dataset: str, embargo: int) -> Boundaries:
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
    lengths = {
        "search": (search, settings.min_search_days),
        "selection": (selection, settings.min_selection_days),
        "sealed": (sealed, settings.min_sealed_days),
    }
    short = [f"{name} {max(days, 0)} (needs {need})" for name, (days, need) in lengths.items() if days < need]
    if short:
        raise EvidenceError(
            f"The panel has {total} days, too few for its windows: {', '.join(short)}.",
            field="panel",
            got=f"{total} days",
            allowed="three windows with 21 days between them",
            hint="Give a longer panel, or lower evidence.windows.min_*_days in the campaign file.",
            code="too_few_days",
        )


def _place_windows(
    panel: Panel, fixed: Boundaries, settings: WindowSettings, embargo: int, proposed: Boundaries
) -> Windows:
    names = ("search", "selection", "sealed")
    starts = (str(panel.dates[0]), fixed.selection_start, fixed.sealed_start)
    stops = (fixed.search_end, fixed.selection_end, fixed.sealed_end)
    windows = [_find_window(panel, *edges) for edges in zip(names, starts, stops, strict=True)]
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
    return Windows(search, selection, sealed, embargo, fixed, fixed != proposed, panel.fingerprint)


def _find_window(panel: Panel, name: str, first: str, last: str) -> Window:
    start = int(np.searchsorted(panel.dates, np.datetime64(first, "D"), side="left"))
    stop = int(np.searchsorted(panel.dates, np.datetime64(last, "D"), side="right"))
    if stop <= start:
        return Window(name, start, start, first, last)
    return Window(name, start, stop, str(panel.dates[start]), str(panel.dates[stop - 1]))
