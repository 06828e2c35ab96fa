"""The unit of each rule and of each limit of a policy, in words for tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OF_EQUITY: Final = "bp of equity"
FAILING: Final = "ids that fail"
LISTED: Final = "1: it is listed"

RULE_UNITS: Final[Mapping[str, str]] = {
    "schema": "1: it is malformed",
    "duplicate": "1: the symbol has another signal",
    "proven": FAILING,
    "original": "bp of the formula",
    "reviewed": FAILING,
    "alive": FAILING,
    "contained": FAILING,
    "unalarmed": FAILING,
    "valid": "days too late",
    "stale_data": "trading days",
    "price_jump": "bp of the price before",
    "restricted": LISTED,
    "borrow": LISTED,
    "single_name": OF_EQUITY,
    "interval_width": OF_EQUITY,
    "liquidity": "days",
    "name_fall": "bp of the best price",
    "kill_switch": "1: it is on",
    "trading_state": "0 active, 1 reducing, 2 halted",
    "trailing_drawdown": "bp of the highest equity",
    "max_drawdown": "bp of the highest equity",
    "daily_loss": "bp of the day's first equity",
    "rejects": "orders",
    "gross": OF_EQUITY,
    "net": OF_EQUITY,
    "turnover": OF_EQUITY,
    "recent_turnover": OF_EQUITY,
    "margin": OF_EQUITY,
    "positions": "names",
    "sector": OF_EQUITY,
    "style": "bp of equity x standard deviations",
    "unexposed": "attributes carried, or without an audit",
}
"""Unit of what `RuleCheck.told` gives, by rule."""

LIMIT_UNITS: Final[Mapping[str, str]] = {
    "single_name_cap_bp": OF_EQUITY,
    "interval_width_cap_bp": OF_EQUITY,
    "gross_cap_bp": OF_EQUITY,
    "net_cap_bp": OF_EQUITY,
    "sector_cap_bp": OF_EQUITY,
    "style_cap_bp": RULE_UNITS["style"],
    "margin_long_bp": "bp of the position",
    "margin_short_bp": "bp of the position",
    "position_cap": "names",
    "turnover_cap_bp": OF_EQUITY,
    "recent_turnover_cap_bp": OF_EQUITY,
    "liquidate_days_cap": "days",
    "trailing_drawdown_cap_bp": RULE_UNITS["trailing_drawdown"],
    "max_drawdown_cap_bp": RULE_UNITS["max_drawdown"],
    "name_fall_cap_bp": RULE_UNITS["name_fall"],
    "daily_loss_cap_bp": RULE_UNITS["daily_loss"],
    "price_jump_cap_bp": RULE_UNITS["price_jump"],
    "max_data_age_days": RULE_UNITS["stale_data"],
    "rejects_cap": "orders",
    "kill_switch": "on or off",
    "restricted": "symbols",
    "not_shortable": "symbols",
    "admitted": "kinds of proof",
    "admitted_statuses": "statuses",
    "similarity_cap_bp": RULE_UNITS["original"],
    "require_review": "on or off",
    "audited": "attributes",
}
"""Unit of each limit of a policy."""
