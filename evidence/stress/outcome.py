"""What became of a factor under stress: figures, words, and the sentence that says where it breaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..scoring.metrics import round_significant
from .judgement import StressReading, StressWord, judge_readings
from .scenario import Scenario

__all__ = ["STRESS_RULE_TEXT", "StressOutcome", "StressResult", "conclude"]

STRESS_RULE_TEXT = (
    "A factor breaks where it keeps under half of a figure and the loss is beyond noise (Newey-West error of the difference, "
    "Holm's rule at 0.05 over all figures), or where under half of its cells have a value. A figure is judged where the clean "
    "RankIC has a t of 2 and there are days enough; a book, where its return before costs has it too and it earns its costs."
)
LOSING_BOOK_TEXT = "Its book loses after costs without any stress, so no book was judged."
MIN_COVERAGE_KEPT = 0.5
"""Share of its cells below which a factor on spoiled data has fallen silent: it breaks, whatever the rest of them say."""
WORST_FIRST: Sequence[StressWord] = ("breaks", "weakens", "unclear", "holds", "untested")
Told = tuple[str, StressReading, StressWord]


@dataclass(frozen=True)
class StressOutcome:
    """A factor under one stress; a figure that the stress does not touch is None.

    Attributes
    ----------
    days
        Days that were compared.
    rank_ic, book
        Mean daily RankIC; Sharpe ratio after costs. Both in the direction in which the factor is held.
    agreement
        Mean daily rank correlation with the clean values; None where the values are the clean ones or the market differs.
    coverage
        Cells with a value over those of the clean factor.
    """

    scenario: Scenario
    days: int
    rank_ic: StressReading | None
    book: StressReading | None
    agreement: float | None = None
    coverage: float | None = None

    @property
    def silent(self) -> bool:
        """Tell whether a factor that could be judged has lost over half of its values."""
        alive = self.rank_ic is not None and self.rank_ic.alive
        return alive and self.coverage is not None and self.coverage < MIN_COVERAGE_KEPT

    @property
    def readings(self) -> list[tuple[str, StressReading]]:
        """Return what was measured, with its key."""
        both = (("rank_ic", self.rank_ic), ("net_sharpe", self.book))
        return [(key, reading) for key, reading in both if reading is not None]


@dataclass(frozen=True)
class StressResult:
    """What all stresses did to one factor; `words` are the outcomes' by key, in order."""

    clean: Mapping[str, float]
    outcomes: Sequence[StressOutcome]
    words: Sequence[Mapping[str, StressWord]]

    @property
    def breaks(self) -> list[str]:
        """Return where it breaks, each with its figures: ``crash, -20 % in 10 days (RankIC -0.010 against +0.030)``."""
        return [_describe_break(outcome, words) for outcome, words in self._find_broken()]

    @property
    def sentence(self) -> str:
        """Return in one sentence where it breaks."""
        judged = any(word != "untested" for words in self.words for word in words.values())
        if not judged:
            return (
                "No stress was judged: without stress no figure is significant (t below 2), or there are too few days."
            )
        said = f"Breaks in: {'; '.join(self.breaks)}." if self.breaks else "Breaks nowhere that could be judged."
        return f"{said} {LOSING_BOOK_TEXT}" if self.clean["net_sharpe"] <= 0 else said

    def _find_broken(self) -> list[tuple[StressOutcome, Mapping[str, StressWord]]]:
        both = zip(self.outcomes, self.words, strict=True)
        return [(outcome, words) for outcome, words in both if outcome.silent or "breaks" in words.values()]

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        both = zip(self.outcomes, self.words, strict=True)
        return {
            "sentence": self.sentence,
            "clean": {name: round_significant(value) for name, value in self.clean.items()},
            "weaknesses": [
                {"code": "stress", "scenario": outcome.scenario.code, "value": _least_kept(outcome), "message": f"breaks in: {told}"}
                for (outcome, _), told in zip(self._find_broken(), self.breaks, strict=True)
            ],
            "scenarios": [_record(outcome, words) for outcome, words in both],
        }  # fmt: skip


def conclude(clean: Mapping[str, float], outcomes: Sequence[StressOutcome]) -> StressResult:
    """Judge all readings of one factor together."""
    words = iter(judge_readings([reading for outcome in outcomes for _, reading in outcome.readings]))
    return StressResult(clean, outcomes, [{key: next(words) for key, _ in outcome.readings} for outcome in outcomes])


def _describe_break(outcome: StressOutcome, words: Mapping[str, StressWord]) -> str:
    """Say what broke, with its figures."""
    said = []
    for key, reading in outcome.readings:
        if words[key] == "breaks":
            name, digits = ("RankIC", 3) if key == "rank_ic" else ("net Sharpe", 2)
            said.append(f"{name} {reading.stressed:+.{digits}f} against {reading.clean:+.{digits}f}")
    if outcome.silent:
        said.append(f"values in {100 * (outcome.coverage or 0.0):.0f} % of its cells")
    return f"{outcome.scenario.words} ({', '.join(said)})"


def _least_kept(outcome: StressOutcome) -> float | None:
    kept = [reading.keeps for _, reading in outcome.readings if not math.isnan(reading.keeps)]
    kept += [] if outcome.coverage is None else [outcome.coverage]
    return round_significant(min(kept)) if kept else None


def _record(outcome: StressOutcome, words: Mapping[str, StressWord]) -> dict[str, Any]:
    named = outcome.scenario
    dates = {"first": named.first, "last": named.last} if named.first else {}
    likeness = {"agreement": outcome.agreement, "coverage": outcome.coverage}
    told = {name: round_significant(value) for name, value in likeness.items() if value is not None}
    figures = {key: _figures(reading, words[key]) for key, reading in outcome.readings}
    verdict = "breaks" if outcome.silent else min(words.values(), key=WORST_FIRST.index)
    first = {"code": named.code, "group": named.group, "words": named.words, **dates, "days": outcome.days}
    return {**first, "verdict": verdict, **figures, **told}


def _figures(reading: StressReading, word: StressWord) -> dict[str, Any]:
    names = ("clean", "stressed", "keeps", "error", "p")
    return {**{name: round_significant(getattr(reading, name)) for name in names}, "verdict": word}
