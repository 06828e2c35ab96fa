"""Long lists, a page at a time: a cursor continues the answer that gave it, and no other."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..ledger import canonical_json, compute_digest
from .errors import BadArguments

__all__ = ["paginate"]


def paginate(key: str, rows: Sequence[Any], limit: int, cursor: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{key: rows, "total": int, "next_cursor": str}`, with an empty cursor on the last page.

    Parameters
    ----------
    key : str
        What the rows are called.
    rows : sequence
        All of them.
    limit : int
        Rows of a page.
    cursor : str
        The cursor of the page before; empty for the first.
    asked : mapping
        The other arguments: a cursor of another question is refused.

    Raises
    ------
    BadArguments
        It is no cursor, or that of another question.
    """
    question = compute_digest([key, dict(asked)])[:16]
    first = _decode_cursor(cursor, question) if cursor else 0
    there = min(first + limit, len(rows))
    follows = base64.urlsafe_b64encode(canonical_json([there, question]).encode()).decode()
    return {key: list(rows[first:there]), "total": len(rows), "next_cursor": follows if there < len(rows) else ""}


def _decode_cursor(cursor: str, question: str) -> int:
    try:
        place, of = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
        found = int(place) if of == question and not isinstance(place, bool) else -1
    except (ValueError, TypeError):
        found = -1
    if found < 0:
        raise BadArguments(
            "This is no cursor of this question.", field="cursor", got=cursor[:80], allowed="next_cursor of the page before",
            hint="Ask again without a cursor.",
        )  # fmt: skip
    return found
