"""The list of mechanisms: words, skeletons, draws."""

from __future__ import annotations

import re

import numpy as np
import pytest

from alphaloom.agents.errors import AgentError
from alphaloom.agents.offline.mechanisms import SLOT, Mechanism, fill_skeleton, load_mechanisms, parse_mechanisms
from alphaloom.factors import parse

from .doubles import FIELDS, GROUPS

NAMES = (*FIELDS, "cap", *GROUPS)


SOURCE = re.compile(r"^[A-Z].*[\w.]+ \((19|20)\d\d\), .+")
"""Authors, year in brackets, title."""


def test_at_least_eighty_effects_are_documented() -> None:
    effects = [mechanism for mechanism in load_mechanisms() if not mechanism.survey]
    assert len(effects) >= 80
    assert [effect.id for effect in effects if not SOURCE.match(effect.source)] == []


def test_a_survey_states_no_mechanism() -> None:
    surveys = [mechanism for mechanism in load_mechanisms() if mechanism.survey]
    assert surveys
    assert {(survey.source, survey.refuter) for survey in surveys} == {("", "")}


@pytest.mark.parametrize("mechanism", [row for row in load_mechanisms() if not row.survey], ids=lambda row: row.id)
def test_a_refuter_is_a_formula_and_none_of_its_mechanisms_own(mechanism: Mechanism) -> None:
    rival = parse(mechanism.refuter, fields=FIELDS, groups=GROUPS)
    names = [name for name in mechanism.fields if name in NAMES]
    for skeleton in mechanism.skeletons:
        for seed in range(8):
            formula = fill_skeleton(skeleton, names, np.random.default_rng(seed))
            assert parse(formula, fields=NAMES[:-1], groups=GROUPS).core != rival.core


ENTRY = """
- id: calm
  statement: Calm stocks earn more.
  source: Doe (2001), A Title, A Journal
  other_side: Somebody who must trade.
  persists: Limits stay where they are.
  regime: any
  direction: -1
  horizon: 5
  fields: [returns]
  skeletons: ["ts_std(returns, {mid})"]
  refuter: ts_sum(returns, 5)
"""


@pytest.mark.parametrize(
    ("line", "instead", "key"),
    [
        ("  source: Doe (2001), A Title, A Journal\n", "", "source"),
        ("  refuter: ts_sum(returns, 5)\n", '  refuter: ""\n', "refuter"),
        ("direction: -1", "direction: 0", "direction"),
        ("horizon: 5", "horizon: 0", "horizon"),
        ("fields: [returns]", "fields: returns", "fields"),
        ('["ts_std(returns, {mid})"]', "[]", "skeletons"),
        ("  regime: any\n", "  regime: any\n  mood: good\n", "mood"),
    ],
)
def test_a_mistake_in_the_file_names_mechanism_and_key(line: str, instead: str, key: str) -> None:
    assert len(parse_mechanisms(ENTRY)) == 1
    with pytest.raises(AgentError, match="'calm'") as caught:
        parse_mechanisms(ENTRY.replace(line, instead))
    assert caught.value.field == f"mechanisms.yaml: calm.{key}"


def test_an_id_occurs_once() -> None:
    with pytest.raises(AgentError, match="no other mechanism"):
        parse_mechanisms(ENTRY + ENTRY)


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
