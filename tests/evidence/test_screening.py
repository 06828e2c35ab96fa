"""A first look on every fifth day: near the whole sheet, and whole where it promises something."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.evidence.scoring.scorer import SCREEN_STEP_DAYS, Scorer
from alphaloom.evidence.windows import Window

from .lab import KNOWN, SMALL, engine, market

WINDOW = Window("search", 40, 380, "2010-02-26", "2011-06-16")


def looks(values: NDArray[np.float32], bar: float, *, planted: bool = True) -> Scorer:
    return Scorer(market(planted=planted), SMALL.model_copy(update={"screen_t": bar}))


def test_what_promises_something_gets_the_whole_sheet() -> None:
    values = engine(market(planted=True)).evaluate([KNOWN])[0]
    whole = looks(values, 0.0).score(values, WINDOW)
    assert looks(values, 1.0).examine(values, WINDOW) == whole
    assert looks(values, 0.0).examine(values, WINDOW) == whole


def test_a_first_look_is_the_sheet_of_every_fifth_day_and_says_so() -> None:
    values = engine(market(planted=True)).evaluate([KNOWN])[0]
    whole, first = (looks(values, bar).examine(values, WINDOW) for bar in (0.0, 1e9))
    daily = whole.daily[::SCREEN_STEP_DAYS]
    assert first.rank_ic == pytest.approx(np.nanmean(daily))
    assert first.days == np.count_nonzero(~np.isnan(daily))
    assert first.by_year == pytest.approx(
        {
            "2010": np.nanmean(daily[: -(-whole_year() // SCREEN_STEP_DAYS)]),
            "2011": np.nanmean(daily[-(-whole_year() // SCREEN_STEP_DAYS) :]),
        }
    )
    assert dict(first.decay) == pytest.approx(dict(whole.decay))
    assert "screened" in {doubt.code for doubt in first.warnings}
    assert first.turnover == pytest.approx(whole.turnover, rel=0.15)
    assert first.gross_sharpe == pytest.approx(whole.gross_sharpe, rel=0.35)
    assert first.net_sharpe < first.gross_sharpe


def whole_year() -> int:
    """Return how many of the window's days lie in its first year."""
    dates = market(planted=True).dates[WINDOW.start : WINDOW.stop].astype("datetime64[Y]")
    return int(np.count_nonzero(dates == dates[0]))


def test_little_that_is_strong_on_all_days_is_lost_by_the_first_look() -> None:
    panel = market()
    rng = np.random.default_rng(3)
    label = Scorer(panel, SMALL).label(5)
    found = []
    for strength in np.linspace(0.02, 0.12, 12):
        drawn = rng.normal(size=label.shape) + strength * np.nan_to_num(label / np.nanstd(label))
        values = np.where(panel.universe, drawn, np.nan).astype(np.float32)
        found.append(
            [Scorer(panel, SMALL.model_copy(update={"screen_t": b})).examine(values, WINDOW).t for b in (0.0, 1e9)]
        )
    whole, first = np.array(found).T
    assert (first[whole > 3] > 1).all()
    assert np.corrcoef(whole, first)[0, 1] > 0.7
