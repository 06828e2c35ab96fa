"""The rules beside the gate against the published examples, against each other, and against their own definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from online_fdr.e_values.sequential import ELond
from online_fdr.p_values.investing.lond.lond import Lond
from online_fdr.p_values.investing.lord.plus_plus import LordPlusPlus
from online_fdr.p_values.investing.saffron.saffron import Saffron
from scipy.integrate import quad
from scipy.stats import norm

from alphaloom.evidence.multiple_testing.online_fdr import ONLINE_RULES, apply_rules, e_value, gamma, lond_level

VIGNETTE = [2.90e-14, 0.06743, 0.01514, 0.08174, 0.00171, 3.61e-05, 0.79149, 0.27201, 0.28295, 7.59e-08]
VIGNETTE += [0.69274, 0.30443, 0.000487, 0.72342, 0.54757]
CARDIAC = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
CARDIAC += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
FACTOR_T = [1.99, 2.63, 2.21, 3.43, 2.17, 2.64, 4.56, 5.34, 2.75, 2.49]
streams = st.lists(st.floats(1e-12, 1), min_size=1, max_size=40)


def found(p_values: list[float], level: float = 0.05) -> dict[str, tuple[int, ...]]:
    return {said.rule.key: said.discoveries for said in apply_rules(p_values, level)}


def test_the_stream_of_the_vignette() -> None:
    said = found(VIGNETTE)
    assert said["lond_dependent"] == (1, 6, 10)
    assert said["lond"] == said["lord_plus_plus"] == (1, 6, 10, 13)
    assert said["saffron"] == (1, 5, 6, 10, 13)


def test_the_levels_of_the_vignette() -> None:
    lord, saffron = LordPlusPlus(0.05, 0.005, 0.05), Saffron(0.05, 0.025, 0.5)
    levels = []
    for p in VIGNETTE[:4]:
        lord.test_one(p)
        levels.append(lord.last_test_level)
    assert levels == pytest.approx([0.000267584, 0.00246645, 0.000573282, 0.00048728], rel=2e-6)
    saffron.test_one(VIGNETTE[0])
    assert saffron.last_test_level == pytest.approx(0.00546863, rel=1e-6)


def test_lord_refuses_a_reward_that_its_proof_does_not_cover() -> None:
    with pytest.raises(ValueError, match="reward == alpha"):
        LordPlusPlus(0.05, 0.005, 0.045)


def test_the_example_of_benjamini_and_hochberg() -> None:
    said = {key: len(places) for key, places in found(CARDIAC).items()}
    assert (said["bonferroni"], said["bh"], said["by"]) == (3, 4, 3)


def test_the_ten_factors_of_harvey_liu_and_zhu() -> None:
    p_values = [float(2 * norm.sf(t)) for t in FACTOR_T]
    said = {key: len(places) for key, places in found(p_values).items()}
    assert (said["bonferroni"], said["by"], said["bh"]) == (3, 6, 10)
    assert sum(holm(p_values, 0.05)) == 6


def holm(p_values: list[float], level: float) -> list[bool]:
    """Step down, as it is defined; not shown anywhere, but part of the published example."""
    ranked = sorted(p_values)
    stop = next((k for k, p in enumerate(ranked) if p > level / (len(ranked) - k)), len(ranked))
    return [p in ranked[:stop] for p in p_values]


@given(streams)
def test_the_harmonic_line_is_the_gates_own_rule(p_values: list[float]) -> None:
    library, discoveries = Lond(0.05, dependent=True), 0
    for number, p in enumerate(p_values, start=1):
        level = lond_level(number, discoveries)
        yes = library.test_one(p)
        assert library.last_test_level == pytest.approx(level, rel=1e-12)
        assert yes == (p <= level) or p == pytest.approx(level, rel=1e-12)
        discoveries += yes


@given(streams)
def test_e_lond_rejects_above_the_reciprocal_of_its_level(p_values: list[float]) -> None:
    test, discoveries = ELond(0.05), 0
    for number, p in enumerate(p_values, start=1):
        expected = e_value(p) >= 1 / (0.05 * gamma(number) * (discoveries + 1)) * (1 - 1e-12)
        assert test.test_one(e_value(p)) == expected
        discoveries += expected
    assert len(found(p_values)["e_lond"]) == discoveries


@pytest.mark.parametrize("p", [1e-12, 1e-4, 0.05, 0.3, 0.999, 0.99999])
def test_an_e_value_is_the_mixture_of_all_power_calibrators(p: float) -> None:
    mixed, _ = quad(lambda power: power * p ** (power - 1), 0, 1, epsabs=0, epsrel=1e-11, limit=200)
    assert e_value(p) == pytest.approx(mixed, rel=1e-6)


def test_an_e_value_has_mean_one_under_the_null() -> None:
    total, _ = quad(lambda x: e_value(math.exp(-x)) * math.exp(-x), 0, 700, limit=500)
    assert 0.99 < total <= 1.0  # what is missing lies below exp(-700)
    assert e_value(0) == math.inf
    with pytest.raises(ValueError, match="p_value"):
        e_value(1.1)


@given(streams, st.floats(0.001, 0.4))
def test_stricter_rules_find_no_more(p_values: list[float], level: float) -> None:
    said = {key: set(places) for key, places in found(p_values, level).items()}
    assert said["by"] <= said["bh"]
    assert said["bonferroni"] <= said["bh"]
    assert said["lond_dependent"] <= said["lond"]


@given(streams)
def test_what_comes_later_changes_no_online_decision(p_values: list[float]) -> None:
    whole, first = found(p_values), found(p_values[: len(p_values) // 2 + 1])
    for key in ("lond_dependent", "lond", "lord_plus_plus", "saffron", "e_lond"):
        assert tuple(place for place in whole[key] if place <= len(p_values) // 2 + 1) == first[key]


def test_an_empty_stream_has_no_discoveries() -> None:
    assert all((said.discoveries, said.threshold) == ((), None) for said in apply_rules([], 0.05))


def test_one_rule_decides_and_it_is_shown_first() -> None:
    assert [rule.key for rule in ONLINE_RULES if rule.decides] == [ONLINE_RULES[0].key] == ["lond_dependent"]
    assert all(rule.means.endswith(".") and rule.means.count(". ") == 0 for rule in ONLINE_RULES)  # one sentence each


def test_no_rule_finds_much_in_noise() -> None:
    rng = np.random.default_rng(0)
    any_found = {rule.key: 0 for rule in ONLINE_RULES}
    for _ in range(400):
        for key, places in found(list(rng.random(30))).items():
            any_found[key] += bool(places)
    assert all(count <= 400 * 0.05 + 3.1 * math.sqrt(400 * 0.05 * 0.95) for count in any_found.values())
