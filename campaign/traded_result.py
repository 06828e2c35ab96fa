"""The result of a campaign with what was traded: signals, the gate's decision, the book with and without the gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import CampaignResult
from ..evidence.scoring import Costs
from ..evidence.values import LazySandbox
from ..ledger import Ledger, read_json
from ..market import Panel
from ..portfolio import simulate_targets, target_weights
from ..risk import UNITS_PER_EQUITY, Signal
from .book import gate_days
from .book_record import BookSettings
from .targets import LiveBooks, find_live_books


class TradedResult(CampaignResult):
    """A finished run that has its ledger beside it: `signals`, `decision` and `portfolio` read it."""

    @property
    def decision(self) -> dict[str, Any] | None:
        """Return the whole decision of the risk gate at the close, every rule with actual and limit; None without."""
        with self._open() as ledger:
            return next((dict(event.body) for event in ledger.events.of(self.run, "risk")), None)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Return the signals that the risk gate approved at the close."""
        rulings = (self.decision or {}).get("rulings", ())
        return tuple(Signal.restore(ruling["signal"]) for ruling in rulings if ruling["approved"])

    def portfolio(self, *, gated: bool = True) -> Any:
        """Return a vectorbt `Portfolio` of the campaign's book on the days of its backtest.

        Parameters
        ----------
        gated
            True: each day's targets are sized to the policy of the workspace and asked of the risk gate, given what is
            held, and only what it approves is traded. False: the book of the backtest (`results.book`), which is not
            sized.

        Raises
        ------
        BookUnavailable
            vectorbt is not installed.
        ValueError
            The campaign has no backtest.
        RiskError
            The combination cannot be computed: a member is retired.
        """
        days, path = read_json(self.folder / "curves.json").get("book"), self.combination
        if not days or path is None:
            raise ValueError(f"run {self.run} has no backtest: nothing was accepted, or vectorbt was not installed")
        with self._open() as ledger:
            settings = self._read_settings(ledger)
            panel, _ = settings.market.open(settings.seed)
            first, last = (int(np.searchsorted(panel.dates, np.datetime64(days["dates"][at], "D"))) for at in (0, -1))
            span, rules = slice(first - 1, last + 1), settings.evidence
            weights = np.full((panel.days, len(panel.symbols)), np.nan)
            weights[span] = target_weights(_read_score(path, panel)[span], rules.horizon_days)
            if gated:
                book = BookSettings(
                    run=self.run,
                    bps_per_side=rules.costs.bps_per_side,
                    borrow_bps_per_year=rules.costs.borrow_bps_per_year,
                    max_volume_share=0.0,
                )
                with LazySandbox(settings.sandbox) as sandbox:
                    live = find_live_books(ledger, panel, sandbox, self.run)
                weights = _gate(ledger, panel, replace(live, frames=[weights]), book, range(*span.indices(panel.days)))
        costs = Costs(rules.costs.bps_per_side, rules.costs.borrow_bps_per_year)
        return simulate_targets(weights, panel, costs=costs, span=span)

    @contextmanager
    def _open(self) -> Iterator[Ledger]:
        with Ledger.open(self.folder.parents[1], clock=lambda: datetime.now(UTC)) as ledger:
            yield ledger

    def _read_settings(self, ledger: Ledger) -> Any:
        from .campaign import Settings

        return Settings.from_record(ledger.runs.find(self.run).config["settings"])


def _read_score(path: Any, panel: Panel) -> NDArray[np.float32]:
    """Return the score of a combination's file, `[T, N]`."""
    import pandas as pd

    frame = pd.read_parquet(path)
    score = np.full((panel.days, len(panel.symbols)), np.nan, np.float32)
    columns = {symbol: column for column, symbol in enumerate(panel.symbols)}
    rows = np.searchsorted(panel.dates, frame["date"].to_numpy().astype("datetime64[D]"))
    score[rows, [columns[symbol] for symbol in frame["symbol"]]] = frame["score"].to_numpy()
    return score


def _gate(ledger: Ledger, panel: Panel, live: LiveBooks, settings: BookSettings, rows: range) -> NDArray[np.float64]:
    """Return the targets that the gate approves after each close, `[T, N]`, NaN where it approves none."""
    weights = np.full((panel.days, len(panel.symbols)), np.nan)
    columns = {symbol: column for column, symbol in enumerate(panel.symbols)}
    for row, body in zip(rows, gate_days(ledger, panel, live, settings, rows), strict=True):
        for symbol, target in body["approved"].items():
            weights[row, columns[symbol]] = target / UNITS_PER_EQUITY
    return weights
