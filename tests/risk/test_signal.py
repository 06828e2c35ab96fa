"""A signal that is not made of whole numbers in order does not come to be."""

import math
from collections.abc import Callable

import pytest

from alphaloom.risk.signal import RiskError, Signal

Make = Callable[..., Signal]


@pytest.mark.parametrize("field", ["target_e8", "lo_e8", "hi_e8", "horizon_days"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.0, True, False, "1", None, 20_000_000_000])
def test_numbers_must_be_whole(signal: Make, field: str, value: object) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "signal") as caught:
        signal(**{field: value})
    assert caught.value.field == field
    assert caught.value.record()["code"] == "signal"


@pytest.mark.parametrize("field", ["asset", "reason", "evidence"])
@pytest.mark.parametrize("value", ["", 3, None, True])
def test_texts_must_say_something(signal: Make, field: str, value: object) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "signal", match="text"):
        signal(**{field: value})


@pytest.mark.parametrize(("low", "target", "high"), [(101, 100, 200), (0, 100, 99), (5, 4, 3)])
def test_bounds_must_be_in_order(signal: Make, low: int, target: int, high: int) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "signal", match="must lie between"):
        signal(target=target, lo=low, hi=high)


def test_a_signal_ends_on_a_date(signal: Make) -> None:
    with pytest.raises(RiskError, check=lambda error: error.field == "until", match="must be a date"):
        signal(until="2020-03-02")


def test_a_horizon_is_at_least_a_day(signal: Make) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "signal", match="at least 1"):
        signal(horizon_days=0)


def test_a_well_formed_signal_prints_itself(signal: Make) -> None:
    assert signal("AAA", -5).record() == {
        "asset": "AAA",
        "target_e8": -50_000,
        "lo_e8": -50_000,
        "hi_e8": -50_000,
        "horizon_days": 5,
        "reason": "test",
        "evidence": "f0",
        "until": "2020-03-02",
    }
