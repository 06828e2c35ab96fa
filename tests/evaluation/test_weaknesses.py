"""Each weakness is named when it is there, and only then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation.weaknesses import EXPOSURES, name_weaknesses
from alphaloom.evidence.scoring.exposures import Exposures
from alphaloom.evidence.windows import Window

WINDOW = Window("search", 0, 60, "a", "b")
SOUND: dict[str, Any] = {
    "rank_ic": 0.03,
    "t": 4.0,
    "turnover": 0.1,
    "horizon_days": 5,
    "gross_sharpe": 2.0,
    "net_sharpe": 1.0,
    "decay": {"1": 0.04, "10": 0.03},
    "by_year": {"2010": 0.03, "2011": 0.04, "2012": 0.02},
}
RNG = np.random.default_rng(0)
FRAME = RNG.normal(size=(60, 40))
EXPOSED = Exposures(
    beta=RNG.normal(size=(60, 40)),
    size=RNG.normal(size=(60, 40)),
    volatility=RNG.normal(size=(60, 40)),
    momentum=RNG.normal(size=(60, 40)),
    price=RNG.normal(size=(60, 40)),
    sector=np.zeros(40, np.int16),
)


def named(values: np.ndarray[Any, np.dtype[np.float64]] = FRAME, **changed: Any) -> dict[str, Any]:
    weaknesses = name_weaknesses(SOUND | changed, values.astype(np.float32), EXPOSED, WINDOW)
    return {weakness["code"]: weakness["value"] for weakness in weaknesses}


def test_a_sound_factor_has_none() -> None:
    assert named() == {}


@pytest.mark.parametrize(
    ("code", "value", "changed"),
    [
        ("weak", 2.9, {"t": 2.9}),
        ("weak", -2.9, {"t": -2.9}),
        ("weak", 0.0, {"t": None}),
        ("turnover", 0.14, {"turnover": 0.14}),
        ("costs", -0.1, {"net_sharpe": -0.1}),
        ("decay", 0.25, {"decay": {"1": 0.04, "10": 0.01}}),
        ("decay", -0.5, {"decay": {"1": -0.04, "10": 0.02}}),
        ("one_year", 0.0, {"by_year": {"2010": 0.09, "2011": 0.01, "2012": -0.01}}),
        ("one_year", 0.0, {"rank_ic": -0.03, "by_year": {"2010": -0.09, "2011": 0.01, "2012": -0.01}}),
    ],
)
def test_a_figure_beyond_its_bound_is_named(code: str, value: float, changed: dict[str, Any]) -> None:
    assert named(**changed) == {code: pytest.approx(value)}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"t": 2.9}, "|t| = 2.9 in sample, below the screening threshold of 3"),
        ({"t": -0.7}, "|t| = 0.7 in sample, below the screening threshold of 3"),
        ({"t": None}, "t is undefined in sample"),
        ({"turnover": 0.14}, "14% of the book is traded each day (threshold 13%)"),
        ({"net_sharpe": -0.1}, "Sharpe +2.00 before costs, -0.10 after costs"),
        ({"decay": {"1": 0.04, "10": 0.01}}, "less than half of the one-day RankIC remains at ten days (25%)"),
        (
            {"by_year": {"2010": 0.09, "2011": 0.01, "2012": -0.01}},
            "less than half of the RankIC remains without the best year (0%)",
        ),
    ],
)
def test_a_weakness_states_its_figure_and_its_threshold(changed: dict[str, Any], said: str) -> None:
    (weakness,) = name_weaknesses(SOUND | changed, FRAME.astype(np.float32), EXPOSED, WINDOW)
    assert weakness["message"] == said


@pytest.mark.parametrize(
    "changed",
    [
        {"t": -3.1},
        {"turnover": None, "gross_sharpe": None, "net_sharpe": None},
        {"decay": {"1": None, "10": 0.01}},
        {"decay": {"1": 0.04, "10": None}},
        {"by_year": {"2010": 0.09, "2011": 0.0}},  # two years say nothing about one
        {"gross_sharpe": 0.2, "net_sharpe": -1.0},
    ],
)
def test_what_is_undefined_or_within_its_bound_is_not(changed: dict[str, Any]) -> None:
    assert named(**changed) == {}


@pytest.mark.parametrize("name", ["beta", "size", "volatility", "momentum", "price"])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_exposure_in_disguise_is_named(name: str, sign: int) -> None:
    disguised = sign * getattr(EXPOSED, name) + 0.5 * FRAME
    weaknesses = name_weaknesses(SOUND, disguised.astype(np.float32), EXPOSED, WINDOW)
    assert [weakness["code"] for weakness in weaknesses] == ["exposure"]
    assert weaknesses[0]["message"].startswith(f"exposure to {EXPOSURES[name]}: rank correlation ")
    assert weaknesses[0]["message"].endswith("(threshold 0.5)")
    assert np.sign(weaknesses[0]["value"]) == sign
