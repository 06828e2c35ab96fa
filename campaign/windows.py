"""Which days a book may earn on: those of a selection or sealed window only after they were paid for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ledger import Boundaries, Ledger, WindowKey
from ..market import Panel
from ..risk import RiskError, list_ids


def find_windows(ledger: Ledger, panel: Panel, dataset: str) -> list[Boundaries]:
    """Return the windows of every data set that shares returns or symbols with a panel, on the panel's own days."""
    whole = WindowKey(dataset, str(panel.dates[0]), str(panel.dates[-1]), panel.symbols, panel.fingerprint)
    return ledger.trials.inherited(whole)


def name_window(windows: Sequence[Boundaries], day: str) -> str:
    """Return the window to which a day belongs, the most protected one first; empty for a day of none."""
    edges = (
        ("sealed", "sealed_start", "sealed_end"),
        ("selection", "selection_start", "selection_end"),
        ("search", "first_day", "search_end"),
    )
    for name, first, last in edges:
        if any(getattr(fixed, first) <= day <= getattr(fixed, last) for fixed in windows):
            return name
    return ""


def refuse_unpaid_days(
    ledger: Ledger, panel: Panel, dataset: str, rows: Sequence[int], evidence: str, windows: Sequence[Boundaries]
) -> None:
    """Refuse days of a window that would be looked at for nothing.

    Parameters
    ----------
    rows
        Rows of the panel, ascending, on which a book would earn.
    evidence
        Ids of what is traded, as a signal names them. A selection window is paid for by a trial of each of them, a
        sealed window by an opening.
    windows
        Those of `find_windows`.

    Raises
    ------
    RiskError
        Days belong to a window that nobody paid for; it names the window and what to do.
    """
    span = str(panel.dates[rows[0]]), str(panel.dates[rows[-1]])
    for fixed in windows:
        selection = _share(span, (fixed.selection_start, fixed.selection_end))
        if selection and not _is_tested(ledger, panel, dataset, selection, evidence):
            raise _unpaid_error(
                "selection",
                (fixed.selection_start, fixed.selection_end),
                "Begin after it, or test all that is traded first: alphaloom factor score FORMULA --gate.",
            )
        sealed = _share(span, (fixed.sealed_start, fixed.sealed_end))
        if sealed and not ledger.trials.openings(_make_key(panel, dataset, sealed)):
            raise _unpaid_error(
                "sealed (hold-out)",
                (fixed.sealed_start, fixed.sealed_end),
                "Begin after it, or open it first, once: alphaloom evidence open RUN --reason WHY.",
            )


def _is_tested(ledger: Ledger, panel: Panel, dataset: str, days: tuple[str, str], evidence: str) -> bool:
    tested = {trial.subject for trial in ledger.trials.overlapping(_make_key(panel, dataset, days))}
    return set(list_ids(evidence)) <= tested


def _share(days: tuple[str, str], window: tuple[str, str]) -> tuple[str, str] | None:
    """Return the days of a span that lie in a window; None for none."""
    first, last = max(days[0], window[0]), min(days[1], window[1])
    return (first, last) if first <= last else None


def _make_key(panel: Panel, dataset: str, days: tuple[str, str]) -> WindowKey:
    first, last = (int(np.searchsorted(panel.dates, np.datetime64(day, "D"))) for day in days)
    cut = panel.rows(first, min(last + 1, panel.days))
    return WindowKey(dataset, *days, panel.symbols, cut.fingerprint)


def _unpaid_error(window: str, days: tuple[str, str], hint: str) -> RiskError:
    return RiskError(
        f"These days belong to a {window} window, {days[0]} to {days[1]}, that nobody paid for: "
        "a book that earns on them would look at it for nothing.",
        field="--since",
        allowed=f"a day after {days[1]}",
        hint=hint,
        code="unpaid_days",
        exit_code=1,
    )
