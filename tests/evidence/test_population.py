"""The sample that stands for all formulas: the same at every asking, another after some scores, of the fields that may be read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphaloom.evidence import population
from alphaloom.evidence.foresight import Foresight
from alphaloom.evidence.population import SCORES_A_SAMPLE, Population
from alphaloom.evidence.thin import Thin
from alphaloom.evidence.windows import Window
from alphaloom.factors import parse
from alphaloom.market import Panel, SyntheticConfig, simulate

PANEL = simulate(SyntheticConfig(seed=3, days=300, names=40)).panel


def of(*fields: str) -> Population:
    return Population(Thin(PANEL, Window("search", 0, 200, "", "")), fields)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "COUNT", 12)


def test_it_hangs_on_nothing_but_the_fields_and_the_count_of_scores() -> None:
    one, other = of("close", "volume"), of("close", "volume")
    first, later = one.ranks(0), one.ranks(SCORES_A_SAMPLE)
    np.testing.assert_array_equal(other.ranks(SCORES_A_SAMPLE), later)
    np.testing.assert_array_equal(other.ranks(SCORES_A_SAMPLE - 1), first)
    assert len(first) <= 12
    assert first.shape[0] > 6
    assert first.tobytes() != later.tobytes()


def test_formulas_read_only_what_may_be_read() -> None:
    rng = np.random.default_rng(0)
    assert {name for each in of("high", "volume")._drawn(rng) for name in each.fields} == {"high", "volume"}


def test_a_market_s_own_columns_are_drawn_and_derived_ones_are_not() -> None:
    own = dict(PANEL.fields) | {"sentiment": PANEL.fields["volume"]}
    panel = Panel(PANEL.dates, PANEL.symbols, own, PANEL.universe, PANEL.groups, PANEL.group_labels)
    drawn = Population(Thin(panel, Window("search", 0, 200, "", "")), tuple(own))._drawn(np.random.default_rng(0))
    read = {name for each in drawn for name in each.fields}
    assert "sentiment" in read
    assert "cap" not in read


def test_a_panel_of_too_few_names_stands_for_nothing() -> None:
    few = Panel(
        PANEL.dates, PANEL.symbols[:5], {name: values[:, :5] for name, values in PANEL.fields.items()},
        PANEL.universe[:, :5], {}, {},
    )  # fmt: skip
    thin = Thin(few, Window("search", 0, 200, "", ""))
    drafts = [parse("close / open")]
    assert Population(thin, ("close",)).ranks(0).shape == (0, thin.look(drafts)[0].ranks.size)
    assert Foresight(thin, Population(thin, ("close",))).choose(drafts, 1)[1] == [0]


def test_levels_of_back_adjusted_prices_are_not_drawn() -> None:
    adjusted = replace(PANEL, back_adjusted=True)
    thin = Thin(adjusted, Window("search", 0, 200, "", ""))
    drawn = Population(thin, ("close",))._drawn(np.random.default_rng(0))
    assert drawn
    assert not any(thin.knows_later(each) for each in drawn)
    assert any(map(thin.knows_later, of("close")._drawn(np.random.default_rng(0))))
