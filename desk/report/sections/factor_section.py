"""One factor of a campaign, in the order in which an analyst reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...figures import DASH, number, percent
from ...formula_views import summarise_formula
from ...profile import EXPOSURE_WORDS, profile_rows
from ..cards import Card, CardContext, build_card
from ..case_page import list_idea
from ..conclusion import find_tested_combination
from ..factor_page import draw_exposures, draw_regimes
from ..gate_steps import describe_limit, list_steps
from .known_days import describe_split, list_windows
from .marks import ReportMarks
from .returns import FactorReturns, draw_returns
from .trial_price import list_trial

if TYPE_CHECKING:
    from ....evaluation.closing import Curves, FactorEntry, FactorProfile, FactorStress, Results, SealedFactor
    from .run_notes import RunNotes

Facts = Sequence[tuple[str, str]]
NEAREST_STEPS = {
    "originality": "by structure",
    "redundancy": "by ranks, in the library",
    "published": "by ranks, published",
}


@dataclass(frozen=True)
class GateLine:
    """A step of the gate: its mark, what was found, and the actual value against its limit."""

    step: str
    mark: str
    message: str
    actual: str
    limit: str


@dataclass(frozen=True)
class FactorSection:
    """The content of one factor's section or page.

    Attributes
    ----------
    word, style
        The verdict, and the style of its pill.
    name
        What the contents call it.
    breaks
        The stresses that break it; None where it was not stressed.
    nearest
        How, which known factor, and how alike.
    known_days, known_why
        By window, how many days a model can have read, with the RankIC on both kinds; and why. Empty where the record
        does not say it.
    source
        The term of who wrote hypothesis and formula.
    """

    id: str
    name: str
    word: str
    style: str
    card: Card
    idea: Facts
    price: Facts
    returns: FactorReturns
    exposures: Facts
    styles: str
    regimes: str
    profile: Facts
    breaks: Sequence[str] | None
    nearest: Sequence[Sequence[str]]
    gates: Sequence[GateLine]
    known_days: Sequence[Sequence[str]]
    known_why: str
    source: str


@dataclass(frozen=True)
class SectionBuilder:
    """Makes the sections of a run's factors."""

    results: Results
    curves: Curves
    notes: RunNotes

    def build(self, entries: Sequence[FactorEntry], word: str, style: str = "") -> list[FactorSection]:
        """Return a section for each entry, under one verdict; the style of its pill is the verdict by default."""
        return [_build_section(entry, self, (word, style or word)) for entry in entries]

    def build_candidates(self, entries: Sequence[FactorEntry]) -> list[FactorSection]:
        """Return a section for each candidate that was not accepted: rejected, or not tested."""
        words = {True: ("rejected", "rejected"), False: ("not tested", "awaiting")}
        sections = [_build_section(entry, self, words[entry.trial is not None]) for entry in entries]
        # Several candidates may have one hypothesis, so the contents name their formulas.
        return [replace(section, name=summarise_formula(section.card.text) or section.name) for section in sections]

    def find_idea(self, entry: FactorEntry) -> Mapping[str, Any]:
        """Return the author's record of an entry's hypothesis: what the results hold goes before the record's."""
        stated = entry.hypothesis
        return {**self.notes.ideas.get(stated.id, {}), **stated.record()} if stated else {}

    @cached_property
    def marks(self) -> ReportMarks:
        """Return who wrote the parts of the report."""
        return ReportMarks.read(self.notes.exposure, self.results)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Return each formula by id, with its weight where it is part of the tested combination."""
        combination = self.results.combination
        weights = combination.weights if combination and combination.tested else {}
        return {
            entry.id: f"{number(weights[entry.id], 2, sign=True)} rank({entry.text})"
            if entry.id in weights
            else entry.text
            for entry in self.results.entries
        }

    @cached_property
    def hypotheses(self) -> Mapping[str, str]:
        """Return the stated hypothesis of each factor by id; empty for one that was found without."""
        return {
            entry.id: entry.hypothesis.statement if entry.hypothesis and not entry.hypothesis.either_way else ""
            for entry in self.results.entries
        }

    def gather_context(self, entry: FactorEntry) -> CardContext:
        """Return what a card shows beside its entry."""
        selection = self.results.windows.selection
        truth = next((line for line in self.results.truth or () if line.id == entry.id), None)
        boundary = selection.first if selection else None
        return CardContext(boundary, self.texts, self.hypotheses, _find_sealed(self.results, entry), truth)


def _find_sealed(results: Results, entry: FactorEntry) -> SealedFactor | None:
    """Return an entry's figures on the sealed days; those of the exam itself for the combination that was examined."""
    from ....evaluation.closing import SealedFactor

    exam = results.sealed
    if exam is None or not exam.opened:
        return None
    if find_tested_combination(results) is not entry:
        return exam.factors.get(entry.id)
    return SealedFactor(
        sign=1, days=exam.days, rank_ic=exam.rank_ic, t=exam.t, net_sharpe=exam.net_sharpe, p_value=exam.p_value
    )


