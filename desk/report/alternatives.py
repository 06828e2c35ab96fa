"""What stands beside the gate: what other rules would have said of the looks, and the tests of the search itself."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures import count, number, p_value_text, percent, plural, short_id

__all__ = ["RulesTable", "SearchTest", "build_rules_table", "checks"]


@dataclass(frozen=True)
class RulesTable:
    """The table of rules; a line is name, when it holds, what it accepts here, found in all, p asked, what it does."""

    sentence: str
    lines: Sequence[tuple[bool, Sequence[str]]]


@dataclass(frozen=True)
class SearchTest:
    """One test of the search: what it is called, what it gave, and what that means."""

    name: str
    value: str
    means: str


def build_rules_table(results: Mapping[str, Any]) -> RulesTable | None:
    """Return what each rule says of the stream of looks; None for a run that did not record it or never looked."""
    found = results.get("stream_rules") or {}
    if not found.get("looks"):
        return None
    said = found.get("rules") or ()
    decided = {str(name) for line in said if line.get("decides") for name in line.get("accepts") or ()}
    lines = [(bool(line.get("decides")), _line(line, decided)) for line in said]
    return RulesTable(_sentence(found), lines)


def _sentence(found: Mapping[str, Any]) -> str:
    unknown = [
        f"{count(found[key])} {word}"
        for key, word in (("declared", "declared, made elsewhere"), ("unfinished", "cut short"))
        if found.get(key)
    ]
    rest = f"; of these {' and '.join(unknown)} count as looks that found nothing" if unknown else ""
    return (
        f"The stream is every look at these selection days, earlier runs included: {plural(int(found['looks']), 'look')}"
        f"{rest}. Only the first line decides, at level {percent(found.get('level'), 0)}; the others are shown beside it."
    )


def _line(line: Mapping[str, Any], decided: Collection[str]) -> list[str]:
    return [
        str(line.get("name")),
        str(line.get("holds")),
        _describe_accepted({str(name) for name in line.get("accepts") or ()}, decided),
        count(line.get("found")),
        p_value_text(line.get("p_asked")),
        str(line.get("means")),
    ]


def _describe_accepted(here: Collection[str], decided: Collection[str]) -> str:
    """Return how many factors and sets of this run a rule accepts, and which of them the deciding rule does not, or does."""
    also, without = (sorted({*one} - {*other}) for one, other in ((here, decided), (decided, here)))
    differs = [
        f"{word} {', '.join(map(short_id, names))}" for word, names in (("also", also), ("not", without)) if names
    ]
    return "; ".join([count(len(here)) if here else "nothing", *differs])


def checks(results: Mapping[str, Any]) -> list[SearchTest]:
    """Return the tests of the search that were made at the close, each with one sentence."""
    made = [
        _cross_validation_test(results.get("cross_validation") or {}),
        _overfitting(results.get("overfitting") or {}),
        _superior_ability_test(results.get("superior") or {}),
        _clusters(results.get("clusters") or {}),
    ]
    return [check for check in made if check]


def _overfitting(found: Mapping[str, Any]) -> SearchTest | None:
    if found.get("probability") is None:
        return None
    means = (
        f"Share of {count(_splits(found))} splits of the search days in which the best of {_describe_candidates(found)} on one half is "
        "no better than the median on the other; one half for noise."
    )
    return SearchTest("Probability of backtest overfitting", percent(found["probability"], 0), means)


def _splits(found: Mapping[str, Any]) -> int:
    blocks = int(found.get("blocks") or 0)
    return math.comb(blocks, blocks // 2)


def _superior_ability_test(found: Mapping[str, Any]) -> SearchTest | None:
    if found.get("consistent") is None:
        return None
    value = f"p = {p_value_text(found['consistent'])} ({p_value_text(found.get('lower'))} to {p_value_text(found.get('upper'))})"
    means = (
        f"Hansen's test that the best of {_describe_candidates(found)} earns nothing after costs, picked as it was; from the lower to the "
        f"upper p-value. Stationary bootstrap, blocks of {count(found.get('block_days'))} days in the mean, "
        f"{count(found.get('replications'))} samples. Later candidates were proposed by agents that knew these days, which "
        "no bootstrap can undo."
    )
    return SearchTest("Superior predictive ability", value, means)


def _cross_validation_test(found: Mapping[str, Any]) -> SearchTest | None:
    paths = [value for value in found.get("rank_ic") or () if value is not None]
    if not paths:
        return None
    middle = sorted(paths)[len(paths) // 2]
    sharpes = [value for value in found.get("net_sharpe") or () if value is not None]
    after = f", Sharpe after costs {_range(sharpes, 2)}" if sharpes else ""
    means = (
        f"Choosing the best of {_describe_candidates(found)} on training days gave a RankIC of "
        f"{number(found.get('rank_ic_chosen_on'), 4, sign=True)} there; held on the days left out it gave this: median and "
        f"range of {count(found.get('paths'))} paths{after}. {count(found.get('splits'))} splits, labels that overlap purged "
        f"({count(found.get('purge_days'))} days) and {count(found.get('embargo_days'))} more embargoed."
    )
    return SearchTest("Combinatorial cross-validation", f"{number(middle, 4, sign=True)} ({_range(paths, 4)})", means)


def _clusters(found: Mapping[str, Any]) -> SearchTest | None:
    if found.get("clusters") is None:
        return None
    means = (
        f"{_describe_candidates(found)[0].upper()}{_describe_candidates(found)[1:]} move together in so many groups. A Sharpe ratio deflated for that "
        "number stands on each card beside those for trials and for evaluations, never instead."
    )
    return SearchTest("Different bets, by clusters", count(found["clusters"]), means)


def _describe_candidates(found: Mapping[str, Any]) -> str:
    """Return how many candidates were compared, and of how many they are a fair sample."""
    some, scored = int(found.get("candidates") or 0), int(found.get("scored") or 0)
    return plural(some, "candidate") + (f" (of {count(scored)} scored)" if scored > some else "")


def _range(values: Sequence[float], digits: int) -> str:
    return f"{number(min(values), digits, sign=True)} to {number(max(values), digits, sign=True)}"
