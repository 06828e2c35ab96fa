"""What became of a factor under stress: figures, words, and the sentence that says where it breaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..scoring.metrics import tidy
from .judgement import Reading, Word, judge
from .scenario import Scenario

__all__ = ["RULE", "Outcome", "Stressed", "conclude"]

RULE = (
    "A factor breaks where it keeps under half of a figure and the loss is beyond noise (Newey-West error of the difference, "
    "Holm's rule at 0.05 over all figures), or where under half of its cells have a value. A figure is judged where the clean "
    "RankIC has a t of 2 and there are days enough; a book, where its return before costs has it too and it earns its costs."
)
LOSES = "Its book loses after costs without any stress, so no book was judged."
SILENT = 0.5
"""Share of its cells below which a factor on spoiled data has fallen silent: it breaks, whatever the rest of them say."""
WORST_FIRST: Sequence[Word] = ("breaks", "weakens", "unclear", "holds", "untested")
Told = tuple[str, Reading, Word]


@dataclass(frozen=True)
class Outcome:
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
    rank_ic: Reading | None
    book: Reading | None
    agreement: float | None = None
    coverage: float | None = None

    @property
    def silent(self) -> bool:
        """Tell whether a factor that could be judged has lost over half of its values."""
        alive = self.rank_ic is not None and self.rank_ic.alive
        return alive and self.coverage is not None and self.coverage < SILENT

    @property
    def readings(self) -> list[tuple[str, Reading]]:
        """Return what was measured, with its key."""
        both = (("rank_ic", self.rank_ic), ("net_sharpe", self.book))
        return [(key, reading) for key, reading in both if reading is not None]


@dataclass(frozen=True)
class Stressed:
    """What all stresses did to one factor; `words` are the outcomes' by key, in order."""

    clean: Mapping[str, float]
    outcomes: Sequence[Outcome]
    words: Sequence[Mapping[str, Word]]

    @property
    def breaks(self) -> list[str]:
        """Return where it breaks, each with its figures: ``crash, -20 % in 10 days (RankIC -0.010 against +0.030)``."""
        return [_told(outcome, words) for outcome, words in self._broken()]

    @property
    def sentence(self) -> str:
        """Return in one sentence where it breaks."""
        judged = any(word != "untested" for words in self.words for word in words.values())
        if not judged:
            return (
                "No stress was judged: without stress no figure is significant (t below 2), or there are too few days."
            )
        said = f"Breaks in: {'; '.join(self.breaks)}." if self.breaks else "Breaks nowhere that could be judged."
        return f"{said} {LOSES}" if self.clean["net_sharpe"] <= 0 else said

    def _broken(self) -> list[tuple[Outcome, Mapping[str, Word]]]:
        both = zip(self.outcomes, self.words, strict=True)
        return [(outcome, words) for outcome, words in both if outcome.silent or "breaks" in words.values()]

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        both = zip(self.outcomes, self.words, strict=True)
        return {
            "sentence": self.sentence,
            "clean": {name: tidy(value) for name, value in self.clean.items()},
            "weaknesses": [
                {"code": "stress", "scenario": outcome.scenario.code, "value": _least(outcome), "message": f"breaks in: {told}"}
                for (outcome, _), told in zip(self._broken(), self.breaks, strict=True)
            ],
            "scenarios": [_record(outcome, words) for outcome, words in both],
        }  # fmt: skip


def conclude(clean: Mapping[str, float], outcomes: Sequence[Outcome]) -> Stressed:
    """Judge all readings of one factor together."""
    words = iter(judge([reading for outcome in outcomes for _, reading in outcome.readings]))
    return Stressed(clean, outcomes, [{key: next(words) for key, _ in outcome.readings} for outcome in outcomes])


def _told(outcome: Outcome, words: Mapping[str, Word]) -> str:
    """Say what broke, with its figures."""
    said = []
    for key, reading in outcome.readings:
        if words[key] == "breaks":
            name, digits = ("RankIC", 3) if key == "rank_ic" else ("net Sharpe", 2)
            said.append(f"{name} {reading.stressed:+.{digits}f} against {reading.clean:+.{digits}f}")
    if outcome.silent:
        said.append(f"values in {100 * (outcome.coverage or 0.0):.0f} % of its cells")
    return f"{outcome.scenario.words} ({', '.join(said)})"


def _least(outcome: Outcome) -> float | None:
    kept = [reading.keeps for _, reading in outcome.readings if not math.isnan(reading.keeps)]
    kept += [] if outcome.coverage is None else [outcome.coverage]
    return tidy(min(kept)) if kept else None


def _record(outcome: Outcome, words: Mapping[str, Word]) -> dict[str, Any]:
    named = outcome.scenario
    dates = {"first": named.first, "last": named.last} if named.first else {}
    likeness = {"agreement": outcome.agreement, "coverage": outcome.coverage}
    told = {name: tidy(value) for name, value in likeness.items() if value is not None}
    figures = {key: _figures(reading, words[key]) for key, reading in outcome.readings}
    verdict = "breaks" if outcome.silent else min(words.values(), key=WORST_FIRST.index)
    first = {"code": named.code, "group": named.group, "words": named.words, **dates, "days": outcome.days}
    return {**first, "verdict": verdict, **figures, **told}


def _figures(reading: Reading, word: Word) -> dict[str, Any]:
    names = ("clean", "stressed", "keeps", "error", "p")
    return {**{name: tidy(getattr(reading, name)) for name in names}, "verdict": word}
