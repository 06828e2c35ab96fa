"""The close of a campaign: the accepted factors combined, examined once on sealed days, and traded on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import BookUnavailable, Window
from ...evidence.scoring import Costs, FactorMetrics, round_significant
from ...portfolio import (
    Book,
    Combination,
    CombinationPart,
    Combining,
    run_backtest,
    run_sealed_exam,
    write_combination,
)
from ..checks.stress import stress_on_search
from ..service import Evaluator

COMBINATION_FILE = "combination.parquet"
CLOSE_REASON = "the close of a campaign whose file says so"


@dataclass(frozen=True)
class Closing:
    """What the close of a campaign made; `score` is `[T, N]`, None where nothing was accepted.

    `search` is the combination's sheet on the search window, whose error sets the bounds of signals. `stress` says where
    each accepted factor breaks, on search days. `compared` sets the combiners side by side, on search and selection.
    """

    parts: Sequence[CombinationPart]
    score: NDArray[np.float32] | None
    sealed: dict[str, Any] | None
    book: dict[str, Any] | None
    curve: dict[str, Any] | None
    search: FactorMetrics | None = None
    stress: dict[str, Any] | None = None
    combination: Combination | None = None
    compared: dict[str, Any] | None = None


def part(evaluator: Evaluator, name: str) -> CombinationPart:
    """Return an accepted factor as a part of the combination, turned the way search has it."""
    row = evaluator.rows[name]
    values = evaluator.values(evaluator.read(row.text), evaluator.windows.sealed)
    return CombinationPart(name, -1 if (row.sheet["rank_ic"] or 0.0) < 0 else 1, values)


def unseal(evaluator: Evaluator, accepted: Sequence[str], reason: str) -> dict[str, Any]:
    """Combine accepted factors and examine them on the sealed days."""
    parts = [part(evaluator, name) for name in sorted(accepted)]
    return run_sealed_exam(evaluator, parts, Combining(evaluator, parts).chosen().score, reason)


def close(evaluator: Evaluator, accepted: Sequence[str], open_sealed: bool) -> Closing:
    """Combine the accepted factors, open the seal if the campaign file says so, and backtest the book.

    The book is run on the sealed days if they were opened, else on the selection days. The opening is written to the
    ledger before the look.
    """
    if not accepted:
        return Closing((), None, None, None, None)
    parts = [part(evaluator, name) for name in sorted(accepted)]
    combining = Combining(evaluator, parts)
    combination = combining.chosen()
    score = combination.score
    sealed = run_sealed_exam(evaluator, parts, score, CLOSE_REASON) if open_sealed else None
    window = evaluator.windows.sealed if sealed else evaluator.windows.selection
    book, curve = _book(evaluator, score, window)
    search = evaluator.scorer.score(score, evaluator.windows.search, 1)
    stress = _stress(evaluator, sorted(accepted))
    return Closing(parts, score, sealed, book, curve, search, stress, combination, combining.compared())


def _stress(evaluator: Evaluator, accepted: Sequence[str]) -> dict[str, Any]:
    return stress_on_search(evaluator, [evaluator.read(evaluator.rows[name].text) for name in accepted])


def write_closing(closing: Closing, evaluator: Evaluator, folder: Path) -> dict[str, Any] | None:
    """Write the combination beside the results and return what the results say of it."""
    if closing.score is None or closing.combination is None:
        return None
    made = closing.combination
    rows = write_combination(closing.score, evaluator.panel, folder / COMBINATION_FILE)
    weights = made.signed_weights()
    return {
        "file": COMBINATION_FILE,
        "rows": rows,
        "factors": sorted(weights),
        "weights": weights,
        "weights_of": str(evaluator.panel.dates[-1]),
        "weights_at": _weights_at(made, evaluator),
        "combiner": made.kind,
        "chosen": made.chosen,
        "trading_rate": round_significant(made.rate),
        "compared": closing.compared,
    }


def _weights_at(made: Combination, evaluator: Evaluator) -> dict[str, dict[str, float]]:
    """Return the weights at the end of each window, by its last day."""
    windows = evaluator.windows
    ends = {each.last_day: each.stop - 1 for each in (windows.search, windows.selection, windows.sealed)}
    return {day: made.signed_weights(row) for day, row in ends.items()}


def _book(
    evaluator: Evaluator, score: NDArray[np.float32], window: Window
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    costs = Costs(evaluator.settings.costs.bps_per_side, evaluator.settings.costs.borrow_bps_per_year)
    span = slice(window.start, window.stop)
    try:
        book = run_backtest(score, evaluator.panel, costs=costs, horizon=evaluator.settings.horizon_days, span=span)
    except BookUnavailable as error:
        return {**_days_of(window), "unavailable": error.message, "hint": error.hint}, None
    return {**_days_of(window), **_figures(book)}, _curve(book)


def _days_of(window: Window) -> dict[str, Any]:
    """Return the window of a book, and whether luck on its days helped to choose the factors."""
    return {"window": window.name, "accepted_on_these_days": window.name == "selection"}


def _figures(book: Book) -> dict[str, Any]:
    names = ("sharpe", "annual_return", "max_drawdown", "turnover_per_day", "costs_paid", "borrow_paid", "plain_sharpe")
    return {**{name: round_significant(getattr(book, name)) for name in names}, "days": book.days}


def _curve(book: Book) -> dict[str, Any]:
    return {
        "dates": [str(day) for day in book.dates],
        "equity": [round_significant(value) for value in book.equity],
        "drawdown": [round_significant(value) for value in book.drawdown],
    }
