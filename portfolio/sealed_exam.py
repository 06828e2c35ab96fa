"""The sealed (hold-out) exam: recorded before the days are read, taken once per run, numbered over all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..evidence.gate import confirm_p_value, run_mean_test
from ..evidence.scoring import FactorMetrics, round_significant
from ..ledger import Ledger, Opening, WindowKey
from .combination import CombinationPart, JudgedRun

SEALED_SERIES_EVENT = "sealed-series"
"""Kind of the events with the daily RankIC of an exam, by factor; the combination's key is `COMBINATION_KEY`."""
COMBINATION_KEY = "combination"


class RecordedRun(JudgedRun, Protocol):
    """A run in a ledger."""

    @property
    def run(self) -> str:
        """Return the run's id."""

    @property
    def ledger(self) -> Ledger:
        """Return the ledger."""


def run_sealed_exam(
    judged: RecordedRun, parts: Sequence[CombinationPart], score: NDArray[np.float32], reason: str
) -> dict[str, Any]:
    """Open the sealed window, and return the metrics of the combination `[T, N]` and of each part.

    The opening is written to the ledger before the days are read. A run that opened the window and was cut short
    continues under the same number and the recorded reason. The daily RankIC of each is recorded, so that nobody has to
    look at these days again for a part of them.
    """
    window, ledger = judged.windows.sealed, judged.ledger
    key = judged.windows.key(window)
    number = ledger.trials.record_opening(Opening(judged.run, key, reason))
    recorded = find_own_opening(judged)
    sheet = judged.scorer.score(score, window, 1)
    singles = {part.factor_id: judged.scorer.score(part.values, window, part.sign) for part in parts}
    for name, values in ((COMBINATION_KEY, score), *((part.factor_id, part.values) for part in parts)):
        _record_series(judged, name, values)
    return {
        "opened": True,
        "number": number,
        "reason": recorded.reason if recorded else reason,
        **sheet.record(),
        **_measure_significance(judged, score, 1),
        "factors": {part.factor_id: _summarise_part(judged, part, singles[part.factor_id]) for part in parts},
        "earlier": list_earlier_openings(ledger, key, judged.run),
    }


def _record_series(judged: RecordedRun, name: str, values: NDArray[np.float32]) -> None:
    """Record the daily RankIC of the opened days, of the values as they are; the first record stands."""
    events = judged.ledger.events
    if events.get(judged.run, SEALED_SERIES_EVENT, name) is None:
        series = judged.scorer.record_daily_rank_ic(values, judged.windows.sealed)
        events.record(judged.run, SEALED_SERIES_EVENT, name, series)


def find_own_opening(judged: RecordedRun) -> Opening | None:
    """Return the opening that this run recorded, or None."""
    key = judged.windows.key(judged.windows.sealed)
    own_openings = [
        opening for opening in judged.ledger.trials.openings(key) if opening.run == judged.run and opening.window == key
    ]
    return own_openings[0] if own_openings else None


def list_earlier_openings(ledger: Ledger, key: WindowKey, run: str) -> list[dict[str, Any]]:
    """Return openings by other runs of days and names shared with a window, before this run's own."""
    openings = ledger.trials.openings(key)
    own_number = next((opening.number for opening in openings if opening.run == run and opening.window == key), None)
    others = [
        opening for opening in openings if opening.run != run and (own_number is None or opening.number < own_number)
    ]
    return [
        {
            "number": opening.number,
            "reason": opening.reason,
            "first": opening.window.first_day,
            "last": opening.window.last_day,
        }
        for opening in sorted(others, key=lambda opening: (opening.number, opening.window.first_day, opening.reason))
    ]


def _summarise_part(judged: RecordedRun, part: CombinationPart, sheet: FactorMetrics) -> dict[str, Any]:
    """Return the sealed metrics of one factor in the direction in which it is held."""
    named_figures = {"rank_ic": sheet.rank_ic, "t": sheet.t, "net_sharpe": sheet.net_sharpe}
    figures = {name: round_significant(value) for name, value in named_figures.items()}
    return {"sign": part.sign, "days": sheet.days, **figures, **_measure_significance(judged, part.values, part.sign)}


def _measure_significance(judged: RecordedRun, values: NDArray[np.float32], sign: int) -> dict[str, Any]:
    """Return the one-sided p-value of a single exam by the test of the settings; None for too few days.

    Where the ranks held are tested, the labels must agree as at the gate, and their p-value is returned too.
    """
    scorer, settings, window = judged.scorer, judged.settings, judged.windows.sealed
    daily, holding = scorer.daily_rank_ic(values, window), scorer.held(values, window)
    labels_test = run_mean_test(daily, None, settings.horizon_days, scorer.lag)
    if labels_test.null is None:
        return {"p_value": None}
    labels_p = labels_test.p_value(sign)
    if holding is None:
        return {"p_value": round_significant(labels_p)}
    holding_p = run_mean_test(daily, holding, settings.horizon_days, scorer.lag).p_value(sign)
    return {
        "p_value": round_significant(confirm_p_value(holding_p, labels_p, settings.watch_p)),
        "test": "held",
        "p_labels": round_significant(labels_p),
    }
