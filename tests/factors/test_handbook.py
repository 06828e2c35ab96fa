"""The documentation of operators: every one is told whole, and the page in the repository is fresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphaloom.factors import OPERATORS
from alphaloom.factors.describe.handbook import (
    FIELD_MEANINGS,
    UNIT_WORDS,
    describe_operator,
    find_operator,
    list_foreign_spellings,
    render_page,
)
from alphaloom.factors.errors import FactorError
from alphaloom.factors.language.node import STANDARD_FIELDS
from alphaloom.factors.language.types import UNIT_RULES


@pytest.fixture(scope="module")
def written() -> str:
    return render_page()


def test_the_page_is_fresh(written: str) -> None:
    kept = Path(__file__).resolve().parents[2] / "docs" / "reference" / "operators.md"
    assert kept.read_text(encoding="utf-8") == written, f"{kept.name} is old: write it again with make reference"


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_documented_whole(name: str, written: str) -> None:
    known = describe_operator(OPERATORS[name])
    assert {"name", "signature", "meaning", "nan", "unit", "example"} <= {key for key, said in known.items() if said}
    assert (known["ns_per_cell"] is None) == bool(OPERATORS[name].definition)
    assert [argument["name"] for argument in known["arguments"]] == [
        argument.name for argument in OPERATORS[name].arguments
    ]
    assert f"### {name}\n\n`{known['signature']}`" in written


def test_every_unit_rule_and_every_field_has_words() -> None:
    assert set(UNIT_WORDS) == set(UNIT_RULES)
    assert tuple(FIELD_MEANINGS) == STANDARD_FIELDS


def test_an_operator_is_found_by_name_in_any_case_and_by_its_sign() -> None:
    assert [find_operator(name).name for name in ("ts_mean", "TS_MEAN", "-", ">=", "~")] == [
        "ts_mean",
        "ts_mean",
        "sub",
        "ge",
        "not",
    ]


def test_an_unknown_operator_is_told_the_nearest() -> None:
    with pytest.raises(FactorError, match=r"no operator 'ts_men'\nDid you mean ts_mean\?") as caught:
        find_operator("ts_men")
    assert caught.value.code == "unknown_operator"


def test_other_languages_are_named_with_their_words_and_only_where_the_whole_side_is_the_operator() -> None:
    found = {(spelling["dialect"], spelling["written"]) for spelling in list_foreign_spellings(OPERATORS["ts_mean"])}
    assert {("qlib", "Mean(x, d)"), ("worldquant", "adv{d}")} <= found
    assert all(spelling["meaning"].startswith("log(") for spelling in list_foreign_spellings(OPERATORS["log"]))
    assert ("alphagen", "Ref(x, b)") in {
        (spelling["dialect"], spelling["written"]) for spelling in list_foreign_spellings(OPERATORS["delay"])
    }
