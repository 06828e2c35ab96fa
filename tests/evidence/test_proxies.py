"""Dependence on groups, permutation p-values, and the audit against scores that carry a group in many ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.evidence.proxies import (
    SIZE,
    STOP_EXCEEDANCES,
    AuditInput,
    audit_groups,
    audit_level,
    distance_correlation,
    maximal_correlation,
)
from alphaloom.evidence.proxies.permutation import permute_within
from alphaloom.evidence.proxies.probes import TRANSFORMS, make_probes, standardise_days

from .planted_proxies import HARMLESS, LEAKS, PlantedMarket, make_two_factors, plant

LEVEL = 0.05
SEEDS = st.integers(0, 2**32 - 1)


def draw(seed: int, names: int = 40, groups: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    codes = random.permutation(np.arange(names) % groups)
    return random.normal(size=names), codes


def define_distance_correlation(values: np.ndarray, codes: np.ndarray) -> float:
    """Return it by its definition: the correlation of two double-centred matrices of distances."""
    first, second = abs(values[:, None] - values), (codes[:, None] != codes).astype(float)
    first, second = (one - one.mean(axis=0) - one.mean(axis=1, keepdims=True) + one.mean() for one in (first, second))
    return math.sqrt((first * second).mean() / math.sqrt((first**2).mean() * (second**2).mean()))


@given(SEEDS, st.integers(2, 5))
def test_distance_correlation_is_its_definition(seed: int, groups: int) -> None:
    values, codes = draw(seed, groups=groups)
    assert distance_correlation(values, codes) == pytest.approx(define_distance_correlation(values, codes), rel=1e-9)


@given(SEEDS, st.integers(2, 4))
def test_distance_correlation_is_zero_only_for_equal_distributions(seed: int, groups: int) -> None:
    values, _ = draw(seed, names=12)
    codes = np.repeat(np.arange(groups), 12)
    assert distance_correlation(np.tile(values, groups), codes) == pytest.approx(0.0, abs=1e-7)
    wider = np.concatenate([*[values] * (groups - 1), values * 1.5])  # the same means up to a factor, another spread
    assert distance_correlation(wider, codes) > 1e-3
    assert distance_correlation(np.ones(len(codes)), codes) == 0.0
    assert distance_correlation(np.tile(values, groups), np.zeros_like(codes)) == 0.0


@given(SEEDS, st.integers(2, 5))
def test_measures_do_not_see_names_of_groups_or_order_and_hgr_no_rising_function(seed: int, groups: int) -> None:
    values, codes = draw(seed, groups=groups)
    order = np.random.default_rng(seed).permutation(len(values))
    renamed = np.random.default_rng(seed + 1).permutation(groups)[codes]
    for measure in (distance_correlation, maximal_correlation):
        found = measure(values, codes)
        assert 0.0 <= found <= 1.0
        assert measure(values, renamed) == pytest.approx(found, rel=1e-9)
        assert measure(values[order], codes[order]) == pytest.approx(found, rel=1e-9)
    assert maximal_correlation(np.exp(values) + values**3, codes) == pytest.approx(
        maximal_correlation(values, codes), rel=1e-9
    )
    assert distance_correlation(3.0 * values + 7.0, codes) == pytest.approx(distance_correlation(values, codes))


def test_maximal_correlation_is_one_for_a_function_of_the_group_and_of_the_ranks() -> None:
    values = np.arange(60.0)
    assert maximal_correlation(values, np.arange(60) // 30, degree=20) > 0.95
    bent = np.where(abs(np.arange(60) - 29.5) < 15, 1, 0)
    assert maximal_correlation(values, bent) > 0.8
    assert abs(np.corrcoef(values, bent)[0, 1]) < 1e-9


@given(SEEDS)
def test_permutations_stay_within_strata(seed: int) -> None:
    strata = np.random.default_rng(seed).integers(0, 4, 30)
    orders = permute_within(strata, 20, np.random.default_rng(seed))
    assert (strata[orders] == strata).all()
    assert (np.sort(orders, axis=1) == np.arange(30)).all()


def test_fifty_transforms_are_searched_and_a_score_without_days_is_no_score() -> None:
    market = PlantedMarket(1)
    _, days = standardise_days(market.calm)
    probes = make_probes(days, np.isfinite(market.calm))
    assert len({name for probe in probes for name in probe.names}) == 4 + TRANSFORMS
    assert all(np.isfinite(probe.features).all() for probe in probes)
    nothing = np.full_like(market.calm, np.nan)
    assert audit_groups(market.asked(nothing), ["group"], LEVEL, 1) == ()
    (constant,) = audit_groups(market.asked(np.ones_like(nothing)), ["group"], LEVEL, 1)
    assert not constant.found


def test_the_name_of_a_group_changes_nothing_and_neither_does_the_order_of_assets() -> None:
    asked = plant("mean", 3)
    (first,) = audit_groups(asked, ["group"], LEVEL, 7)
    assert audit_groups(asked, ["group"], LEVEL, 7) == (first,), "the same seed gives the same bytes"
    turned = AuditInput(asked.scores, {**asked.groups, "group": 1 - asked.groups["group"]}, {}, asked.size)
    (other,) = audit_groups(turned, ["group"], LEVEL, 7)
    assert (other.found, other.statistic) == (first.found, first.statistic)
    assert abs(other.gap) == pytest.approx(abs(first.gap))
    assert other.smallest_gap == pytest.approx(first.smallest_gap, rel=0.05)


def test_groups_of_one_name_are_audited_together_and_one_group_alone_is_not() -> None:
    market = PlantedMarket(2)
    codes = np.arange(200)
    codes[:100], codes[100:150] = 0, 1
    few = AuditInput(market.calm, {"country": codes, "one": np.zeros(200, int), "unknown": np.full(200, -1)})
    (found,) = audit_groups(few, ["country", "one", "unknown", "absent"], LEVEL, 1)
    assert (found.attribute, found.groups, found.p_with_size) == ("country", 3, None)
    assert audit_groups(AuditInput(market.calm[:, :19], {"country": codes[:19] % 2}), ["country"], LEVEL, 1) == ()


def test_thresholds_fall_with_each_audit_rise_with_findings_and_have_a_floor() -> None:
    levels = [audit_level(number, 0) for number in range(1, 60)]
    assert levels == sorted(levels, reverse=True)
    assert audit_level(5, 2) == pytest.approx(3 * audit_level(5, 0))
    assert audit_level(10_000, 0) == 1e-5


@pytest.mark.parametrize("case", LEAKS)
def test_each_planted_proxy_is_found_in_most_markets(case: str) -> None:
    found = [audit_groups(plant(case, seed), ["group"], LEVEL, seed)[0] for seed in range(3)]
    assert sum(one.found for one in found) >= 2, [one.p_value for one in found]


def test_size_that_carries_a_group_is_told_and_is_itself_an_attribute() -> None:
    carried = [audit_groups(plant("carried by size alone", seed), ["group", SIZE], LEVEL, seed) for seed in range(6)]
    assert sum(group.found for group, _ in carried) <= 2
    assert all(group.p_with_size is not None and group.p_with_size < 0.05 for group, _ in carried)
    assert all(size.found for _, size in carried)


def test_two_factors_hide_in_each_other_what_their_sum_shows() -> None:
    shown, hidden = 0, 0
    for seed in range(6):
        market = PlantedMarket(seed)
        parts = make_two_factors(market)
        shown += audit_groups(market.asked(np.add(*parts)), ["group"], LEVEL, seed)[0].found
        hidden += sum(not audit_groups(market.asked(part), ["group"], LEVEL, seed)[0].found for part in parts)
    assert shown == 6
    assert hidden >= 9


def test_harmless_scores_pass_early() -> None:
    """Fifty audits at 5 %: more than 7 found have a chance of 0.6 % under a valid test."""
    cases = ("noise", "persistent")
    found = [
        audit_groups(plant(case, seed, names=80, days=20), ["group"], LEVEL, seed)[0]
        for case in cases
        for seed in range(25)
    ]
    assert sum(one.found for one in found) <= 7
    assert np.median([one.permutations for one in found]) < 60


@pytest.mark.slow
def test_rates_of_the_planted_suite() -> None:
    """400 markets a harmless case, 100 a leak; `python -m bench.exposure_audit` prints the table; five minutes."""
    for case in HARMLESS:
        rate = np.mean([audit_groups(plant(case, seed), ["group"], LEVEL, seed)[0].found for seed in range(400)])
        assert rate <= 0.085, case  # the 99.9 % point of a binomial of 400 at 5 %
    for case in LEAKS:
        rate = np.mean([audit_groups(plant(case, seed), ["group"], LEVEL, seed)[0].found for seed in range(100)])
        assert rate >= 0.8, case


@pytest.mark.slow
def test_p_values_are_valid_and_the_smallest_gap_is_seen() -> None:
    """P-values of harmless scores are at most as small as uniform ones; a gap of the promised size is mostly found."""
    p_values = np.array([
        audit_groups(plant("persistent", seed, names=60, days=20), ["group", "second"], LEVEL, seed)[0].p_value
        for seed in range(1000)
    ])  # fmt: skip  # a list
    for level in (0.02, 0.05, 0.1, 0.2):
        assert (p_values <= level).mean() <= level + 3 * math.sqrt(level / 1000)
    seen = []
    for seed in range(100):
        market = PlantedMarket(seed)
        (calm,) = audit_groups(market.asked(market.calm), ["group"], 0.01, seed)
        gap = calm.smallest_gap * market.calm.std(axis=1, keepdims=True)
        seen.append(audit_groups(market.asked(market.calm + gap * market.group), ["group"], 0.01, seed)[0].found)
    assert 0.6 <= np.mean(seen) <= 0.97
    assert STOP_EXCEEDANCES == 5
