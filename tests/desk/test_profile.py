"""The lines of a full sheet: fixed order, nothing for what is unknown."""

from __future__ import annotations

from alphaloom.desk.profile import curve_rows, profile_rows, spark
from alphaloom.evaluation.closing import FactorProfile, WindowMetrics


def test_nothing_is_said_of_what_is_not_there() -> None:
    assert profile_rows(FactorProfile()) == curve_rows(WindowMetrics()) == []


def test_the_order_is_fixed_and_unknown_figures_are_dashes() -> None:
    row = {"rank_ic": 0.01, "t": 2.04, "days": 100}
    regimes = {"calm": row, "rising": {"rank_ic": None, "t": None, "days": 0}}
    exposures = {"volatility": -0.5, "size": 0.25, "sector": None}
    told = dict(profile_rows(FactorProfile.read({"by_regime": regimes, "exposures": exposures})))
    assert told["RankIC by the market's regime"] == "rising — (t —), calm +0.0100 (t 2.0)"
    assert told["rank correlation with"] == "size +0.25, volatility −0.50"  # noqa: RUF001 - the report's own minus sign


def test_capacity_says_when_nothing_is_earned() -> None:
    held = {"at_10_percent_of_volume": 2.5e9, "break_even": 0.0, "unit": ""}
    [(_, told)] = profile_rows(FactorProfile.read({"capacity": held}))
    assert told.startswith("0: it earns nothing after costs to start with (trades stay below a tenth of a day")
    [(_, told)] = profile_rows(FactorProfile.read({"capacity": held | {"break_even": 1.66e6}}))
    assert told.startswith("1.66 million; with more, market impact costs all that it earns (trades stay below")
    assert told.endswith("up to 2.5 billion), in the currency of the prices")


def test_a_spark_rises_from_zero() -> None:
    assert spark([0.0, 0.5, 1.0, None]) == "▁▅█·"
    assert spark([-1.0, 0.0]) == "▁█"
    assert spark([None]) == "·"
