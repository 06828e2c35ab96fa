"""The limits of a book, which a person sets in the policy of the workspace; a campaign file may tighten them."""

from __future__ import annotations

from datetime import date
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, field_validator

from ..ledger import compute_digest

Verdict = Literal["accepted", "member", "promoted", "by_hand", "imported", "watchlist"]
Status = Literal["live", "decaying"]
StandingRule = Literal["proven", "original", "reviewed", "alive", "contained", "unalarmed"]
STANDING_RULES: tuple[str, ...] = get_args(StandingRule)
"""The rules of evidence, in the order in which they are logged."""
ExposureRule = Literal["unexposed"]
AUDIT_RULES: tuple[str, ...] = get_args(ExposureRule)
"""The rule of evidence that only a policy with audited attributes has, logged after all others."""


SHOWN_ID_CHARS = 9
"""Characters of an id that commands and reports show."""


def _is_empty(value: Any) -> bool:
    """Tell whether a setting that earlier policies did not have is unset: it is then in no record and no digest."""
    return not value


class PolicyException(BaseModel):
    """One rule of evidence that one factor or combination need not pass, until a day."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    evidence: str = Field(min_length=1, description="id of the factor or combination")
    rule: StandingRule | ExposureRule = Field(description="the rule that it need not pass")
    reason: str = Field(min_length=1, description="why, for whoever reads the decision")
    owner: str = Field(min_length=1, description="the person who answers for it")
    until: date = Field(description="the last day on which it holds")
    attribute: str = Field(
        default="",
        exclude_if=_is_empty,
        description="of the rule unexposed: the attribute that it may carry; empty: all",
    )

    def names(self, factor_id: str) -> bool:
        """Tell whether this is the id that is meant, or its start."""
        start = len(self.evidence) >= SHOWN_ID_CHARS and factor_id.startswith(self.evidence)
        return start or factor_id == self.evidence


class RiskLimits(BaseModel):
    """Limits in whole numbers; a value equal to its limit passes. Shares of equity are in basis points."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    single_name_cap_bp: StrictInt = Field(
        default=500, ge=0, description="largest exposure of a name, at its worse bound"
    )
    interval_width_cap_bp: StrictInt = Field(
        default=1_000, ge=0, description="largest distance between a signal's bounds"
    )
    gross_cap_bp: StrictInt = Field(default=20_000, ge=0, description="long plus short exposure: the leverage")
    net_cap_bp: StrictInt = Field(default=2_000, ge=0, description="long minus short exposure, either sign")
    sector_cap_bp: StrictInt | None = Field(
        default=None, ge=0, description="long minus short exposure of one sector, either sign; null: no limit"
    )
    style_cap_bp: StrictInt | None = Field(
        default=None,
        ge=0,
        description="sum of exposures times beta, size, volatility or momentum in standard deviations; null: no limit",
    )
    margin_long_bp: StrictInt = Field(default=5_000, ge=0, description="equity that a long position binds")
    margin_short_bp: StrictInt = Field(default=5_000, ge=0, description="equity that a short position binds")
    position_cap: StrictInt = Field(default=5_000, ge=0, description="names held")
    turnover_cap_bp: StrictInt = Field(default=20_000, ge=0, description="bought plus sold in a day")
    recent_turnover_cap_bp: StrictInt = Field(
        default=200_000, ge=0, description="bought plus sold in a day and the 19 before it"
    )
    liquidate_days_cap: StrictInt = Field(
        default=10,
        ge=0,
        description="days that selling a name takes, at a tenth of what is traded of it on a usual day",
    )
    trailing_drawdown_cap_bp: StrictInt = Field(
        default=1_500, ge=0, description="fall of equity from its highest value: more refuses increases"
    )
    max_drawdown_cap_bp: StrictInt = Field(
        default=2_500, ge=0, description="fall of equity from its highest value: more halts a book until it is resumed"
    )
    name_fall_cap_bp: StrictInt = Field(
        default=5_000, ge=0, description="loss of a position from its best price, of that price"
    )
    daily_loss_cap_bp: StrictInt = Field(default=300, ge=0, description="loss of the day, of equity at its start")
    price_jump_cap_bp: StrictInt = Field(
        default=5_000, ge=0, description="change of a name's last price from the one before"
    )
    max_data_age_days: StrictInt = Field(default=3, ge=0, description="trading days since a name's last price")
    rejects_cap: StrictInt = Field(default=100, ge=0, description="orders of a day that a venue rejected")
    kill_switch: StrictBool = Field(default=False, description="refuse everything, also what reduces")
    restricted: tuple[str, ...] = Field(default=(), description="symbols that may only be reduced")
    not_shortable: tuple[str, ...] = Field(default=(), description="symbols that nobody lends: no short may grow")
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
    audited: tuple[str, ...] = Field(
        default=(),
        exclude_if=_is_empty,
        description="attributes that the evidence may not carry: groupings of the panel, size, restricted, "
        "not_shortable",
    )

    def __hash__(self) -> int:
        """Return a hash that is computed once: each decision looks up what it derived from its policy."""
        return self._hashed

    @cached_property
    def _hashed(self) -> int:
        """The hash of all limits."""
        return hash(self.model_dump_json())

    @field_validator("restricted", "not_shortable")
    @classmethod
    def _strip_symbols(cls, symbols: tuple[str, ...]) -> tuple[str, ...]:
        """Take the blanks around symbols away: tables of prices are read without them."""
        return tuple(symbol.strip() for symbol in symbols)


