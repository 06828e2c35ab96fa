"""What tools of several servers take, and what they say of themselves to a client."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from mcp.types import ToolAnnotations
from pydantic import AfterValidator, Field

from ..factors.describe import replace_invisible
from ..factors.python import MAX_CODE_CHARS
from .errors import BadArguments

__all__ = [
    "READ_HINTS",
    "SPEND_HINTS",
    "WRITE_HINTS",
    "CallKey",
    "Cursor",
    "Day",
    "DialectName",
    "FactorId",
    "FormulaText",
    "VisibleWords",
    "describe_missing",
    "unknown_argument_error",
]  # fmt: skip
MAX_ARGUMENT_NAME_CHARS = 100
MAX_ARGUMENTS_NAMED = 5

READ_HINTS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
WRITE_HINTS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
SPEND_HINTS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=True, open_world_hint=False)
"""What it takes is gone for good: a client should ask its person first."""

FormulaText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_CODE_CHARS,
        description="a formula, e.g. rank(ts_std(returns, 30)) * -1; or Python code that defines factor(panel)",
    ),
]
DialectName = Annotated[
    Literal["alphaloom", "alphaagent", "alphagen", "factorminer", "qlib", "worldquant"],
    Field(description="the language of the formula"),
]
FactorId = Annotated[
    str, Field(pattern=r"^f[0-9a-f]{16}$", description="a factor's id, as score_factor and check_factor answer with")
]
CallKey = Annotated[
    str, Field(min_length=1, max_length=200, description="names this call; the same key is the same call")
]
VisibleWords = Annotated[str, AfterValidator(replace_invisible)]
"""Words that people and models read later: what nobody can see in them is a blank."""
Day = Annotated[date | None, Field(description="YYYY-MM-DD; the search window's by default")]
Cursor = Annotated[str, Field(max_length=200, description="next_cursor of the page before; empty for the first page")]

ARGUMENT_ALIASES: Mapping[str, Sequence[str]] = {
    "text": ("formula", "expression", "expr", "factor", "code", "alpha"),
    "texts": ("formulas", "expressions", "factors", "text", "drafts"),
    "id": ("factor", "factor_id", "news_id"),
    "ids": ("factors", "factor_ids", "id"),
    "top": ("limit", "n", "k", "count", "top_k", "top_n"),
    "limit": ("top", "n", "k", "count", "max_results", "page_size"),
    "count": ("top", "limit", "n", "k"),
    "query": ("search", "q", "words", "keywords", "text"),
    "first_day": ("start", "start_date", "from", "from_date", "since"),
    "last_day": ("end", "end_date", "to", "to_date", "until"),
    "since": ("start", "start_date", "from", "first_day"),
    "symbols": ("tickers", "assets", "names", "symbol"),
    "field": ("column", "name"),
    "key": ("idempotency_key", "request_id"),
    "job": ("id", "job_id"),
    "wait_s": ("wait", "timeout", "seconds"),
    "dialect": ("language", "syntax"),
    "source": ("from", "dialect", "source_dialect"),
    "target": ("to", "target_dialect"),
    "hypothesis": ("claim", "idea"),
}
"""What clients call our arguments, by the names that other tools have for them."""


def unknown_argument_error(
    tool: str, strange: Collection[str], given: Collection[str], schema: Mapping[str, Any]
) -> BadArguments:
    """Refuse arguments that a tool does not take: name the first, the argument that was probably meant, and all it takes."""
    takes, absent = sorted(schema.get("properties", {})), _missing_names(given, schema)
    names = [_shorten_name(each) for each in heapq.nsmallest(MAX_ARGUMENTS_NAMED, strange)]
    meant = _guess_argument(names[0], [each for each in takes if each not in given], absent)
    hint = [
        f"Did you mean {meant}?" if meant else f"It takes {', '.join(takes)}." if takes else "It takes no argument."
    ]
    rest = [each for each in absent if each != meant]
    hint += [f"Also missing: {', '.join(rest)}."] if rest else []
    return BadArguments(
        f"{tool} takes no argument {', '.join(map(repr, names))}.", field=names[0], got=names[0],
        allowed=takes or "no argument", hint=" ".join(hint),
    )  # fmt: skip


def _shorten_name(name: str) -> str:
    """Return the beginning of a name, without halves of characters, which cannot be sent."""
    return name[:MAX_ARGUMENT_NAME_CHARS].encode(errors="replace").decode()


def describe_missing(given: Collection[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `got`, `allowed` and `hint` of a refusal for arguments that are missing: which are given, taken and needed."""
    properties = schema.get("properties", {})
    told = [
        f"{name}: {properties[name].get('description', 'see the schema')}" for name in _missing_names(given, schema)
    ]
    names = [_shorten_name(name) for name in sorted(given)[:MAX_ARGUMENTS_NAMED]]
    return {"got": names, "allowed": sorted(properties), "hint": f"Give {'; '.join(told)}."}


def _missing_names(given: Collection[str], schema: Mapping[str, Any]) -> list[str]:
    return [name for name in schema.get("required", ()) if name not in given]


def _guess_argument(name: str, free: Sequence[str], absent: Sequence[str]) -> str:
    """Return the argument that a strange name stands for: an alias, a similar spelling, or the only one that is missing."""
    lower = name.lower()
    known = [each for each in (*absent, *free) if lower in ARGUMENT_ALIASES.get(each, ())]
    near = difflib.get_close_matches(lower, free, n=1)
    return next(iter([*known, *near, *(absent if len(absent) == 1 else ())]), "")
