"""Select the past hypotheses that agents are reminded of: relevant successes and failures, not the whole history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..factors.describe import natural_sort_key, score_relevance

MAX_HYPOTHESES_REMINDED = 40
"""Most hypotheses that agents are reminded of."""
MAX_MECHANISMS = 80
MIN_SUCCESS_T = 2.5
"""Least |t| with which a hypothesis counts as a success, where the gate has not accepted or watched it."""
MAX_RECALLED_CHARS = 400
"""Characters of a statement, a formula or a reason that are shown."""
Order = tuple[tuple[str, int], ...]
GOOD_OUTCOMES = ("accepted", "watchlist")


@dataclass(frozen=True)
class HypothesisRecord:
    """The outcome of one hypothesis on the search window.

    Attributes
    ----------
    best_t
        The t of its best formula, None if none was scored.
    outcome
        The gate's verdict on that formula; `scored` if it was not submitted, `refused` if no formula was scored.
    scored, refused
        Numbers of its formulas that were scored, and that were refused by each step.
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
        """True if it is a success."""
        return self.outcome in GOOD_OUTCOMES or abs(self.best_t or 0.0) >= MIN_SUCCESS_T

    @property
    def fate(self) -> str:
        """Return the counts in one line."""
        parts = [f"{self.scored} scored"] if self.scored else ["nothing scored"]
        parts += [f"{count} refused by {step}" for step, count in sorted(self.refused.items())]
        return ", ".join(parts)


def select_reminders(
    records: Sequence[HypothesisRecord], query: str, most: int = MAX_HYPOTHESES_REMINDED
) -> list[HypothesisRecord]:
    """Return at most `most` hypotheses that matter now, in the order of their ids.

    A quarter each, without repetition, are the successes and the failures most relevant to the query, the best, and the
    newest; unused places go to the newest. Ties are broken by id, so the result does not depend on the order of
    arrival.

    Parameters
    ----------
    records
        All hypotheses; the newest have the largest numbers in their ids.
    query
        The person's goal and the topics of the last round, in words. A hypothesis that shares no word is not relevant.
    most
        Largest number of hypotheses.
    """
    scores = score_relevance(query, [f"{record.mechanism} {record.statement}" for record in records])
    near = [record for _, _, record in sorted(_rank_by_relevance(scores, records), key=lambda row: row[:2])]
    best = sorted(
        records,
        key=lambda record: (
            record.outcome not in GOOD_OUTCOMES,
            -abs(record.best_t or 0.0),
            natural_sort_key(record.id),
        ),
    )
    newest = sorted(records, key=lambda record: natural_sort_key(record.id), reverse=True)
    share = most // 4
    chosen: dict[str, HypothesisRecord] = {}
    for kind in (
        [record for record in near if record.worked],
        [record for record in near if not record.worked],
        [record for record in best if record.worked],
    ):
        fresh = [record for record in kind if record.id not in chosen][:share]
        chosen |= {record.id: record for record in fresh}
    for record in newest:
        if len(chosen) < most:
            chosen.setdefault(record.id, record)
    return [chosen[name] for name in sorted(chosen, key=natural_sort_key)]


def _rank_by_relevance(
    scores: Iterable[float], records: Iterable[HypothesisRecord]
) -> list[tuple[float, Order, HypothesisRecord]]:
    """Return sort keys and records of the relevant hypotheses: falling score, then id."""
    return [
        (-score, natural_sort_key(record.id), record)
        for score, record in zip(scores, records, strict=True)
        if score > 0
    ]


def summarise_mechanisms(records: Iterable[HypothesisRecord]) -> list[dict[str, object]]:
    """Return the number of hypotheses and the best t of each mechanism; the most tried ones, at most eighty.

    Its size does not grow with the number of hypotheses, and every hypothesis of a listed mechanism is counted.
    """
    by_mechanism: dict[str, list[HypothesisRecord]] = {}
    for record in records:
        by_mechanism.setdefault(record.mechanism, []).append(record)
    names = sorted(by_mechanism, key=lambda name: (-len(by_mechanism[name]), name))[:MAX_MECHANISMS]
    return [
        {"mechanism": name, "hypotheses": len(by_mechanism[name]), "best_t": _find_best_t(by_mechanism[name])}
        for name in sorted(names)
    ]


def _find_best_t(records: Iterable[HypothesisRecord]) -> float | None:
    return max((record.best_t for record in records if record.best_t is not None), key=abs, default=None)