class Policy(RiskLimits):
    """The limits of a workspace, what is exempt from its rules of evidence, and how people decide.

    What is about people stands here alone, so that no campaign file can set it, and outside the digest and the records
    of the gate, which reads none of it: each decision on a case records what it needed.
    """

    approvals: StrictInt = Field(
        default=1, ge=1, le=5, exclude=True, description="different people who must approve a case"
    )
    judge_blind: StrictBool = Field(
        default=False, exclude=True, description="a person judges a case before the gate's verdict is shown to them"
    )
    approve_seal: StrictBool = Field(
        default=False, exclude=True, description="a person must agree before a campaign opens its sealed days"
    )
    bench_changes: StrictBool = Field(
        default=False,
        exclude=True,
        description="a campaign may use changed models, prompts or routing only after alphaloom record bench passed",
    )
    revalidate_after_days: StrictInt | None = Field(
        default=365,
        ge=1,
        le=36_500,
        exclude=True,
        description="calendar days after which a person looks at an accepted factor again; null: never",
    )

    exceptions: tuple[PolicyException, ...] = Field(
        default=(), description="rules of evidence that a factor need not pass: evidence, rule, reason, owner, until"
    )

    def excepts(self, rule: str, factor_id: str, now: date, attribute: str = "") -> bool:
        """Tell whether an exception that holds on a day lets a factor pass a rule of evidence.

        It may name the start of an id as commands show it, 9 characters or more. One that names an attribute excuses
        that alone.
        """
        return any(
            one.rule == rule and one.names(factor_id) and now <= one.until and one.attribute in ("", attribute)
            for one in self.exceptions
        )

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


PEOPLE_RULES: Final = ("approvals", "judge_blind", "approve_seal", "bench_changes", "revalidate_after_days")
"""Settings about people."""
ADDING: Final = frozenset(
    {"kill_switch", "require_review", "restricted", "not_shortable", "margin_long_bp", "margin_short_bp", "audited"}
)
"""Limits of which more is tighter."""


@lru_cache(maxsize=64)
def digest_policy(policy: Policy) -> str:
    """Return the SHA-256 of a policy."""
    return compute_digest(policy.model_dump(mode="json"))


def _take_tighter(name: str, own: Any, other: Any) -> Any:
    if own is None or other is None:  # no limit
        return other if own is None else own
    if isinstance(own, tuple):
        kept = [value for value in own if value in other]
        return tuple(sorted({*own, *other})) if name in ADDING else tuple(kept)
    return max(own, other) if name in ADDING else min(own, other)


def _show(value: Any) -> str:
    if value is None:
        return "no limit"
    return (", ".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)
