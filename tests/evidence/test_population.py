"""The sample that stands for all formulas: it grows with what is scored, by the fields alone, of what may be looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphaloom.evidence.windows import Window
from alphaloom.factors import parse
from alphaloom.market import Panel, SyntheticConfig, simulate
from alphaloom.search.surrogate import candidate_pool as population
from alphaloom.search.surrogate.candidate_pool import SCORES_A_RULER, Population
from alphaloom.search.surrogate.model import Foresight
from alphaloom.search.surrogate.sample_store import Sample
from alphaloom.search.surrogate.subsample import Thin

PANEL = simulate(SyntheticConfig(seed=3, days=300, names=40)).panel
SEARCH = Window("search", 0, 200, "", "")


def of(*fields: str) -> Population:
    return Population(Thin(PANEL, SEARCH), fields)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "STEP", 30)
    monkeypatch.setattr(population, "A_SCORE", 1)
    monkeypatch.setattr(population, "RULER", 12)


def test_it_hangs_on_nothing_but_the_fields_and_the_count_of_scores() -> None:
    one, other = of("close", "volume"), of("close", "volume")
    first, later = one.ruler(0), one.ruler(SCORES_A_RULER)
    assert one.ruler(SCORES_A_RULER) is later
    other.size(500)  # whatever was drawn meanwhile
    np.testing.assert_array_equal(other.ruler(SCORES_A_RULER), later)
    np.testing.assert_array_equal(other.ruler(SCORES_A_RULER - 1), first)
    assert first.shape[0] == later.shape[0] == 12
    assert first.tobytes() != later.tobytes()
    assert [each.text for each in other.members[: len(one.members)]] == [each.text for each in one.members]
    assert other.size(10) == 40


def test_its_ranks_are_those_of_a_look() -> None:
    sample = of("close", "volume")
    sample.size(100)
    places = [0, 29, 61, 30]
    looks = Thin(PANEL, SEARCH).look([sample.members[place] for place in places])
    np.testing.assert_array_equal(sample.ranks(places), [look.ranks for look in looks])
    assert [sample.thin[place] for place in places] == [look.thin for look in looks]


def test_formulas_read_only_what_may_be_read() -> None:
    sample = of("high", "volume")
    sample.size(0)
    assert {name for each in sample.members for name in each.fields} == {"high", "volume"}


def test_a_market_s_own_columns_are_drawn_and_derived_ones_are_not() -> None:
    own = dict(PANEL.fields) | {"sentiment": PANEL.fields["volume"]}
    panel = Panel(PANEL.dates, PANEL.symbols, own, PANEL.universe, PANEL.groups, PANEL.group_labels)
    sample = Population(Thin(panel, SEARCH), tuple(own))
    sample.size(100)
    read = {name for each in sample.members for name in each.fields}
    assert "sentiment" in read
    assert "cap" not in read


def test_a_panel_of_too_few_names_stands_for_nothing() -> None:
    few = Panel(
        PANEL.dates, PANEL.symbols[:5], {name: values[:, :5] for name, values in PANEL.fields.items()},
        PANEL.universe[:, :5], {}, {},
    )  # fmt: skip
    thin = Thin(few, SEARCH)
    drafts = [parse("close / open")]
    assert Population(thin, ("close",)).ruler(0).shape == (0, thin.look(drafts)[0].ranks.size)
    foresight = Foresight(Sample(thin, Population(thin, ("close",))))
    assert foresight.choose(drafts, 1)[1] == [0]
    assert foresight.unexplored(5) == []


def test_levels_of_back_adjusted_prices_are_not_drawn() -> None:
    adjusted = replace(PANEL, back_adjusted=True)
    thin = Thin(adjusted, SEARCH)
    sample = Population(thin, ("close",))
    sample.size(0)
    assert sample.members
    assert not any(thin.knows_later(each) for each in sample.members)
    plain = of("close")
    plain.size(0)
    assert any(map(thin.knows_later, plain.members))
