"""The candidate pool grows with the scored formulas, depends on the fields alone, and reads only allowed ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphaloom.evidence.windows import Window
from alphaloom.factors import parse
from alphaloom.market import Panel, SyntheticConfig, simulate
from alphaloom.search.surrogate import candidate_pool as population
from alphaloom.search.surrogate.candidate_pool import SCORES_PER_REFERENCE, CandidatePool, Sample
from alphaloom.search.surrogate.model import SurrogateModel
from alphaloom.search.surrogate.subsample import SubsampledPanel

PANEL = simulate(SyntheticConfig(seed=3, days=300, names=40)).panel
SEARCH = Window("search", 0, 200, "", "")


def of(*fields: str) -> CandidatePool:
    return CandidatePool(SubsampledPanel(PANEL, SEARCH), fields)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "POOL_STEP_FORMULAS", 30)
    monkeypatch.setattr(population, "FORMULAS_PER_SCORE", 1)
    monkeypatch.setattr(population, "REFERENCE_FORMULAS", 12)


def test_it_hangs_on_nothing_but_the_fields_and_the_count_of_scores() -> None:
    one, other = of("close", "volume"), of("close", "volume")
    first, later = one.get_reference_ranks(0), one.get_reference_ranks(SCORES_PER_REFERENCE)
    assert one.get_reference_ranks(SCORES_PER_REFERENCE) is later
    other.size(500)  # whatever was drawn meanwhile
    np.testing.assert_array_equal(other.get_reference_ranks(SCORES_PER_REFERENCE), later)
    np.testing.assert_array_equal(other.get_reference_ranks(SCORES_PER_REFERENCE - 1), first)
    assert first.shape[0] == later.shape[0] == 12
    assert first.tobytes() != later.tobytes()
    assert [member.text for member in other.members[: len(one.members)]] == [member.text for member in one.members]
    assert other.size(10) == 40


def test_its_ranks_are_those_of_a_look() -> None:
    sample = of("close", "volume")
    sample.size(100)
    places = [0, 29, 61, 30]
    looks = SubsampledPanel(PANEL, SEARCH).fingerprint([sample.members[place] for place in places])
    np.testing.assert_array_equal(sample.ranks(places), [look.ranks for look in looks])
    assert [sample.thin[place] for place in places] == [look.thin for look in looks]


def test_formulas_read_only_what_may_be_read() -> None:
    sample = of("high", "volume")
    sample.size(0)
    assert {name for member in sample.members for name in member.fields} == {"high", "volume"}


def test_a_market_s_own_columns_are_drawn_and_derived_ones_are_not() -> None:
    own = dict(PANEL.fields) | {"sentiment": PANEL.fields["volume"]}
    panel = Panel(PANEL.dates, PANEL.symbols, own, PANEL.universe, PANEL.groups, PANEL.group_labels)
    sample = CandidatePool(SubsampledPanel(panel, SEARCH), tuple(own))
    sample.size(100)
    read = {name for member in sample.members for name in member.fields}
    assert "sentiment" in read
    assert "cap" not in read


def test_a_panel_of_too_few_names_stands_for_nothing() -> None:
    few = Panel(
        PANEL.dates,
        PANEL.symbols[:5],
        {name: values[:, :5] for name, values in PANEL.fields.items()},
        PANEL.universe[:, :5],
        {},
        {},
    )
    thin = SubsampledPanel(few, SEARCH)
    drafts = [parse("close / open")]
    assert CandidatePool(thin, ("close",)).get_reference_ranks(0).shape == (0, thin.fingerprint(drafts)[0].ranks.size)
    foresight = SurrogateModel(Sample(thin, CandidatePool(thin, ("close",))))
    assert foresight.choose(drafts, 1)[1] == [0]
    assert foresight.unexplored(5) == []


def test_levels_of_back_adjusted_prices_are_not_drawn() -> None:
    adjusted = replace(PANEL, back_adjusted=True)
    thin = SubsampledPanel(adjusted, SEARCH)
    sample = CandidatePool(thin, ("close",))
    sample.size(0)
    assert sample.members
    assert not any(thin.reads_price_level(member) for member in sample.members)
    plain = of("close")
    plain.size(0)
    assert any(map(thin.reads_price_level, plain.members))
