"""The limits of a book, and the rules that compare integers with them.

A person sets the limits in the policy of the workspace, and a campaign file may tighten them. Each rule is a comparison
that is recorded whether it binds or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from ..ledger import JSON
from .signal import UNITS_PER_BP, Signal
from .state import BookState

Verdict = Literal["accepted", "member", "promoted", "by_hand", "imported", "watchlist"]
Status = Literal["live", "decaying"]
StandingRule = Literal["proven", "original", "reviewed", "alive", "contained", "unalarmed"]
STANDING_RULES: tuple[str, ...] = get_args(StandingRule)
"""The rules of evidence, in the order in which they are logged."""


SHOWN_ID_CHARS = 9
"""Characters of an id that commands and reports show."""
EXPOSURE_RULES = frozenset({"single_name", "interval_width", "gross", "net", "turnover"})


class PolicyException(BaseModel):
    """One rule of evidence that one factor or combination need not pass, until a day."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    evidence: str = Field(min_length=1, description="id of the factor or combination")
    rule: StandingRule = Field(description="the rule that it need not pass")
    reason: str = Field(min_length=1, description="why, for whoever reads the decision")
    owner: str = Field(min_length=1, description="the person who answers for it")
    until: date = Field(description="the last day on which it holds")

    def names(self, factor_id: str) -> bool:
        """Tell whether this is the id that is meant, or its start."""
        start = len(self.evidence) >= SHOWN_ID_CHARS and factor_id.startswith(self.evidence)
        return start or factor_id == self.evidence


class RiskLimits(BaseModel):
    """RiskLimits in whole numbers; a value equal to its limit passes."""

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
    restricted: tuple[str, ...] = Field(default=(), description="symbols that may only be reduced")
    admitted: tuple[Verdict, ...] = Field(
        default=("accepted", "member", "promoted"), description="how the evidence of a signal must be proven"
    )
    admitted_statuses: tuple[Status, ...] = Field(
        default=("live", "decaying"), description="status that the evidence must have in the library"
    )
    similarity_cap_bp: StrictInt = Field(
        default=8_500, ge=0, description="largest share of a formula that a known factor has too"
    )
    require_review: StrictBool = Field(default=False, description="a person must have approved the evidence")


class Policy(RiskLimits):
    """The limits of a workspace, and what is exempt from its rules of evidence."""

    exceptions: tuple[PolicyException, ...] = Field(
        default=(), description="rules of evidence that a factor need not pass: evidence, rule, reason, owner, until"
    )

    def excepts(self, rule: str, factor_id: str, now: date) -> bool:
        """Tell whether an exception that holds on a day lets a factor pass a rule of evidence.

        It may name the start of an id as commands show it, 9 characters or more.
        """
        return any(one.rule == rule and one.names(factor_id) and now <= one.until for one in self.exceptions)

    def tightened(self, asked: RiskLimits) -> tuple[Policy, tuple[str, ...]]:
        """Return the policy with what a campaign file sets wherever that is tighter, and a note on what is looser.

        Numbers take the smaller one, lists of what is admitted what both admit, lists of symbols both; a switch that
        either turns on is on.
        """
        changes: dict[str, Any] = {}
        notes = []
        for name in sorted(asked.model_fields_set):
            own, other = getattr(self, name), getattr(asked, name)
            changes[name] = tighter = _take_tighter(name, own, other)
            if tighter != other:
                notes.append(
                    f"risk.{name}: the campaign file asks for {_show(other)}; the policy of the workspace has "
                    f"{_show(own)}, and the tighter of both holds: {_show(tighter)}"
                )
        return self.model_copy(update=changes), tuple(notes)


ADDING = frozenset({"kill_switch", "require_review", "restricted"})
"""RiskLimits of which more is tighter."""


def _take_tighter(name: str, own: Any, other: Any) -> Any:
    if isinstance(own, tuple):
        kept = [value for value in own if value in other]
        return tuple(sorted({*own, *other})) if name in ADDING else tuple(kept)
    return max(own, other) if name in ADDING else min(own, other)


def _show(value: Any) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule applied once.

    Attributes
    ----------
    rule
        Name of the rule.
    actual, limit
        The compared values, exposures in 1e-8 of equity; None where there is none, such as the age of a missing price.
    passed
        Whether the rule holds.
    binds
        Whether a failure refuses the signal: limits on risk do not bind a signal that only reduces an exposure.
    about
        What failed: the id of the factor that decides a rule of evidence; empty elsewhere.
    """

    rule: str
    actual: int | None
    limit: int | None
    passed: bool
    binds: bool = True
    about: str = ""

    def record(self) -> dict[str, JSON]:
        """Return the check as a JSON-able object."""
        return asdict(self)

    def told(self) -> dict[str, JSON]:
        """Return the check for a person: exposures in basis points, with four decimals at most."""
        if self.rule not in EXPOSURE_RULES or self.actual is None or self.limit is None:
            return self.record()
        return {**self.record(), "actual": self.actual / UNITS_PER_BP, "limit": self.limit / UNITS_PER_BP}


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


@dataclass(frozen=True, slots=True)
class Totals:
    """Gross, net (absolute) and traded exposure of a book, in 1e-8 of equity."""

    gross: int
    net: int
    turnover: int

    def checks(self, policy: Policy, binds: bool = True) -> tuple[RuleCheck, ...]:
        """Return the three checks of the whole book."""
        return (
            check_at_most("gross", self.gross, policy.gross_cap_bp * UNITS_PER_BP, binds),
            check_at_most("net", self.net, policy.net_cap_bp * UNITS_PER_BP, binds),
            check_at_most("turnover", self.turnover, policy.turnover_cap_bp * UNITS_PER_BP, binds),
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
    """Return the checks of one signal alone."""
    binds = not change.reduces
    width = change.signal.hi_e8 - change.signal.lo_e8
    return (
        stale_check(change.signal.asset, state.last_price, policy, now),
        check_at_most("restricted", int(change.signal.asset in policy.restricted), 0, binds),
        check_at_most("single_name", change.worst_e8, policy.single_name_cap_bp * UNITS_PER_BP, binds),
        check_at_most("interval_width", width, policy.interval_width_cap_bp * UNITS_PER_BP, binds),
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
