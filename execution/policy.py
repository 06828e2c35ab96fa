"""The execution policy of a workspace: a file that a person keeps beside `policy.yaml`, outside every campaign file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from ..ledger import compute_digest, read_settings
from .breakers import BreakerLimits
from .gate import OrderLimits

EXECUTION_FILE: Final = "execution.yaml"


class NautilusSettings(BaseModel):
    """Where NautilusTrader is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    python: str | None = Field(
        default=None,
        min_length=1,
        description="a Python 3.12 or later that has NautilusTrader, for --venue nautilus; null: none",
    )


class ExecutionPolicy(BaseModel):
    """What an order may be, and when trading stops by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    orders: OrderLimits = Field(default=OrderLimits(), description="limits of the order gate")
    breakers: BreakerLimits = Field(default=BreakerLimits(), description="limits of the circuit breakers")

    nautilus: NautilusSettings = Field(
        default=NautilusSettings(), exclude=True, description="the engine behind --venue nautilus; outside the digest"
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
