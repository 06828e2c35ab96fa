"""Name the standard columns and groupings of a panel; any other column of the user's is a field too."""

from __future__ import annotations

STANDARD_FIELDS: tuple[str, ...] = (
    "open", "high", "low", "close", "close_raw", "vwap", "volume", "returns", "amount", "cap",
)  # fmt: skip
STANDARD_GROUPS: tuple[str, ...] = ("sector", "industry")
