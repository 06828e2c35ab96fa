"""The rules of the gate: whole numbers of a signal and its book, each compared with a limit, in fixed order.

No rule reads a clock or a float. A rule holds if its value is known and from 0 to its limit; one without a limit holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from ..ledger import JSON
from .policy import AUDIT_RULES, STANDING_RULES, Policy
from .signal import UNITS_PER_BP, Signal
from .state import MODES, UNKNOWN, BookState

FORM_RULES: Final = ("schema", "duplicate")
OWN_RULES: Final = (
    "valid", "stale_data", "price_jump", "restricted", "borrow", "single_name", "interval_width", "liquidity",
    "name_fall",
)  # fmt: skip  # a table
BOOK_RULES: Final = (
    "kill_switch", "trading_state", "trailing_drawdown", "max_drawdown", "daily_loss", "rejects",
)  # fmt: skip  # a table
TOTAL_RULES: Final = (
    "gross", "net", "turnover", "recent_turnover", "margin", "positions", "sector", "style",
)  # fmt: skip  # a table
RULES: Final = (*FORM_RULES, *STANDING_RULES, *OWN_RULES, *BOOK_RULES, *TOTAL_RULES)
"""The rules of every decision, in the order in which they are logged."""
ALL_RULES: Final = (*RULES, *AUDIT_RULES)
"""These and the rules that only some policies have."""
ALWAYS_BINDING: Final = frozenset({*FORM_RULES, "stale_data", "kill_switch", "trading_state"})
"""Rules that also bind a signal that only reduces an exposure."""
EXPOSURE_RULES: Final = frozenset(
    {"single_name", "interval_width", "gross", "net", "turnover", "recent_turnover", "margin", "sector", "style"}
)
"""Rules whose values are exposures in 1e-8 of equity."""
HUNDREDTHS: Final = 100
VOLUME_PARTS: Final = 10
"""A day sells a tenth of what is traded on a usual day."""
DAYS_OF_TURNOVER: Final = 20
"""The day itself and those before it over which turnover is summed."""
BP: Final = 10_000

Value = int | None


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule applied once.

    Attributes
    ----------
    rule
        Name of the rule.
    actual, limit
        The compared values: exposures in 1e-8 of equity, days to liquidate in hundredths. An actual value of None is
        not known, and fails; a limit of None is none, and holds.
    passed
        Whether the rule holds.
    binds
        Whether a failure refuses the signal: most rules do not bind a signal that only reduces an exposure.
    about
        What decides it: the id of a factor, a sector, or a style; empty elsewhere.
    """

    rule: str
    actual: Value
    limit: Value
    passed: bool
    binds: bool = True
    about: str = ""

    def record(self) -> dict[str, JSON]:
        """Return the check as a JSON-able object."""
        return {
            "rule": self.rule,
            "actual": self.actual,
            "limit": self.limit,
            "passed": self.passed,
            "binds": self.binds,
            "about": self.about,
        }

    def told(self) -> dict[str, JSON]:
        """Return the check for a person: exposures in basis points, with four decimals at most; days as days."""
        unit = UNITS_PER_BP if self.rule in EXPOSURE_RULES else HUNDREDTHS if self.rule == "liquidity" else 0
        if not unit:
            return self.record()
        actual, limit = (None if value is None else value / unit for value in (self.actual, self.limit))
        return {**self.record(), "actual": actual, "limit": limit}


@dataclass(frozen=True, slots=True)
class SignalChange:
    """A well-formed signal with the position that it would change."""

    signal: Signal
    held_e8: int

    @property
    def change_e8(self) -> int:
        """Return the exposure to buy, negative to sell."""
        return self.signal.target_e8 - self.held_e8

    @property
    def reduces(self) -> bool:
        """True if the target lies between zero and the position."""
        low, high = min(0, self.held_e8), max(0, self.held_e8)
        return low <= self.signal.target_e8 <= high

    @property
    def worst_e8(self) -> int:
        """Return the larger exposure of the two bounds, regardless of side."""
        return max(abs(self.signal.lo_e8), abs(self.signal.hi_e8))


