"""Which days a book may earn on: those of a selection or sealed window only after they were paid for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ledger import Boundaries, Ledger, WindowKey
from ..market import Panel
from ..risk import RiskError, list_ids


def refuse_unpaid_days(ledger: Ledger, panel: Panel, dataset: str, rows: Sequence[int], evidence: str) -> None:
    """Refuse days of a window that would be looked at for nothing.

    Parameters
    ----------
    rows
        Rows of the panel, ascending, on which a book would earn.
    evidence
        Ids of what is traded, as a signal names them. A selection window is paid for by a trial of one of them, a
        sealed window by an opening.

    Raises
    ------
    RiskError
        Days belong to a window that nobody paid for; it names the window and what to do.
    """
    first, last = str(panel.dates[rows[0]]), str(panel.dates[rows[-1]])
    for fixed in ledger.trials.boundaries():
        if not set(fixed.names) & set(panel.symbols):
            continue
        if not _is_paid_by_trial(ledger, panel, dataset, fixed, (first, last), evidence):
            raise _unpaid_error(
                "selection",
                (fixed.selection_start, fixed.selection_end),
                "Begin after it, or test the evidence first: alphaloom factor score FORMULA --gate.",
            )
        if not _is_opened(ledger, panel, dataset, fixed, (first, last)):
            raise _unpaid_error(
                "sealed (hold-out)",
                (fixed.sealed_start, fixed.sealed_end),
                "Begin after it, or open it first, once: alphaloom evidence open RUN.",
            )


def _is_paid_by_trial(
    ledger: Ledger, panel: Panel, dataset: str, fixed: Boundaries, days: tuple[str, str], evidence: str
) -> bool:
    shared = _share(days, (fixed.selection_start, fixed.selection_end))
    if shared is None:
        return True
    trials = ledger.trials.overlapping(_make_key(panel, dataset, shared))
    return bool({trial.subject for trial in trials} & set(list_ids(evidence)))


def _is_opened(ledger: Ledger, panel: Panel, dataset: str, fixed: Boundaries, days: tuple[str, str]) -> bool:
    shared = _share(days, (fixed.sealed_start, fixed.sealed_end))
    return shared is None or bool(ledger.trials.openings(_make_key(panel, dataset, shared)))


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
