"""What scripts use: a result with its signals and books, and a paper book as a class."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import alphaloom
from alphaloom.campaign import BookSettings, TradedResult
from alphaloom.ledger import read_json
from alphaloom.market import Panel
from alphaloom.risk import RiskError

pytestmark = pytest.mark.integration


def test_a_result_has_what_the_gate_approved(finished: TradedResult) -> None:
    decision = finished.decision
    assert decision is not None
    assert decision["id"] == finished.record["signals"]["id"]
    assert len(finished.signals) == finished.record["signals"]["approved"] > 0
    assert {one.asset for one in finished.signals} <= {row["asset"] for row in decision["rulings"]}


@pytest.mark.skipif(find_spec("vectorbt") is None, reason="vectorbt is not installed")
def test_the_book_without_the_gate_is_the_backtest_and_the_gate_changes_it(finished: TradedResult) -> None:
    plain, gated = finished.portfolio(gated=False), finished.portfolio()
    value = plain.value()
    book = read_json(finished.folder / "curves.json")["book"]
    assert [str(day.date()) for day in value.index] == book["dates"]
    recorded = finished.record["book"]
    assert value.iloc[-1] / 1e8 - recorded["borrow_paid"] == pytest.approx(book["equity"][-1], rel=1e-3)
    assert len(gated.value()) == len(value)
    assert np.abs(gated.asset_value().to_numpy()).max() > 0
    assert not np.allclose(gated.value(), value)


def test_a_paper_book_of_a_script(workspace: Path, panel: Panel) -> None:
    book = alphaloom.Book.open("mine", workspace=workspace, settings=BookSettings(cash=5e5))
    assert book.to_frame().empty
    since = panel.dates[-3].astype(object)
    assert len(book.step(panel, "small", since=since)) == 3
    assert book.step(panel, "small") == []
    assert book.deposit(1e4, by="Ada").amount == 1e4
    assert book.replay() == {}
    frame = alphaloom.Book.open("mine", workspace=workspace).to_frame()
    assert len(frame) == len(book.steps()) == 3
    assert frame["daily_return"].isna().tolist() == [True, False, False]
    np.testing.assert_allclose(frame["equity"].pct_change()[1:], frame["daily_return"][1:])
    with pytest.raises(RiskError, match="other settings"):
        alphaloom.Book.open("mine", workspace=workspace, settings=BookSettings())
