"""What is said of a formula to programs: the command line and the MCP tools answer with the same facts."""

from __future__ import annotations

import json

import pytest

from alphaloom.factors import OPERATORS, ParseError, parse
from alphaloom.factors.describe.facts import check_formula, estimate_cost, explain_formula, translate_formula

KEYS = {"ok", "canonical", "id", "type", "interval", "warmup", "size", "errors", "warnings"}


def test_a_formula_that_can_be_used_has_every_fact() -> None:
    facts = check_formula("rank(ts_std(returns, 30)) * -1")
    known = parse("-rank(ts_std(returns, 30))")
    assert set(facts) >= KEYS
    assert (facts["ok"], facts["canonical"], facts["id"]) == (True, known.canonical_text, known.id)
    assert (facts["type"], facts["interval"], facts["warmup"], facts["size"]) == ("rank", [-30, 0], 30, 5)
    assert facts["errors"] == facts["warnings"] == []


def test_a_refused_formula_has_the_same_keys_and_all_its_mistakes() -> None:
    facts = check_formula("rank(clos) + ts_meen(opn, 5)")
    assert set(facts) == set(check_formula("close"))
    assert (facts["ok"], facts["id"], facts["warmup"]) == (False, None, None)
    assert [mistake["at"] for mistake in facts["errors"]] == [5, 13]
    assert all(mistake["message"] and mistake["hint"] for mistake in facts["errors"])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Mean($close, 5)", "qlib"),
        ("correlation(open, close, 5)", "worldquant"),
        ("Neg(CsRank(Sub($close, $open)))", "factorminer"),
    ],
)
def test_a_formula_of_another_language_is_recognised_and_not_guessed(text: str, named: str) -> None:
    facts = check_formula(text)
    assert not facts["ok"]
    assert named in facts["errors"][0]["hint"]
    assert check_formula(text, dialect=named)["ok"]


def test_units_that_disagree_are_no_sign_of_another_language() -> None:
    assert "can be read as" not in check_formula("close + volume")["errors"][0]["hint"]


@pytest.mark.parametrize(
    "ask", [lambda: check_formula("close", dialect="qlb"), lambda: translate_formula("close", "alphaloom", "qlb")]
)
def test_an_unknown_dialect_is_an_error_that_lists_them(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(ParseError, match=r"unknown dialect 'qlb'\nDid you mean qlib\? Dialects: alphaagent, alphagen"):
        ask()


def test_own_columns_and_groupings_may_be_named() -> None:
    facts = check_formula("group_rank(mood, country)", fields={"mood"}, groups={"country"})
    assert facts["ok"]
    theirs = translate_formula("Rank($mood, 5)", "qlib", "alphaloom", fields={"mood"})
    assert theirs["translation"].startswith("ts_rank(mood, 5")


def test_an_explanation_names_what_is_read_and_what_computes() -> None:
    facts = explain_formula(parse("indneutralize(close, IndClass.sector)", dialect="worldquant"))
    assert facts["alphaloom"] == "group_demean(close, sector)"
    assert [field["name"] for field in facts["fields"]] == ["close", "sector"]
    assert facts["operators"] == [
        {"name": "group_demean", "signature": "group_demean(x, by)", "meaning": OPERATORS["group_demean"].summary}
    ]
    assert facts["explained"].startswith("The close less the mean of its sector.")
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_cost_counts_a_shared_subtree_once_and_a_long_sum_by_its_pairs() -> None:
    def ns(text: str) -> float:
        return float(estimate_cost(parse(text))["ns_per_cell"])

    assert ns("close") == 0
    one = ns("ts_mean(close, 20)")
    assert ns("ts_mean(close, 20) * abs(ts_mean(close, 20))") == one + ns("abs(close)") + ns("close * open")
    assert ns("close + open + high") == 2 * ns("close + open")


def test_a_translation_keeps_the_meaning_and_says_what_differs() -> None:
    facts = translate_formula("correlation(close, open, 5.5)", "worldquant", "alphaloom")
    assert (facts["ok"], facts["translation"]) == (True, "ts_corr(close, open, 5)")
    assert facts["notes"] == ["the window 5.5 of correlation was floored to 5"]


def test_what_the_other_language_cannot_say_is_refused_with_the_reason() -> None:
    facts = translate_formula("ts_kurt(close, 20)", "alphaloom", "worldquant")
    assert (facts["ok"], facts["translation"]) == (False, None)
    (mistake,) = facts["errors"]
    assert (mistake["stage"], mistake["got"]) == ("dialect", "ts_kurt(close, 20)")
    assert "correlation" in mistake["hint"]


def test_a_translation_that_our_language_refuses_says_so() -> None:
    facts = translate_formula("close + volume", "worldquant", "alphaloom")
    assert facts["translation"] == "close + volume"
    assert facts["notes"][0].startswith("units do not agree: close is in units of price")
    assert (
        facts["notes"][1]
        == "alphaloom itself refuses it (types): to use it as it is, leave it in worldquant (--dialect worldquant)"
    )
