"""The list of mechanisms: words, skeletons, draws."""

from __future__ import annotations

import numpy as np
import pytest

from alphaloom.agents.offline.mechanisms import SLOT, Mechanism, fill_skeleton, load_mechanisms
from alphaloom.factors import parse

from .doubles import FIELDS, GROUPS

NAMES = (*FIELDS, "cap", *GROUPS)


def test_there_are_at_least_forty_mechanisms_beside_the_surveys() -> None:
    listed = load_mechanisms()
    assert len({mechanism.id for mechanism in listed}) == len(listed)
    assert sum(not mechanism.survey for mechanism in listed) >= 40


@pytest.mark.parametrize("mechanism", load_mechanisms(), ids=lambda mechanism: mechanism.id)
def test_a_mechanism_says_its_cause_and_every_draw_of_its_skeletons_is_a_formula(mechanism: Mechanism) -> None:
    assert all(len(words) > 10 for words in (mechanism.statement, mechanism.other_side, mechanism.persists))
    assert mechanism.direction in (1, -1)
    names = [name for name in mechanism.fields if name in NAMES]
    for skeleton in mechanism.skeletons:
        for seed in range(8):
            expression = parse(
                fill_skeleton(skeleton, names, np.random.default_rng(seed)), fields=NAMES[:-1], groups=GROUPS
            )
            assert set(expression.fields) - set(GROUPS) <= set(mechanism.fields)


def test_a_slot_is_drawn_once_and_its_sibling_differs() -> None:
    text = fill_skeleton("{price} - {price2} + {price}", ("close", "open"), np.random.default_rng(0))
    first, second, third = text.replace("+", "-").split(" - ")
    assert first == third
    assert first != second
    assert not SLOT.search(text)


def test_a_mechanism_is_idle_where_its_data_are_missing() -> None:
    laggard = next(mechanism for mechanism in load_mechanisms() if mechanism.id == "sector_laggard")
    assert laggard.usable(NAMES)
    assert not laggard.usable(FIELDS)
