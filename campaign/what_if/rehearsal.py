"""The last days of a campaign's book once more, each asked of the risk gate given what the days before left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ...evaluation import Closing
from ...evidence import EvidenceSettings
from ...ledger import Ledger
from ...market import Panel
from ...portfolio import PaperAccount, target_weights
from ...risk import RiskLimits
from ..book import gate_days
from ..book_record import BookSettings
from ..targets import LiveBooks, RunBook

REHEARSED_DAYS: Final = 20
MAX_NAMED_REFUSALS: Final = 3
"""Refused symbols that are named for a day."""


def rehearse(
    closing: Closing, panel: Panel, rules: EvidenceSettings, asked: RiskLimits, ledger: Ledger, doubt_e8: int
) -> list[dict[str, Any]]:
    """Return what the gate would have said on the last days of the backtest to a new paper book.

    Those days were paid for by the backtest itself. Nothing is recorded, and what is filled is not held back by volume.

    Returns
    -------
    list
        For each day: the session that was decided for (`day`), how many targets were asked and approved, the first
        that were refused with the rules, and what is held at the close before: names (`held`), those of them that were
        bought on the first day and never sold (`kept`), and `gross` as a share of equity. Empty without a backtest.
    """
    if closing.curve is None or closing.score is None or closing.combination is None:
        return []
    last = int(np.searchsorted(panel.dates, np.datetime64(closing.curve.dates[-1], "D")))
    rows = range(max(last - REHEARSED_DAYS + 1, 0), last + 1)
    combination = closing.combination
    weights = {part.factor_id: float(part.sign) for part in combination.parts}
    book = RunBook(
        "this run", closing.evidence, weights, combination.rate, "", closing.tested,
        rules.horizon_days, doubt_e8, asked,
    )  # fmt: skip  # a table
    live = LiveBooks({book.run: (book, 1.0)}, {}, [target_weights(closing.score, rules.horizon_days)], panel.symbols)
    settings = BookSettings(
        bps_per_side=rules.costs.bps_per_side,
        borrow_bps_per_year=rules.costs.borrow_bps_per_year,
        max_volume_share=0.0,
    )
    days: list[dict[str, Any]] = []
    kept: set[str] | None = None
    for body in gate_days(ledger, panel, live, settings, rows):
        account = PaperAccount.restore(body["account"])
        names = {*account.holdings}
        kept = names if kept is None or not days[-1]["held"] else kept & names
        days.append({**_describe(body), "held": len(names), "kept": len(kept), "gross": _measure_gross(account)})
    return days


def _describe(body: Mapping[str, Any]) -> dict[str, Any]:
    rulings = body["decision"]["rulings"]
    refused = [row for row in rulings if not row["approved"]]
    return {
        "day": body["decided_for"],
        "asked": len(rulings),
        "approved": len(rulings) - len(refused),
        "refused": [{"asset": row["asset"], "rules": row["refusals"]} for row in refused[:MAX_NAMED_REFUSALS]],
    }


def _measure_gross(account: PaperAccount) -> float:
    return round(math.fsum(abs(weight) for weight in account.weights().values()), 6)
