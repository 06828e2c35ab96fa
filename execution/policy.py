"""The execution policy of a workspace: a file that a person keeps beside `policy.yaml`, outside every campaign file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from ..ledger import compute_digest, read_settings
from .breakers import BreakerLimits
from .gate import OrderLimits
from .orders import US_PER_SECOND

EXECUTION_FILE: Final = "execution.yaml"
PARTY_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.]{0,31}$"
"""Both names of a session are in the name of its file, with a hyphen between."""


class NautilusSettings(BaseModel):
    """Where NautilusTrader is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    python: str | None = Field(
        default=None,
        min_length=1,
        description="a Python 3.12 or later that has NautilusTrader, for --venue nautilus; null: none",
    )


class FixSettings(BaseModel):
    """The FIX session of a broker or venue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", min_length=1, description="where the venue listens, for --venue fix")
    port: int | None = Field(default=None, ge=1, le=65_535, description="its port; null: no venue")
    sender: str = Field(default="DESK", pattern=PARTY_NAME, description="our SenderCompID")
    target: str = Field(default="VENUE", pattern=PARTY_NAME, description="their CompID")
    version: Literal["FIX.4.4", "FIX.5.0SP2"] = Field(default="FIX.4.4", description="what is spoken")
    drop_copy: str | None = Field(
        default=None,
        pattern=PARTY_NAME,
        description="CompID of our session that gets the venue's drop copy; a difference halts; null: none",
    )
    heartbeat_s: int = Field(default=30, ge=1, le=600, description="seconds of silence until a heartbeat")
    engine: Literal["own", "quickfix"] = Field(
        default="own", description="what keeps the session: Alphaloom itself, or QuickFIX (the extra fix)"
    )
    rehearsal: bool = Field(
        default=False, description="the venue is a simulated one: it is sent orders of sessions that are over"
    )


class PaperMarketSettings(BaseModel):
    """One venue of the market in which the paper venue trades a schedule."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=PARTY_NAME, description="its name")
    depth_bp: StrictInt = Field(
        default=10_000, ge=0, description="shares that it displays, of those of one venue alone"
    )
    fee_e6: StrictInt = Field(default=0, description="fee of a share in 1e-6 of the currency; below 0 is a rebate")
    order_fee_e6: StrictInt = Field(default=0, ge=0, description="fee of an order in 1e-6 of the currency")
    latency_us: StrictInt = Field(default=0, ge=0, le=US_PER_SECOND, description="time until an order arrives")
    hidden_bp: StrictInt = Field(
        default=0, ge=0, description="shares that wait there undisplayed, of the volume of a step of the market"
    )


class ScheduleSettings(BaseModel):
    """How `alphaloom execute --schedule` cuts orders, and what it expects them to cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    participation_bp: StrictInt = Field(
        default=1_000, ge=1, le=10_000, description="largest share of a slice's expected volume; not of market orders"
    )
    slices: StrictInt = Field(default=26, ge=1, le=500, description="slices of a whole session")
    half_spread_bp: float = Field(default=2.0, gt=0, le=1_000, description="expected half of the spread")
    risk_aversion: float = Field(
        default=1e-6, ge=0, le=1, description="of the schedule is: weight of the cost's variance, in 1 / currency"
    )
    hidden_sizes_bp: StrictInt = Field(
        default=0, ge=0, le=10_000, description="each slice's size is drawn within this share of it"
    )
    hidden_times_bp: StrictInt = Field(
        default=0, ge=0, le=10_000, description="each slice's time is drawn within this share of its interval"
    )
    hidden_seed: StrictInt = Field(default=0, ge=0, description="of these draws, with the order's id: tell it nobody")
    venues: tuple[PaperMarketSettings, ...] = Field(
        default=(), max_length=12, description="over which the paper venue routes a schedule's orders; empty: one"
    )

    @model_validator(mode="after")
    def _refuse_equal_names(self) -> ScheduleSettings:
        if len({one.name for one in self.venues}) < len(self.venues):
            raise ValueError("venues: two have the same name")
        return self


class ExecutionPolicy(BaseModel):
    """What an order may be, and when trading stops by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    orders: OrderLimits = Field(default=OrderLimits(), description="limits of the order gate")
    breakers: BreakerLimits = Field(default=BreakerLimits(), description="limits of the circuit breakers")
    schedule: ScheduleSettings = Field(
        default=ScheduleSettings(), description="how orders are cut, for --schedule, and what they should cost"
    )

    nautilus: NautilusSettings = Field(
        default=NautilusSettings(), exclude=True, description="the engine behind --venue nautilus; outside the digest"
    )
    fix: FixSettings = Field(
        default=FixSettings(), exclude=True, description="the session behind --venue fix; outside the digest"
    )

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all limits, those of the venue profile that holds included."""
        profile = self.orders.venue_profile.model_dump(mode="json")
        return compute_digest({**self.model_dump(mode="json"), "profile": profile})


def read_execution_policy(workspace: Path) -> ExecutionPolicy:
    """Return the execution policy of a workspace; the shipped one where it has no file.

    Raises
    ------
    SettingsError
        With all mistakes of the file.
    """
    file = workspace / EXECUTION_FILE
    return read_settings(file, ExecutionPolicy) if os.path.lexists(file) else ExecutionPolicy()  # as policy.yaml
