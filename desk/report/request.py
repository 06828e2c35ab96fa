"""Sentences of the report on what a person asked for and brought along, and on how varied the search was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..figures import plural

if TYPE_CHECKING:
    from ...evaluation.closing import FactorEntry, OwnParts, Results, SearchVariety

__all__ = ["collect_doubts", "describe_request", "describe_variety"]


def describe_request(results: Results) -> str:
    """Return what the campaign file asked for and brought along, empty where it left the agents alone."""
    steer = results.steer
    wishes = [("Asked for", steer.goal), ("To be avoided", ", ".join(steer.avoid))]
    wishes += [("First of all", ", ".join(steer.focus)), ("Only the fields", ", ".join(steer.fields))]
    wishes += [("Brought along", ", ".join(_list_own_parts(results.own)))]
    sentences = [f"{label}: {text}" for label, text in wishes if text]
    return "".join(f"{sentence.rstrip('.')}. " for sentence in sentences).strip()


def _list_own_parts(own: OwnParts) -> list[str]:
    pages = [name for name, page in own.prompts.items() if page.whose == "own"]
    return [
        *([plural(own.seed_library.factors, "formula")] if own.seed_library and own.seed_library.factors else []),
        *([plural(own.hypotheses, "hypothesis", "hypotheses")] if own.hypotheses else []),
        *([f"own pages for {', '.join(pages)}"] if pages else []),
        *([f"the agent {own.agent}"] if own.agent else []),
    ]


def describe_variety(variety: SearchVariety) -> str:
    """Return how many different mechanisms the search worked on, empty where that was not counted."""
    if not variety.hypotheses:
        return ""
    text = f"{plural(variety.hypotheses, 'hypothesis', 'hypotheses')} on {plural(variety.mechanisms, 'mechanism')}"
    text += f", as varied as {variety.effective:.1f} equally frequent ones"
    if variety.niches:
        text += f", in {plural(variety.niches, 'niche')} of mechanism, horizon and turnover"
    if not variety.refused:
        return f"{text}."
    return f"{text}; {variety.refused} more got no branch, most because they repeated one."


def collect_doubts(entry: FactorEntry) -> Sequence[str]:
    """Return what a rule or a model doubts of a factor and its words; neither decided anything."""
    doubting = [opinion.why for opinion in entry.alignment.opinions if opinion.verdict == "doubts"]
    return [
        *entry.alignment.doubts,
        *(f"a model doubts that it says what its hypothesis says: {why}" for why in doubting[-1:]),
    ]
