"""The limits of a book, and the rules that compare integers with them.

A person sets the limits in the campaign file. Each rule is a comparison that is recorded whether it binds or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from ..ledger import JSON
from .signal import Signal
from .state import BookState


class Policy(BaseModel):
    """Limits in whole numbers; a value equal to its limit passes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    single_name_cap_bp: StrictInt = Field(
        default=500, ge=0, description="largest exposure of a name, at its worse bound"
    )
    interval_width_cap_bp: StrictInt = Field(
        default=1_000, ge=0, description="largest distance between a signal's bounds"
    )
    gross_cap_bp: StrictInt = Field(default=20_000, ge=0, description="long plus short exposure")
    net_cap_bp: StrictInt = Field(default=2_000, ge=0, description="long minus short exposure, either sign")
    turnover_cap_bp: StrictInt = Field(default=20_000, ge=0, description="bought plus sold in a day")
    trailing_drawdown_cap_bp: StrictInt = Field(
        default=1_500, ge=0, description="fall of equity from its highest value"
    )
    daily_loss_cap_bp: StrictInt = Field(default=300, ge=0, description="loss of the day, of equity at its start")
    max_data_age_days: StrictInt = Field(default=5, ge=0, description="calendar days since a name's last price")
    kill_switch: StrictBool = Field(default=False, description="refuse everything, also what reduces")


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule applied once.

    Attributes
    ----------
    rule
        Name of the rule.
    actual, limit
        The compared values; None where there is no value, such as the age of a missing price.
    passed
        Whether the rule holds.
    binds
        Whether a failure refuses the signal: limits on risk do not bind a signal that only reduces an exposure.
    """

    rule: str
    actual: int | None
    limit: int | None
    passed: bool
    binds: bool = True

    def record(self) -> dict[str, JSON]:
        """Return the check as a JSON-able object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SignalChange:
    """A well-formed signal with the position that it would change."""

    signal: Signal
    held_bp: int

    @property
    def change_bp(self) -> int:
        """Return the exposure to buy, negative to sell."""
        return self.signal.target_bp - self.held_bp

    @property
    def reduces(self) -> bool:
        """True if the target lies between zero and the position."""
        low, high = min(0, self.held_bp), max(0, self.held_bp)
        return low <= self.signal.target_bp <= high

    @property
    def worst_bp(self) -> int:
        """Return the larger exposure of the two bounds, regardless of side."""
        return max(abs(self.signal.lo_bp), abs(self.signal.hi_bp))


@dataclass(frozen=True, slots=True)
class Totals:
    """Gross, net (absolute) and traded exposure of a book, in basis points of equity."""

    gross: int
    net: int
    turnover: int

    def checks(self, policy: Policy, binds: bool = True) -> tuple[RuleCheck, ...]:
        """Return the three checks of the whole book."""
        return (
            check_at_most("gross", self.gross, policy.gross_cap_bp, binds),
            check_at_most("net", self.net, policy.net_cap_bp, binds),
            check_at_most("turnover", self.turnover, policy.turnover_cap_bp, binds),
        )


def check_at_most(rule: str, actual: int, limit: int, binds: bool = True) -> RuleCheck:
    """Check that a value is not above its limit."""
    return RuleCheck(rule, actual, limit, actual <= limit, binds)


def book_checks(state: BookState, policy: Policy, binds: bool = True) -> tuple[RuleCheck, ...]:
    """Return the checks of the book alone: kill switch, drawdown, loss of the day."""
    began = state.equity - state.pnl_today
    drawdown = _share_bp(state.high_water - state.equity, state.high_water)
    loss = _share_bp(-state.pnl_today, began) if began > 0 else 10_000
    return (
        RuleCheck("kill_switch", int(policy.kill_switch), 0, not policy.kill_switch),
        check_at_most("trailing_drawdown", drawdown, policy.trailing_drawdown_cap_bp, binds),
        check_at_most("daily_loss", max(loss, 0), policy.daily_loss_cap_bp, binds),
    )


def own_checks(change: SignalChange, state: BookState, policy: Policy, now: date) -> tuple[RuleCheck, ...]:
    """Return the checks of one signal alone, and those of the book as they apply to it."""
    binds = not change.reduces
    width = change.signal.hi_bp - change.signal.lo_bp
    return (
        stale_check(change.signal.asset, state.last_price, policy, now),
        check_at_most("single_name", change.worst_bp, policy.single_name_cap_bp, binds),
        check_at_most("interval_width", width, policy.interval_width_cap_bp, binds),
        *book_checks(state, policy, binds),
    )


def stale_check(asset: str, last_price: Mapping[str, date], policy: Policy, now: date) -> RuleCheck:
    """Check the age of a price; a missing price and one from the future fail as well."""
    day = last_price.get(asset)
    age = None if day is None else (now - day).days
    passed = age is not None and 0 <= age <= policy.max_data_age_days
    return RuleCheck("stale_data", age, policy.max_data_age_days, passed)


def has_refusal(checks: Sequence[RuleCheck]) -> bool:
    """Tell whether a binding check has failed."""
    return any(check.binds and not check.passed for check in checks)


def _share_bp(part: int, whole: int) -> int:
    """Return part of whole in basis points, rounded up, so that any excess over a limit counts."""
    return -(-part * 10_000 // whole)
