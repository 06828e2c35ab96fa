"""Successors of decaying factors, as far as a heuristic goes: other measures of the same mechanism."""

from __future__ import annotations

from typing import Any

from .mechanism import find_mechanism
from .reading import Context, Json

__all__ = ["propose_successors"]

MAX_SUCCESSORS = 1
"""Successors in one reply: the record may be long, and new mechanisms are worth more than old ones."""


def propose_successors(context: Context, count: int) -> list[Json]:
    """Return hypotheses that name the factor which they are to succeed, the longest decaying first; one for each.

    A factor of a mechanism that this researcher does not know has none: it could not say what else to measure.
    """
    named = _stated_words(context)
    rows = [row for row in context.rows("record", "decaying") if isinstance(row, dict) and row.get("id")]
    open_ = [row for row in rows if str(row["id"]) not in named and find_mechanism(str(row.get("mechanism", "")))]
    open_.sort(key=lambda row: (str(row.get("since", "")), str(row["id"])))
    return [_successor(context, row) for row in open_[: min(MAX_SUCCESSORS, count)]]


def _stated_words(context: Context) -> str:
    """Return the words of hypotheses on record and of refused ones: each decaying factor is taken up once."""
    rows: list[Any] = [*context.rows("record", "hypotheses"), *context.rows("record", "refused")]
    return " ".join(str(row.get("statement", "")) for row in rows if isinstance(row, dict))


def _successor(context: Context, row: Json) -> Json:
    base = find_mechanism(str(row["mechanism"]))
    assert base is not None
    horizon = int(context.part("market").get("horizon_days", 5))
    return {
        "mechanism": base.id,
        "statement": f"{base.statement} Successor of {row['id']}, which fades since {row['since']}: the same mechanism in "
        "another measure, that tells more of it than the old one did.",
        "who_is_on_the_other_side": base.other_side,
        "why_it_persists": base.persists,
        "direction": base.direction,
        "horizon_days": min(max(base.horizon, -(-horizon // 5)), 5 * horizon),
        "fields": [name for name in base.fields if name in context.fields],
        "regime": base.regime,
        "refuted_by": f"no formula of it reaches a t of 2 on the search window beyond {row['id']}",
        "succeeds": str(row["id"]),
    }