def _build_section(entry: FactorEntry, builder: SectionBuilder, pill: tuple[str, str]) -> FactorSection:
    """Return the section of a factor or combination; `pill` is its verdict and the style of that."""
    results, curve = builder.results, builder.curves.factors.get(entry.id)
    profile = entry.profile
    plain = entry.model_copy(update={"profile": None})  # the profile has drawings and tables of its own
    card = build_card(plain, curve, builder.gather_context(entry))
    card = card if curve else replace(card, cumulative="")
    idea = list_idea(entry.hypothesis, builder.find_idea(entry))
    told = {label for label, _ in idea}
    split = builder.notes.exposure.factors.get(entry.id) if builder.notes.exposure else None
    card = replace(card, facts=[(label, value) for label, value in card.facts if label not in told and value != DASH])
    stressed = results.stress.factors.get(entry.id) if results.stress else None
    return FactorSection(
        id=entry.id,
        name=card.statement,
        word=pill[0],
        style=pill[1],
        card=card,
        idea=idea,
        price=list_trial(entry),
        returns=draw_returns(curve),
        exposures=_list_exposures(profile),
        styles=draw_exposures([("search", profile)]) if profile and profile.exposures else "",
        regimes=draw_regimes([("search", profile)]) if profile and profile.by_regime else "",
        profile=_list_profile(entry),
        breaks=_list_breaks(stressed),
        nearest=_list_nearest(entry),
        gates=_list_gates(entry, results, [member.id for member in card.members if member.is_mined]),
        known_days=list_windows(split) if split else [],
        known_why=describe_split(split) if split else "",
        source=builder.marks.find_source(entry.id),
    )


def _list_exposures(profile: FactorProfile | None) -> Facts:
    """Return style and mean rank correlation."""
    styles = profile.exposures if profile else None
    if styles is None:
        return []
    rows = [(word, number(getattr(styles, name), 2, sign=True)) for name, word in EXPOSURE_WORDS.items()]
    return [*rows, ("sectors, share of the ranks' variance", percent(styles.sector, 0))]


def _list_profile(entry: FactorEntry) -> Facts:
    """Return what is left without sector and styles, capacity, and what it adds: what no drawing shows."""
    if entry.profile is None:
        return []
    return profile_rows(entry.profile.model_copy(update={"by_regime": {}, "exposures": None}))


def _list_breaks(stress: FactorStress | None) -> list[str] | None:
    if stress is None:
        return None
    return [weakness.text.removeprefix("breaks in: ") for weakness in stress.weaknesses]


def _list_nearest(entry: FactorEntry) -> list[Sequence[str]]:
    """Return the nearest known factor that each step of the gate found."""
    rows: list[Sequence[str]] = []
    for reason in entry.reasons:
        if reason.step in NEAREST_STEPS and ("most" in reason.numbers or "rank_correlation" in reason.numbers):
            actual, _ = describe_limit(reason, None)
            rows.append((NEAREST_STEPS[reason.step], reason.message, actual))
    return rows


def _list_gates(entry: FactorEntry, results: Results, unstated: Sequence[str]) -> list[GateLine]:
    lines = zip(list_steps(entry, unstated), entry.reasons, strict=True)
    return [
        GateLine(step.step, step.mark, step.message, *describe_limit(reason, results.settings))
        for step, reason in lines
    ]
