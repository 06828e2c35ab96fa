"""What tools of several servers take, and what they say of themselves to a client."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from mcp.types import ToolAnnotations
from pydantic import AfterValidator, Field

from ..factors.python import LONGEST_CODE
from ..factors.words import visible

__all__ = ["READ_ONLY", "SPENDS", "WRITES", "Cursor", "Day", "Dialect", "FactorId", "Key", "Text", "Words"]

READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
SPENDS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=True, open_world_hint=False)
"""What it takes is gone for good: a client should ask its person first."""

Text = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_CODE,
        description="a formula, e.g. rank(ts_std(returns, 30)) * -1; or Python code that defines factor(panel)",
    ),
]
Dialect = Annotated[
    Literal["alphaloom", "alphaagent", "alphagen", "qlib", "worldquant"],
    Field(description="the language of the formula"),
]
FactorId = Annotated[
    str, Field(pattern=r"^f[0-9a-f]{16}$", description="a factor's id, as score_factor and check_factor answer with")
]
Key = Annotated[str, Field(min_length=1, max_length=200, description="names this call; the same key is the same call")]
Words = Annotated[str, AfterValidator(visible)]
"""Words that people and models read later: what nobody can see in them is a blank."""
Day = Annotated[date | None, Field(description="YYYY-MM-DD; the search window's by default")]
Cursor = Annotated[str, Field(max_length=200, description="next_cursor of the page before; empty for the first page")]
