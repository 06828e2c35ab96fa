from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from alphaloom.factors import (
    Engine,
    ParseError,
    PlantSettings,
    build_planted_market,
    draw_plants,
    parse,
    row_rank_correlation,
)
from alphaloom.factors.space.planted import TEXTBOOK
from alphaloom.market import Plant, SyntheticConfig

SMALL = SyntheticConfig(seed=3, days=300, names=60)


def test_plants_follow_from_the_seed_and_keep_the_stated_range() -> None:
    settings = PlantSettings(count=5, rank_ic=(0.02, 0.03))
    plants = draw_plants(3, settings)
    assert [plant.text for plant in plants] == [plant.text for plant in draw_plants(3, settings)]
    assert len({plant.text for plant in plants}) == 5
    assert all(0.02 <= plant.rank_ic <= 0.03 for plant in plants)
    assert sorted((plant.end < 1, plant.half_life_days is not None) for plant in plants) == [
        (False, False),
        (False, False),
        (False, False),
        (False, True),
        (True, False),
    ]


def test_plants_are_formulas_that_no_textbook_knows() -> None:
    plants = draw_plants(1, PlantSettings(count=3))
    engine = Engine(build_planted_market(SyntheticConfig(seed=8, days=400, names=120), PlantSettings(count=0)).panel)
    known = engine.evaluate(TEXTBOOK)
    for plant in plants:
        assert parse(plant.text).canonical_text == plant.text
        values = engine.evaluate([plant.text])[0]
        assert max(abs(np.nanmean(row_rank_correlation(values, other))) for other in known) < 0.65


def test_a_market_states_what_was_planted() -> None:
    market = build_planted_market(SMALL, PlantSettings(count=2, fading=0, dying=0))
    assert len(market.plants) == 2
    assert np.abs(market.expected_return).max() > 0
    for plant in market.plants:
        values = Engine(market.panel).evaluate([plant.text])[0]
        assert np.nanmean(row_rank_correlation(values, market.expected_return)) > 0.2


def test_a_null_market_holds_nothing() -> None:
    market = build_planted_market(SyntheticConfig(seed=3, days=300, names=60, nothing=True))
    assert market.plants == ()
    assert not market.expected_return.any()


def test_more_plants_can_be_added() -> None:
    extra = Plant("log(volume)", lambda panel: np.log(panel.fields["volume"]), 0.05)
    assert [plant.text for plant in build_planted_market(SMALL, PlantSettings(count=0), [extra]).plants] == [
        "log(volume)"
    ]


@pytest.mark.parametrize("wrong", [{"rank_ic": (0.04, 0.01)}, {"fading": 0.7, "dying": 0.7}, {"counts": 3}])
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PlantSettings.model_validate(wrong)


def test_what_is_excluded_must_be_a_formula() -> None:
    with pytest.raises(ParseError):
        draw_plants(1, exclude=["no such thing"])
