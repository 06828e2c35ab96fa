"""Argument types and tool annotations that several servers share, and refusals of unknown arguments."""

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

MAX_ARGUMENT_NAME_CHARS = 100
MAX_ARGUMENTS_NAMED = 5

READ_HINTS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
WRITE_HINTS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
SPEND_HINTS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=True, open_world_hint=False)
"""Hints of a tool that spends something for good: a client should ask its user first."""

EXAMPLE_FORMULA = "-rank(ts_mean(returns, 5) / ts_std(returns, 20))"
"""It reads only `returns`, which every panel has, and no published formula is like it."""

FormulaText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_CODE_CHARS,
        description="Formula of fields (open high low close volume returns; see search_fields) and operators: + - * / "
        "rank(x) ts_mean(x, days) ts_std(x, days) ts_corr(x, y, days) delay(x, days); recall_attempts lists all. Rank "
        "unlike units before you add them: rank(close) + rank(volume). Or Python source that defines factor(panel).",
        examples=[EXAMPLE_FORMULA],
    ),
]
ShortFormula = Annotated[
    str, Field(min_length=1, max_length=MAX_CODE_CHARS, description="Formula", examples=["rank(close)"])
]
"""As `FormulaText`, for tools beside score_factor, whose text explains the language."""
DialectName = Annotated[
    Literal["alphaloom", "alphaagent", "alphagen", "factorminer", "qlib", "worldquant"],
    Field(description="Language of the formula"),
]
FactorId = Annotated[
    str,
    Field(
        pattern=r"^f[0-9a-f]{16}$",
        description="Factor id from score_factor",
        examples=["f0123456789abcdef"],
    ),
]
CallKey = Annotated[
    str,
    Field(
        max_length=200,
        description="Idempotency key: a call with a key used before is not done twice. "
        "Default: derived from the arguments",
    ),
]
VisibleWords = Annotated[str, AfterValidator(replace_invisible)]
"""Text that people and models read later; invisible characters are replaced by blanks."""
FirstDay = Annotated[date | None, Field(description="Default: start of the search window", examples=["2015-01-02"])]
LastDay = Annotated[date | None, Field(description="Default: its end", examples=["2015-06-30"])]
Cursor = Annotated[str, Field(max_length=200, description="next_cursor of the previous page; empty: first page")]

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
"""Names that other tools use for our arguments, by our name."""


def unknown_argument_error(
    tool: str, strange: Collection[str], present: Collection[str], schema: Mapping[str, Any]
) -> BadArguments:
    """Return the refusal of unknown arguments, with the argument that was probably meant and all allowed ones."""
    takes, absent = sorted(schema.get("properties", {})), _list_missing_names(present, schema)
    names = [_shorten_name(name) for name in heapq.nsmallest(MAX_ARGUMENTS_NAMED, strange)]
    meant = _guess_argument(names[0], [name for name in takes if name not in present], absent)
    hint = [
        f"Did you mean {meant}?" if meant else f"It takes {', '.join(takes)}." if takes else "It takes no argument."
    ]
    rest = [name for name in absent if name != meant]
    hint += [f"Also missing: {', '.join(rest)}."] if rest else []
    return BadArguments(
        f"{tool} takes no argument {', '.join(map(repr, names))}.",
        field=names[0],
        got=names[0],
        allowed=takes or "no argument",
        hint=" ".join(hint),
    )


def _shorten_name(name: str) -> str:
    """Return the beginning of a name, without lone surrogates, which cannot be sent."""
    return name[:MAX_ARGUMENT_NAME_CHARS].encode(errors="replace").decode()


def describe_missing(present: Collection[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `got`, `allowed` and `hint` of a refusal of missing arguments: those present, allowed and missing."""
    properties = schema.get("properties", {})
    lines = [
        f"{name}: {properties[name].get('description', 'see the schema')}"
        for name in _list_missing_names(present, schema)
    ]
    names = [_shorten_name(name) for name in sorted(present)[:MAX_ARGUMENTS_NAMED]]
    return {"got": names, "allowed": sorted(properties), "hint": f"Give {'; '.join(lines)}."}


def _list_missing_names(present: Collection[str], schema: Mapping[str, Any]) -> list[str]:
    return [name for name in schema.get("required", ()) if name not in present]


def _guess_argument(name: str, free: Sequence[str], absent: Sequence[str]) -> str:
    """Return the argument that an unknown name stands for: by alias, by similar spelling, or the only missing one."""
    lower = name.lower()
    aliases = [argument for argument in (*absent, *free) if lower in ARGUMENT_ALIASES.get(argument, ())]
    near = difflib.get_close_matches(lower, free, n=1)
    return next(iter([*aliases, *near, *(absent if len(absent) == 1 else ())]), "")