def list_rules(policy: Policy) -> tuple[str, ...]:
    """Return the rules of a decision under a policy, in the order in which they are logged."""
    return ALL_RULES if policy.audited else RULES


@lru_cache(maxsize=64)
def list_limits(policy: Policy, reduces: bool = False) -> tuple[Value, ...]:
    """Return the limit of each rule, in the order of `list_rules`; None for no limit."""
    exposures = {
        "single_name": policy.single_name_cap_bp,
        "interval_width": policy.interval_width_cap_bp,
        "gross": policy.gross_cap_bp,
        "net": policy.net_cap_bp,
        "turnover": policy.turnover_cap_bp,
        "recent_turnover": policy.recent_turnover_cap_bp,
        "margin": BP,
        "sector": policy.sector_cap_bp,
        "style": policy.style_cap_bp,
    }
    limits: dict[str, Value] = {
        **dict.fromkeys(ALL_RULES, 0),
        **{rule: None if cap is None else cap * UNITS_PER_BP for rule, cap in exposures.items()},
        "original": policy.similarity_cap_bp,
        "stale_data": policy.max_data_age_days,
        "price_jump": policy.price_jump_cap_bp,
        "liquidity": policy.liquidate_days_cap * HUNDREDTHS,
        "name_fall": policy.name_fall_cap_bp,
        "trading_state": MODES.index("reducing") if reduces else MODES.index("active"),
        "trailing_drawdown": policy.trailing_drawdown_cap_bp,
        "max_drawdown": policy.max_drawdown_cap_bp,
        "daily_loss": policy.daily_loss_cap_bp,
        "rejects": policy.rejects_cap,
        "positions": policy.position_cap,
    }
    return tuple(limits[rule] for rule in list_rules(policy))


def holds(actual: Value, limit: Value) -> bool:
    """Tell whether a value is known and from 0 to its limit; always true without a limit."""
    return limit is None or (actual is not None and 0 <= actual <= limit)


def make_checks(
    rules: Sequence[str], actuals: Sequence[Value], limits: Sequence[Value], reduces: bool, about: Sequence[str] = ()
) -> tuple[RuleCheck, ...]:
    """Return rules with their values as records; `about` may have a text for each."""
    texts = about or [""] * len(rules)
    return tuple(
        RuleCheck(rule, actual, limit, holds(actual, limit), not reduces or rule in ALWAYS_BINDING, text)
        for rule, actual, limit, text in zip(rules, actuals, limits, texts, strict=True)
    )


def measure_own(change: SignalChange, state: BookState, policy: Policy, now: date) -> tuple[Value, ...]:
    """Return the values of `OWN_RULES` for one signal alone."""
    signal = change.signal
    asset, worst = signal.asset, change.worst_e8
    facts = state.assets.get(asset, UNKNOWN)
    grows_short = signal.target_e8 < min(change.held_e8, 0)
    return (
        max((now - signal.until).days, 0),
        state.age_of(asset, now),
        facts.jump_bp,
        int(asset in policy.restricted),
        int(grows_short and asset in policy.not_shortable),
        worst,
        signal.hi_e8 - signal.lo_e8,
        _round_up(worst * VOLUME_PARTS * HUNDREDTHS, facts.volume_e8) if worst else 0,
        facts.fall_bp if change.held_e8 else 0,
    )


def measure_book(state: BookState, policy: Policy) -> tuple[Value, ...]:
    """Return the values of `BOOK_RULES`: what holds of the book whatever is asked."""
    began = state.equity - state.pnl_today
    drawdown = _round_up((state.high_water - state.equity) * BP, state.high_water)
    loss = _round_up(max(-state.pnl_today, 0) * BP, began) if began > 0 else BP
    return (int(policy.kill_switch), MODES.index(state.mode), drawdown, drawdown, loss, state.rejects)


def _round_up(part: int, whole: int | None) -> Value:
    """Return part over whole, rounded up, so that any excess over a limit counts; None without a whole."""
    return -(-part // whole) if whole else None
