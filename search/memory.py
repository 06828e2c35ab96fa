"""What agents are reminded of: successes and failures that matter for what is asked now, never the whole history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..factors.describe import natural_sort_key, score_relevance

MAX_HYPOTHESES_REMINDED = 40
"""Hypotheses that agents are reminded of, however many there were."""
MAX_MECHANISMS = 80
MIN_SUCCESS_T = 2.5
"""The |t| from which a hypothesis counts as a success, where the gate has not said more of it."""
MAX_RECALLED_CHARS = 400
"""Characters of a statement, a formula or a reason that are shown."""
Order = tuple[tuple[str, int], ...]
GOOD_OUTCOMES = ("accepted", "watchlist")


@dataclass(frozen=True)
class HypothesisRecord:
    """What became of one hypothesis on the search window.

    Attributes
    ----------
    best_t
        The t of its best formula, None where none was scored.
    outcome
        The gate's word for that formula; `scored` where the gate did not meet it, `refused` where nothing was scored.
    scored, refused
        How many of its formulas were scored, and how many refused by the step that refused them.
    """

    id: str
    mechanism: str
    statement: str
    best_t: float | None
    outcome: str
    scored: int
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def worked(self) -> bool:
        """Tell whether it is a success."""
        return self.outcome in GOOD_OUTCOMES or abs(self.best_t or 0.0) >= MIN_SUCCESS_T

    @property
    def fate(self) -> str:
        """Say in a line how it went."""
        told = [f"{self.scored} scored"] if self.scored else ["nothing scored"]
        told += [f"{count} refused by {step}" for step, count in sorted(self.refused.items())]
        return ", ".join(told)


def select_reminders(
    tales: Sequence[HypothesisRecord], query: str, most: int = MAX_HYPOTHESES_REMINDED
) -> list[HypothesisRecord]:
    """Return at most so many hypotheses, in the order of their ids: what is worth a thought now.

    A quarter each, without repetition: the successes and the failures that say most of the query, the best, and the
    newest; what one kind leaves free goes to the newest. Equal ranks go by id, so that nothing hangs on the order of
    arrival.

    Parameters
    ----------
    tales
        All of them; the newest have the largest numbers in their ids.
    query
        The person's goal and what the last round was about, in words. Where no word is shared nothing is relevant.
    """
    scores = score_relevance(query, [f"{tale.mechanism} {tale.statement}" for tale in tales])
    near = [tale for _, _, tale in sorted(_rank_by_relevance(scores, tales), key=lambda row: row[:2])]
    best = sorted(
        tales, key=lambda tale: (tale.outcome not in GOOD_OUTCOMES, -abs(tale.best_t or 0.0), natural_sort_key(tale.id))
    )
    newest = sorted(tales, key=lambda tale: natural_sort_key(tale.id), reverse=True)
    share = most // 4
    chosen: dict[str, HypothesisRecord] = {}
    for kind in ([t for t in near if t.worked], [t for t in near if not t.worked], [t for t in best if t.worked]):
        fresh = [tale for tale in kind if tale.id not in chosen][:share]
        chosen |= {tale.id: tale for tale in fresh}
    for tale in newest:
        if len(chosen) < most:
            chosen.setdefault(tale.id, tale)
    return [chosen[name] for name in sorted(chosen, key=natural_sort_key)]


def _rank_by_relevance(
    scores: Iterable[float], tales: Iterable[HypothesisRecord]
) -> list[tuple[float, Order, HypothesisRecord]]:
    """Return what has to do with the query, by falling score and then by id."""
    return [(-score, natural_sort_key(tale.id), tale) for score, tale in zip(scores, tales, strict=True) if score > 0]


def summarise_mechanisms(tales: Iterable[HypothesisRecord]) -> list[dict[str, object]]:
    """Return how often each mechanism was tried and what its best formula reached; the most tried, at most eighty.

    This is short whatever was tried, and whole where the list of mechanisms is: no try is forgotten by it.
    """
    found: dict[str, list[HypothesisRecord]] = {}
    for tale in tales:
        found.setdefault(tale.mechanism, []).append(tale)
    names = sorted(found, key=lambda name: (-len(found[name]), name))[:MAX_MECHANISMS]
    return [
        {"mechanism": name, "hypotheses": len(found[name]), "best_t": _best_t(found[name])} for name in sorted(names)
    ]


def _best_t(tales: Iterable[HypothesisRecord]) -> float | None:
    return max((tale.best_t for tale in tales if tale.best_t is not None), key=abs, default=None)
