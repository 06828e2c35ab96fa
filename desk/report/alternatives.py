"""Results shown beside the gate, which decide nothing: other multiple-testing rules, and tests of the search."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..figures import count, number, p_value_text, percent, plural, short_id

if TYPE_CHECKING:
    from ...evaluation.closing import (
        BetClusters,
        CandidateTest,
        CrossValidationTest,
        OverfittingTest,
        Results,
        StreamRule,
        StreamRules,
        SuperiorityTest,
    )

SEARCH_TESTS_NOTE = (
    "What each asks. Cross-validation: does the RankIC of the best repeat on other days? Overfitting: does the best by "
    "Sharpe ratio after costs stay above the median candidate, which may lose money itself? Superior predictive "
    "ability: does the best earn anything after costs? Deflated Sharpe (on a card): does this factor? For money, "
    "believe the last two, and the sealed (hold-out) days before all of them."
)


@dataclass(frozen=True)
class RulesTable:
    """The table of rules: name, condition, accepted here, discoveries in all, p required, description."""

    sentence: str
    lines: Sequence[tuple[bool, Sequence[str]]]
    agreement: str


@dataclass(frozen=True)
class SearchTest:
    """One test of the search: name, result, and meaning."""

    name: str
    value: str
    means: str


def build_rules_table(stream: StreamRules | None) -> RulesTable | None:
    """Return each rule's result on the stream of tests; None for a run that recorded none."""
    if stream is None or not stream.looks:
        return None
    decided = {name for rule in stream.rules if rule.decides for name in rule.accepts}
    lines = [(rule.decides, _list_cells(rule, decided)) for rule in stream.rules]
    return RulesTable(_describe_stream(stream), lines, _describe_agreement(stream, decided))


def _describe_agreement(stream: StreamRules, decided: Collection[str]) -> str:
    """Return that all rules accept the same factors of this run; empty if one differs."""
    others = [rule for rule in stream.rules if not rule.decides]
    if not others or any({*rule.accepts} != {*decided} for rule in others):
        return ""
    same = "the same" if decided else "nothing either"
    return f"In this run all {len(others)} other rules accept {same} ({'; '.join(rule.name for rule in others)})."


def _describe_stream(stream: StreamRules) -> str:
    unknown = [
        f"{count(amount)} {word}"
        for amount, word in ((stream.declared, "declared, made elsewhere"), (stream.unfinished, "cut short"))
        if amount
    ]
    remark = f"; of these {' and '.join(unknown)} count as looks that found nothing" if unknown else ""
    return (
        f"The stream is every look at these selection days, earlier runs included: {plural(stream.looks, 'look')}"
        f"{remark}. Only the LOND rule decides, at level {percent(stream.level, 0)}; the others are shown beside it."
    )


def _list_cells(rule: StreamRule, decided: Collection[str]) -> list[str]:
    return [
        rule.name,
        rule.holds,
        _describe_accepted(set(rule.accepts), decided),
        count(rule.found),
        p_value_text(rule.p_asked),
        rule.means,
    ]


def _describe_accepted(accepted: Collection[str], decided: Collection[str]) -> str:
    """Return the number of a rule's acceptances in this run, and the differences from the deciding rule."""
    also, without = sorted({*accepted} - {*decided}), sorted({*decided} - {*accepted})
    differs = [
        f"{word} {', '.join(map(short_id, names))}" for word, names in (("also", also), ("not", without)) if names
    ]
    return "; ".join([count(len(accepted)) if accepted else "nothing", *differs])


def list_search_tests(results: Results) -> list[SearchTest]:
    """Return the tests of the search at its close, each with one sentence."""
    tests = [
        _describe_cross_validation(results.cross_validation),
        _describe_overfitting(results.overfitting),
        _describe_superior_ability(results.superior),
        _describe_clusters(results.clusters),
    ]
    return [test for test in tests if test]


def _describe_overfitting(test: OverfittingTest | None) -> SearchTest | None:
    if test is None or test.probability is None:
        return None
    means = (
        f"Share of {count(math.comb(test.blocks, test.blocks // 2))} splits of the search days in which the best of "
        f"{_describe_candidates(test)} on one half is no better than the median on the other; one half for noise."
    )
    return SearchTest("Probability of backtest overfitting", percent(test.probability, 0), means)


def _describe_superior_ability(test: SuperiorityTest | None) -> SearchTest | None:
    if test is None or test.consistent is None:
        return None
    value = f"p = {p_value_text(test.consistent)} ({p_value_text(test.lower)} to {p_value_text(test.upper)})"
    means = (
        f"Hansen's test that the best of {_describe_candidates(test)} earns nothing after costs, picked as it was; "
        f"from the lower to the upper p-value. "
        f"Stationary bootstrap, blocks of {count(test.block_days)} days in the mean, "
        f"{count(test.replications)} samples. Later candidates were proposed by agents that knew these days, which "
        "no bootstrap can undo."
    )
    return SearchTest("Superior predictive ability", value, means)


def _describe_cross_validation(test: CrossValidationTest | None) -> SearchTest | None:
    paths = [value for value in test.rank_ic if value is not None] if test else []
    if test is None or not paths:
        return None
    middle = sorted(paths)[len(paths) // 2]
    sharpes = [value for value in test.net_sharpe if value is not None]
    after = f", Sharpe after costs {_format_range(sharpes, 2)}" if sharpes else ""
    means = (
        f"Choosing the best of {_describe_candidates(test)} on training days gave a RankIC of "
        f"{number(test.rank_ic_chosen_on, 4, sign=True)} there; held on the days left out it gave this: median and "
        f"range of {count(test.paths)} paths{after}. {count(test.splits)} splits, labels that overlap purged "
        f"({count(test.purge_days)} days) and {count(test.embargo_days)} more embargoed."
    )
    return SearchTest(
        "Combinatorial cross-validation", f"{number(middle, 4, sign=True)} ({_format_range(paths, 4)})", means
    )


def _describe_clusters(bets: BetClusters | None) -> SearchTest | None:
    if bets is None or bets.clusters is None:
        return None
    candidates = _describe_candidates(bets)
    means = (
        f"{candidates[0].upper()}{candidates[1:]} move together in so many groups. A Sharpe ratio deflated for that "
        "number stands on each card beside those for trials and for evaluations, never instead."
    )
    return SearchTest("Different bets, by clusters", count(bets.clusters), means)


def _describe_candidates(test: CandidateTest) -> str:
    """Return the number of candidates compared, and of scored ones if these are a sample."""
    sample = f" (of {count(test.scored)} scored)" if test.scored > test.candidates else ""
    return plural(test.candidates, "candidate") + sample


def _format_range(values: Sequence[float], digits: int) -> str:
    return f"{number(min(values), digits, sign=True)} to {number(max(values), digits, sign=True)}"
