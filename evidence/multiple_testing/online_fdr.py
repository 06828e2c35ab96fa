"""The stream of trials: LOND, the rule that decides, and the other rules that are shown beside it.

The gate accepts a trial if its p-value is at most `lond_level`: LOND divided by the harmonic number, which controls the
false discovery rate under any dependence between trials. `apply_rules` applies further rules to the same stream, for
information. The stream is every trial on days and names that a selection window shares, in the order of opening. Trials
that were made elsewhere and only declared have no p-value: each counts as a trial without a discovery (p = 1).

The control holds for trials that do not depend on the results of earlier ones. Agents learn the verdict: accepted,
watchlist or rejected. If a person always tried the factor nearest (rank correlation 0.69) to the best of the watchlist,
a false one would be accepted in 1.0 % of campaigns of 10 trials and 2.6 % of those of 20. The thresholds there add up
to 0.41 % and 0.45 %, so this is above their sum and below the level of the stream. Adding up the formulas that did well
on a window is worse: on simulated independent formulas whose t is visible, the sum of those with a positive t is
accepted in 7.5 % of cases after 20 trials and in 80 % after 60, because the sum is one formula and no earlier trial is
counted against it (`python -m bench.adaptive` simulates this against the real gate).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Answer = tuple[list[bool], float | None]
"""Which trials are discoveries, and the threshold of the last one (None where a rule has no single threshold)."""


ANY_DEPENDENCE, POSITIVE_DEPENDENCE, INDEPENDENCE = (
    "whatever the dependence",
    "independent or alike",
    "independent looks only",
)


def gamma(number: int) -> float:
    """Return the share of the level for the trial with this number.

    Parameters
    ----------
    number
        1 for the first trial.

    Returns
    -------
    float
        ``.07720838 ln(max(j, 2)) / (j exp(sqrt(ln j)))``; the shares of all trials sum to 1.

    References
    ----------
    Javanmard and Montanari (2018), Annals of Statistics 46, 526-554; the constant of the onlineFDR package.
    """
    if number < 1:
        raise ValueError(f"number must be at least 1, got {number}")
    return 0.07720838 * math.log(max(number, 2)) / (number * math.exp(math.sqrt(math.log(number))))


def lond_level(number: int, discoveries_before: int, alpha: float = 0.05) -> float:
    """Return the significance level of a trial, valid under any dependence between trials.

    Parameters
    ----------
    number
        1 for the first trial of the stream.
    discoveries_before
        Discoveries among the trials with smaller numbers.
    alpha
        False discovery rate to hold, in (0, 1).

    Returns
    -------
    float
        ``alpha gamma_number (discoveries_before + 1) / H_number``, H being the harmonic number.

    References
    ----------
    Javanmard and Montanari (2015), arXiv:1502.06197; harmonic correction: Zrnic, Ramdas and Jordan (2021), JMLR 22.
    """
    if not 0 <= discoveries_before < number:
        raise ValueError(f"discoveries_before must be in [0, {number}), got {discoveries_before}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha}")
    harmonic = math.fsum(1.0 / step for step in range(1, number + 1))
    return alpha * gamma(number) * (discoveries_before + 1) / harmonic


@dataclass(frozen=True)
class OnlineRule:
    """A rule that decides which trials are discoveries.

    Attributes
    ----------
    holds
        The dependence between trials under which its guarantee holds.
    means
        Its description, in one sentence.
    """

    key: str
    name: str
    holds: str
    means: str
    answer: Callable[[Sequence[float], float], Answer]
    decides: bool = False


@dataclass(frozen=True)
class RuleDecision:
    """The decision of a rule on a stream: places of its discoveries, from 1, and threshold of the last trial."""

    rule: OnlineRule
    discoveries: tuple[int, ...]
    threshold: float | None


def apply_rules(p_values: Sequence[float], level: float) -> list[RuleDecision]:
    """Apply every rule to a stream.

    Parameters
    ----------
    p_values
        P-values in the order of the trials, each in [0, 1].
    level
        False discovery rate to hold (for Bonferroni: the probability of any false discovery), in (0, 1).

    Returns
    -------
    list of RuleDecision
        In the order of `ONLINE_RULES`, the gate's own rule first; an empty stream has no discovery.
    """
    answers = []
    for rule in ONLINE_RULES:
        decisions, threshold = rule.answer(p_values, level) if p_values else ([], None)
        answers.append(
            RuleDecision(
                rule, tuple(place for place, is_discovery in enumerate(decisions, start=1) if is_discovery), threshold
            )
        )
    return answers


def e_value(p_value: float) -> float:
    """Turn a p-value into an e-value: the mixture of all power calibrators.

    Parameters
    ----------
    p_value
        In [0, 1]; exactly 0 gives infinity.

    Returns
    -------
    float
        ``(1 - p + p ln p) / (p (ln p)^2)``, the integral of ``k p^(k-1)`` over k in (0, 1); 1/2 at p = 1. Its mean
        under the null is at most 1. Evidence is lost: p = 1e-4 becomes 118, not 10,000.

    References
    ----------
    Vovk and Wang (2021), Annals of Statistics 49, 1736-1754.
    """
    if not 0 <= p_value <= 1:
        raise ValueError(f"p_value must be in [0, 1], got {p_value}")
    if p_value == 0:
        return math.inf
    log = math.log(p_value)
    if abs(log) < 1e-3:  # limit and next term of the series: the quotient loses all digits here
        return 0.5 - log / 6.0
    return (1.0 - p_value + p_value * log) / (p_value * log * log)


def _apply_bonferroni(p_values: Sequence[float], level: float) -> Answer:
    threshold = level / len(p_values)
    return [p <= threshold for p in p_values], threshold


def _make_offline_rule(method: Literal["bh", "by"]) -> Callable[[Sequence[float], float], Answer]:
    """Return a rule that decides on the whole stream at once, by scipy."""

    def answer(p_values: Sequence[float], level: float) -> Answer:
        from scipy.stats import false_discovery_control

        adjusted = false_discovery_control(p_values, method=method)
        return [bool(value <= level) for value in adjusted], None

    return answer


def _make_online_rule(make: Callable[[float], Any]) -> Callable[[Sequence[float], float], Answer]:
    """Return a rule of the library `online_fdr`, which decides each trial as it comes."""

    def answer(p_values: Sequence[float], level: float) -> Answer:
        test = make(level)
        return [bool(test.test_one(p)) for p in p_values], float(test.last_test_level)

    return answer


def _make_lond(*, dependent: bool) -> Callable[[float], Any]:
    def make(level: float) -> Any:
        from online_fdr.p_values.investing.lond.lond import Lond

        return Lond(level, dependent=dependent)

    return make


def _apply_e_lond(p_values: Sequence[float], level: float) -> Answer:
    from online_fdr.e_values.sequential import ELond

    test = ELond(level)
    return [bool(test.test_one(e_value(p))) for p in p_values], None


def _make_saffron(level: float) -> Any:
    from online_fdr.p_values.investing.saffron.saffron import Saffron

    return Saffron(level, wealth=level / 2, lambda_=0.5)


def _make_lord(level: float) -> Any:
    from online_fdr.p_values.investing.lord.plus_plus import LordPlusPlus

    return LordPlusPlus(level, wealth=level / 10, reward=level)  # any other reward is refused: its proof needs this one


ONLINE_RULES = (
    OnlineRule(
        "lond_dependent",
        "LOND, harmonic",
        ANY_DEPENDENCE,
        "The rule that decides: the threshold falls with each look and rises with each discovery that neither shares a "
        "member with an earlier one nor ranks the symbols like it.",
        _make_online_rule(_make_lond(dependent=True)),
        decides=True,
    ),
    OnlineRule(
        "bonferroni",
        "Bonferroni",
        ANY_DEPENDENCE,
        "The level shared equally among the looks so far, against even one false discovery; "
        "a later look can undo an acceptance.",
        _apply_bonferroni,
    ),
    OnlineRule(
        "by",
        "Benjamini-Yekutieli",
        ANY_DEPENDENCE,
        "All looks ranked at once, with the harmonic penalty; a later look can undo an acceptance.",
        _make_offline_rule("by"),
    ),
    OnlineRule(
        "e_lond",
        "e-LOND",
        ANY_DEPENDENCE,
        "LOND on e-values; made from p-values they lose evidence, so this line is strict.",
        _apply_e_lond,
    ),
    OnlineRule(
        "bh",
        "Benjamini-Hochberg",
        POSITIVE_DEPENDENCE,
        "All looks ranked at once; a later look can undo an acceptance.",
        _make_offline_rule("bh"),
    ),
    OnlineRule(
        "lond",
        "LOND, plain",
        POSITIVE_DEPENDENCE,
        "The deciding rule without its harmonic penalty.",
        _make_online_rule(_make_lond(dependent=False)),
    ),
    OnlineRule(
        "saffron",
        "SAFFRON",
        INDEPENDENCE,
        "Looks with p above 0.5 cost nothing; factors on one panel are far from independent.",
        _make_online_rule(_make_saffron),
    ),
    OnlineRule(
        "lord_plus_plus",
        "LORD++",
        INDEPENDENCE,
        "The optimistic line: every discovery earns the level back; what it adds to the first line is hope.",
        _make_online_rule(_make_lord),
    ),
)
"""All rules that are shown: first the one that decides, then in the order of the strength of their assumptions."""
