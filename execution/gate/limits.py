"""The limits of the order gate, which a person sets for a workspace."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from .profile import VenueProfile, read_profiles

_PLAIN: Final = "plain"


class OrderLimits(BaseModel):
    """Limits in whole numbers; a value equal to its limit passes, and null is no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str = Field(default=_PLAIN, description="venue profile: hours, and order and message rates")
    profiles: dict[str, VenueProfile] = Field(default={}, description="further venue profiles by name")
    calendar: str = Field(
        default="", description="exchange of exchange-calendars, such as XNYS; empty: weekday hours of the profile"
    )
    max_quote_age_s: StrictInt = Field(default=60, ge=0, description="seconds since the asset's last price")
    collar_bp: StrictInt = Field(
        default=500, ge=0, description="distance of a limit price from the asset's last price, either side"
    )
    session_collar_bp: StrictInt = Field(
        default=2_000, ge=0, description="distance of an order's price from the first price of the session"
    )
    market_edge_bp: StrictInt = Field(
        default=500, ge=0, description="a market order, and each sale, counts at the last price and so much more"
    )
    order_value_cap: StrictInt | None = Field(
        default=None, ge=0, description="value of an order in the currency; null: no limit"
    )
    order_value_cap_bp: StrictInt | None = Field(
        default=1_500, ge=0, description="value of an order, of equity; null: no limit"
    )
    order_shares_cap: StrictInt | None = Field(
        default=1_000_000, ge=0, description="shares of an order; null: no limit"
    )
    session_volume_cap_bp: StrictInt | None = Field(
        default=2_000,
        ge=0,
        description="shares of an asset in a session, open orders too, of those traded on a usual day; null: no limit",
    )
    credit_cap_bp: StrictInt = Field(
        default=25_000, ge=0, description="value of a session's executed and open orders that increase, of equity"
    )
    repeats_cap: StrictInt = Field(
        default=500,
        ge=0,
        description="orders on one side of an asset, executed or open: then a named person must allow more",
    )
    duplicate_ms: StrictInt = Field(
        default=1_000, ge=0, description="milliseconds in which asset, side, shares and price may not repeat"
    )
    pattern_s: StrictInt = Field(
        default=60, ge=0, description="seconds for which layers, fills and falls of the price are remembered"
    )
    layers_cap: StrictInt | None = Field(
        default=3, ge=0, description="own unfilled limit orders on one side while the other side trades; null: no limit"
    )
    stuffing_s: StrictInt = Field(default=10, ge=0, description="seconds in which unfilled cancels are counted")
    stuffing_cap: StrictInt | None = Field(
        default=20, ge=0, description="own orders of an asset cancelled without a fill; null: no limit"
    )
    close_minutes: StrictInt = Field(default=10, ge=0, description="minutes before the close that are watched")
    close_volume_cap_bp: StrictInt | None = Field(
        default=500, ge=0, description="shares in those minutes, of those traded on a usual day; null: no limit"
    )
    cascade_step_bp: StrictInt = Field(default=25, ge=1, description="move of the price that is one level")
    cascade_cap: StrictInt | None = Field(
        default=3, ge=0, description="levels that the price moved between own orders on that side; null: no limit"
    )
    wash_bp: StrictInt = Field(default=10, ge=0, description="distance of prices that are alike")
    wash_cap: StrictInt | None = Field(
        default=0, ge=0, description="own shares just traded on the other side at a like price; null: no limit"
    )

    @model_validator(mode="after")
    def _find_profile(self) -> OrderLimits:
        """Refuse a profile that is not there."""
        names = {**read_profiles(), **self.profiles}
        if self.profile not in names:
            raise ValueError(f"profile: no profile {self.profile!r}; allowed: {', '.join(sorted(names))}")
        return self

    @property
    def venue_profile(self) -> VenueProfile:
        """Return the profile that holds; one of the workspace comes before one of the package."""
        return {**read_profiles(), **self.profiles}[self.profile]
