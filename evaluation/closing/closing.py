"""Close a campaign: combine the accepted factors, examine them on the sealed (hold-out) days, backtest the book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import BookUnavailable, Window
from ...evidence.scoring import Costs, FactorMetrics, round_significant
from ...portfolio import (
    Combination,
    CombinationPart,
    Combining,
    run_backtest,
    run_sealed_exam,
    target_weights,
    write_combination,
)
from ..service import Evaluator, stress_on_search
from ..submissions import WEIGHING_EVENT
from .close_records import BookResult, CombinationSummary, CombinerComparison
from .results import BookCurve

COMBINATION_FILE = "combination.parquet"
CLOSE_REASON = "the close of a campaign whose file says so"


@dataclass(frozen=True)
class Closing:
    """The products of a campaign's close.

    Attributes
    ----------
    score
        The combination's scores `[T, N]`; None without accepted factors.
    search
        The combination's metrics on the search window. Their error sets the bounds of signals.
    stress
        The stresses that break each accepted factor, on search days (JSON of `StressTable`).
    compared
        The combiners compared on search and selection days (JSON of `CombinerComparison`).
    targets
        The weights `[N]` that the book should hold from the next open on, as shares of equity.
    evidence
        What was accepted and is traded: the tested combination, or the accepted factors, by id.
    tested
        True where the combination is the accepted one, with the weights that the gate tested.
    """

    parts: Sequence[CombinationPart]
    score: NDArray[np.float32] | None
    sealed: dict[str, Any] | None
    book: BookResult | None
    curve: BookCurve | None
    search: FactorMetrics | None = None
    stress: dict[str, Any] | None = None
    combination: Combination | None = None
    compared: dict[str, Any] | None = None
    targets: NDArray[np.float64] | None = None
    evidence: tuple[str, ...] = ()
    tested: bool = False


def _make_part(evaluator: Evaluator, name: str) -> CombinationPart:
    """Return a factor as a part of the combination, in the direction of its RankIC on search days."""
    row = evaluator.scores[name]
    values = evaluator.values(evaluator.read(row.text), evaluator.windows.sealed)
    return CombinationPart(name, -1 if (row.sheet["rank_ic"] or 0.0) < 0 else 1, values)


@dataclass(frozen=True, eq=False)
class _Traded:
    """What a campaign would trade: its parts, their combination, and whether the gate tested exactly that.

    `evidence` are the ids of what was accepted.
    """

    combining: Combining
    combination: Combination
    evidence: tuple[str, ...]
    tested: bool

    @property
    def parts(self) -> Sequence[CombinationPart]:
        return self.combining.parts


def _choose_traded(evaluator: Evaluator, accepted: Sequence[str]) -> _Traded:
    """Return the accepted combination as it was tested; without one, a combination of the accepted factors."""
    for row in evaluator.ledger.verdicts.of(evaluator.run):  # in the order of the tests
        event = evaluator.ledger.events.get(evaluator.run, WEIGHING_EVENT, row.factor_id)
        if event and row.factor_id in accepted:
            return _rebuild_tested(evaluator, row.factor_id, event.body)
    combining = Combining(evaluator, [_make_part(evaluator, name) for name in sorted(accepted)])
    return _Traded(combining, combining.combine_as_set(), tuple(sorted(accepted)), tested=False)


def _rebuild_tested(evaluator: Evaluator, name: str, weighing: Mapping[str, Any]) -> _Traded:
    combining = Combining(evaluator, [_make_part(evaluator, part) for part in sorted(weighing["weights"])])
    weights = np.array([weighing["weights"][part.factor_id] for part in combining.parts])
    factors = np.ones_like(weights) if len({*weights.tolist()}) == 1 else weights  # equal weights are not written
    middle = 0.5 * sum(factor * part.sign for factor, part in zip(factors, combining.parts, strict=True))
    values = evaluator.values(evaluator.read(evaluator.scores[name].text), evaluator.windows.sealed)
    score = ((values - middle) / factors.sum()).astype(np.float32)  # from the formula's own scale to -0.5 to 0.5
    rows = np.tile(weights, (len(score), 1))
    chosen = f"{weighing['chosen']}; weights of the last search day, as tested by the gate".removeprefix("; ")
    built = Combination(weighing["combiner"], weighing["rate"], chosen, combining.parts, score, rows, score)
    return _Traded(combining, built, (name,), tested=True)


def unseal(evaluator: Evaluator, accepted: Sequence[str], reason: str) -> dict[str, Any]:
    """Examine what the accepted factors would trade on the sealed days."""
    return _take_sealed_exam(evaluator, _choose_traded(evaluator, accepted), accepted, reason)


def _take_sealed_exam(evaluator: Evaluator, traded: _Traded, accepted: Sequence[str], reason: str) -> dict[str, Any]:
    """Examine what would be traded, each of its parts, and every other accepted factor."""
    known = {part.factor_id for part in traded.parts}
    others = [_make_part(evaluator, name) for name in sorted(accepted) if name not in known]
    return run_sealed_exam(evaluator, [*traded.parts, *others], traded.combination.score, reason)


def close(evaluator: Evaluator, accepted: Sequence[str], open_sealed: bool, reason: str = CLOSE_REASON) -> Closing:
    """Build what would be traded, open the sealed days if asked to, and backtest the book.

    The book is run on the sealed days if they were opened, else on the selection days. The opening is written to the
    ledger before the sealed days are read.
    """
    if not accepted:
        return Closing((), None, None, None, None)
    traded = _choose_traded(evaluator, accepted)
    parts, score = traded.parts, traded.combination.score
    sealed = _take_sealed_exam(evaluator, traded, accepted, reason) if open_sealed else None
    window = evaluator.windows.sealed if sealed else evaluator.windows.selection
    book, curve = _backtest_book(evaluator, score, window)
    search = evaluator.scorer.score(score, evaluator.windows.search, 1)
    names = sorted({*accepted, *(part.factor_id for part in parts)})
    stress = stress_on_search(evaluator, [evaluator.read(evaluator.scores[name].text) for name in names])
    compared = traded.combining.compare()
    horizon = evaluator.settings.horizon_days
    return Closing(
        parts=parts,
        score=score,
        sealed=sealed,
        book=book,
        curve=curve,
        search=search,
        stress=stress,
        combination=traded.combination,
        compared=compared,
        targets=target_weights(score[-horizon:], horizon)[-1],
        evidence=traded.evidence,
        tested=traded.tested,
    )


def write_closing(closing: Closing, evaluator: Evaluator, folder: Path) -> CombinationSummary | None:
    """Write the combination beside the results, and return its summary; None without accepted factors."""
    if closing.score is None or closing.combination is None:
        return None
    combination = closing.combination
    rows = write_combination(closing.score, evaluator.panel, folder / COMBINATION_FILE)
    weights, windows = combination.signed_weights(), evaluator.windows
    last_rows = {window.last_day: window.stop - 1 for window in (windows.search, windows.selection, windows.sealed)}
    return CombinationSummary(
        file=COMBINATION_FILE,
        rows=rows,
        factors=tuple(sorted(weights)),
        weights=weights,
        weights_of=str(evaluator.panel.dates[-1]),
        weights_at={day: combination.signed_weights(row) for day, row in last_rows.items()},
        combiner=combination.kind,
        chosen=combination.chosen,
        trading_rate=round_significant(combination.rate),
        compared=CombinerComparison.read(closing.compared) if closing.compared else None,
        tested=closing.tested,
    )


def _backtest_book(
    evaluator: Evaluator, score: NDArray[np.float32], window: Window
) -> tuple[BookResult, BookCurve | None]:
    """Backtest the combination on a window, whose days may have helped to choose its factors."""
    costs = Costs(evaluator.settings.costs.bps_per_side, evaluator.settings.costs.borrow_bps_per_year)
    span = slice(window.start, window.stop)
    chosen_here = window.name == "selection"
    try:
        book = run_backtest(score, evaluator.panel, costs=costs, horizon=evaluator.settings.horizon_days, span=span)
    except BookUnavailable as error:
        unavailable = BookResult(
            window=window.name, accepted_on_these_days=chosen_here, unavailable=error.message, hint=error.hint
        )
        return unavailable, None
    result = BookResult(
        window=window.name,
        accepted_on_these_days=chosen_here,
        days=book.days,
        sharpe=round_significant(book.sharpe),
        annual_return=round_significant(book.annual_return),
        max_drawdown=round_significant(book.max_drawdown),
        turnover_per_day=round_significant(book.turnover_per_day),
        costs_paid=round_significant(book.costs_paid),
        borrow_paid=round_significant(book.borrow_paid),
        plain_sharpe=round_significant(book.plain_sharpe),
    )
    curve = BookCurve(
        dates=tuple(str(day) for day in book.dates),
        equity=tuple(round_significant(value) for value in book.equity),
        drawdown=tuple(round_significant(value) for value in book.drawdown),
    )
    return result, curve
