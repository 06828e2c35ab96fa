"""The conclusion of a run in plain sentences, made by rule from the figures: for the report's top and the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..figures import NORMAL_QUANTILE_95, count, number, p_value_text, plural, short_id
from .cards import is_borne_out
from .gate_steps import find_deciding_step

if TYPE_CHECKING:
    from ...evaluation.closing import BookResult, FactorEntry, PlantedTruth, Results, SealedExam, SealedFactor

TRADING_DAYS_PER_YEAR = 252
RESEMBLES = 0.5
"""An accepted factor caught a planted formula if their mean absolute rank correlation is at least this."""
MAX_NAMED = 4
"""Members that are named with their figures."""
NOT_OPENED_SENTENCE = (
    "The sealed (hold-out) days were not opened, so every figure below is of days that helped to choose: expect less."
)
SEEN_SENTENCE = "These days had been opened before: this is no longer an exam on unseen data."
REFUSED_AS = {
    "redundancy": "a near-copy of the library",
    "originality": "a near-copy of a known formula",
    "incremental": "adds too little to what was accepted",
}
"""What a factor is called that a step before statistics refused; other steps are named."""


def verdict_sentence(results: Results) -> str:
    """Return the outcome in one or two sentences, in which the verdicts of trials add up to the trials."""
    without = [part for part in (_describe_refused(results.rejected), _describe_untested(results)) if part]
    if not results.trials and not results.looks_reused:
        return f"{'; '.join(['Nothing was accepted: no trial was made', *without])}."
    combinations = sum(1 for entry in results.accepted if entry.members)
    counts = ((combinations, "combination"), (len(results.accepted) - combinations, "factor"))
    accepted = " and ".join([plural(n, word) for n, word in counts if n] or ["nothing"])
    were = "were" if len(results.accepted) > 1 else "was"
    text = f"{accepted[0].upper()}{accepted[1:]} {were} accepted in {_count_trials(results)}"
    failed = sum(entry.trial is not None for entry in results.rejected)
    proven = f"{len(results.proven)} proven but not tradable alone, " if results.proven else ""
    text += f"; {proven}{len(results.watchlist) or 'none'} on the watchlist, {failed or 'none'} rejected"
    return f"{text}. Without a trial: {', '.join(without)}." if without else f"{text}."


def _count_trials(results: Results) -> str:
    reused = results.looks_reused
    again = [f"{plural(reused, 'verdict')} from trials of earlier runs"] if reused else []
    counted = [plural(results.trials, "trial")] if results.trials else []
    return " and ".join([*counted, *again])


def _describe_refused(rejected: Sequence[FactorEntry]) -> str:
    """Return how many factors were refused before any trial, by reason."""
    steps = [step.step if (step := find_deciding_step(entry)) else "other" for entry in rejected if entry.trial is None]
    reasons = sorted(Counter(steps).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{n} refused ({REFUSED_AS.get(step, step)})" for step, n in reasons)


def _describe_untested(results: Results) -> str:
    return f"{len(results.untested)} not tested" if results.untested else ""


def conclude(results: Results) -> list[str]:
    """Return what a reader may believe: the forecast and its members, the profit, the stresses that break it.

    Empty without acceptances.
    """
    if not results.accepted:
        return []
    exam = results.sealed
    if exam is None or not exam.opened:
        sentences = [NOT_OPENED_SENTENCE]
    else:
        again = [] if exam.number == 1 else [SEEN_SENTENCE]
        sentences = [_judge_forecast(results, exam) + _judge_members(results, exam), *again]
        sentences += _judge_profit(results.book)
    return [*sentences, *_judge_stress(results), *_compare_with_truth(results)]


def find_tested_combination(results: Results) -> FactorEntry | None:
    """Return the accepted combination that is traded with the weights that the gate tested."""
    combination = results.combination
    if combination is None or not combination.tested:
        return None
    factors = sorted(combination.factors)
    return next((entry for entry in results.accepted if sorted(entry.members or ()) == factors), None)


def _judge_forecast(results: Results, exam: SealedExam) -> str:
    entry = find_tested_combination(results)
    what = "the combination" if entry or len(results.accepted) != 1 else _name_traded(results.accepted[0])
    selection = entry.metrics.selection if entry else None
    before = f" ({number(selection.rank_ic, 4)} on the days that accepted it)" if selection else ""
    figures = f"RankIC {number(exam.rank_ic, 4)}{before}, t {number(exam.t, 1)}"
    if exam.p_value is None:
        return f"On the sealed (hold-out) days {what} has a {figures}."
    holds = "holds" if is_borne_out(exam) else "does not hold"
    figures += f", p {p_value_text(exam.p_value)}"
    return f"The forecast of {what} {holds} on the sealed (hold-out) days: {figures}."


def _name_traded(entry: FactorEntry) -> str:
    """Return the name of a factor whose positions follow it at the trading rate: its own RankIC is another one."""
    return f"{short_id(entry.id)}, as it would be traded,"


def _judge_members(results: Results, exam: SealedExam) -> str:
    """Return which members hold on the sealed days by themselves, and what that means; empty for fewer than two."""
    entry = find_tested_combination(results)
    names = (entry.members or ()) if entry else tuple(accepted.id for accepted in results.accepted)
    known = {name: exam.factors[name] for name in names if name in exam.factors}
    tested = {name: factor for name, factor in known.items() if factor.p_value is not None}
    if len(tested) < 2:
        return ""
    whose = f"of its {len(tested)} members" if entry else f"of the {len(tested)} accepted factors"
    holding = {name: factor for name, factor in tested.items() if is_borne_out(factor)}
    failing = {name: factor for name, factor in tested.items() if name not in holding}
    if not failing:
        return f" Alone, each {whose} holds there too: {_name_factors(holding)}."
    if not holding:
        return f" Alone, none {whose} holds there{': only their mix does' if is_borne_out(exam) else ''}."
    hold, do = ("holds" if len(holding) == 1 else "hold"), ("does" if len(failing) == 1 else "do")
    text = f" Alone, {whose}, {_name_factors(holding)} {hold} there and {_name_factors(failing)} {do} not."
    return f"{text} {_weigh_members(holding, exam)}"


def _weigh_members(holding: dict[str, SealedFactor], exam: SealedExam) -> str:
    """Return where the forecast comes from, given that some members do not hold."""
    name, best = max(holding.items(), key=lambda item: _held_rank_ic(item[1]))
    source = f"The forecast comes from {short_id(name) if len(holding) == 1 else 'these'}"
    if _held_rank_ic(best) <= (exam.rank_ic or 0.0):
        return f"{source}."
    who = "which alone has" if len(holding) == 1 else f"of which {short_id(name)} alone has"
    return f"{source}, {who} a higher RankIC than the combination."


def _held_rank_ic(factor: SealedFactor) -> float:
    """Return the RankIC in the direction in which a factor is held."""
    return (factor.rank_ic or 0.0) * factor.sign


def _name_factors(factors: dict[str, SealedFactor]) -> str:
    """Return ids with RankIC and p; beyond a few only their number."""
    shown = list(factors.items())[:MAX_NAMED]
    texts = [
        f"{short_id(name)} (RankIC {number(_held_rank_ic(factor), 4)}, p {p_value_text(factor.p_value)})"
        for name, factor in shown
    ]
    more = len(factors) - len(shown)
    return " and ".join([", ".join(texts), f"{more} more"] if more else texts)


def measure_sharpe_interval(sharpe: float, days: int) -> tuple[float, float]:
    """Return the 95 % interval of an annual Sharpe ratio.

    The bounds are those of the mean daily return, 1.96 standard errors on each side, over the deviation, annualised.
    """
    half = NORMAL_QUANTILE_95 * math.sqrt(TRADING_DAYS_PER_YEAR / days)
    return sharpe - half, sharpe + half


def _judge_profit(book: BookResult | None) -> list[str]:
    """Return whether the book on sealed days shows a profit after costs."""
    if book is None or book.window != "sealed" or book.sharpe is None or not book.days:
        return []
    low, high = measure_sharpe_interval(book.sharpe, book.days)
    figures = (
        f"the book's Sharpe ratio after costs is {number(book.sharpe, 2)} on {count(book.days)} sealed days, "
        f"95 % interval {number(low, 2)} to {number(high, 2)}"
    )
    if low > 0:
        return [f"Profit after costs is shown: {figures}."]
    if high < 0:
        return [f"The book loses after costs: {figures}."]
    return [f"Profit after costs is not shown: {figures}, which includes zero."]


def _judge_stress(results: Results) -> list[str]:
    """Return the stresses that break what would be traded, or at least one of the accepted factors."""
    entry = find_tested_combination(results)
    names = [entry.id] if entry else [accepted.id for accepted in results.accepted]
    factors = results.stress.factors if results.stress else {}
    tried = [factors[name] for name in names if name in factors]
    if not tried:
        return []
    broken = [scenario.words for factor in tried for scenario in factor.scenarios if scenario.verdict == "breaks"]
    who = "the combination" if entry else short_id(names[0]) if len(names) == 1 else "any accepted factor"
    if not broken:
        return [f"No stress test on search days breaks {who}."]
    who = "At least one accepted factor" if len(names) > 1 else who[0].upper() + who[1:] if entry else who
    return [f"{who} breaks under these stresses, tried on search days: {'; '.join(dict.fromkeys(broken))}."]


def _compare_with_truth(results: Results) -> list[str]:
    """Return which planted formula each acceptance caught; empty on prices of a file, where nobody knows the truth."""
    names = {entry.id for entry in results.accepted}
    truths = [truth for truth in results.truth or () if truth.id in names]
    if not truths:
        return []
    said = [_name_caught(truth) for truth in truths[:MAX_NAMED]]
    more = len(truths) - len(said)
    return [f"The truth of this synthetic market: {'; '.join([*said, f'{more} more'] if more else said)}."]


def _name_caught(truth: PlantedTruth) -> str:
    known = number(truth.true_on_sealed if truth.true_on_sealed is not None else truth.true_on_selection, 2, sign=True)
    caught = abs(truth.nearest_correlation or 0.0) >= RESEMBLES
    likeness = number(truth.nearest_correlation, 2, sign=True)
    what = (
        f"caught the planted {truth.nearest} (rank correlation {likeness})" if caught else "resembles nothing planted"
    )
    days = "sealed" if truth.true_on_sealed is not None else "selection"
    return (
        f"{short_id(truth.id)} {what}, and its rank correlation with the true expected return is {known} on {days} days"
    )
