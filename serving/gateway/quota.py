"""What a tenant may ask of an endpoint, and what it has asked in the last minute."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MINUTE_SECONDS = 60.0
MAX_CALL_TOKENS = 2**31
"""Tokens that no call has: what counts more is a slip of the pen or an attack, and would drown what others are served."""


class _QuotaModel(BaseModel):
    """Frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TenantSettings(_QuotaModel):
    """One tenant: its share beside the others, how many of its calls may wait, and its quotas."""

    share: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="twice the share is twice the tokens while both wait"
    )
    queue: int = Field(default=100, ge=0, description="calls that may wait; one more is refused")
    calls: int | None = Field(default=None, ge=1, description="calls under way at once")
    tokens_per_minute: int | None = Field(default=None, ge=1, description="tokens in and out of any 60 seconds")
    over: Literal["wait", "refuse"] = Field(default="wait", description="what becomes of a call beyond a quota")


class FairnessSettings(_QuotaModel):
    """An endpoint that tenants share: how many calls it takes at once, and what a token weighs."""

    places: int = Field(ge=1, description="calls that the endpoint answers at once, such as its max-num-seqs")
    input_weight: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="what a token in counts")
    output_weight: float = Field(default=2.0, gt=0, allow_inf_nan=False, description="what a token out counts")
    call_tokens: int = Field(
        default=MAX_CALL_TOKENS, ge=1, le=MAX_CALL_TOKENS, description="most tokens out that one sequence may ask for"
    )
    tenants: dict[str, TenantSettings] = Field(default={}, description="by name; any other has the default's")
    default: TenantSettings = TenantSettings()

    def of(self, name: str) -> TenantSettings:
        """Return a tenant's settings."""
        return self.tenants.get(name, self.default)


@dataclass
class Take:
    """Tokens of one call, at the second at which they were let through."""

    at: float
    tokens: int


class QuotaMeter:
    """Holds a tenant to its quotas: in no 60 seconds are calls let through that take more than `tokens_per_minute`.

    A call counts at its worst while it is under way, and as what it took afterwards.
    """

    def __init__(self, settings: TenantSettings) -> None:
        self._settings = settings
        self._takes: deque[Take] = deque()
        self._under_way = 0

    def seconds(self, tokens: int, now: float) -> float:
        """Return when a call of so many tokens may go: 0 for now, infinity if only the end of another call helps."""
        most = self._settings.tokens_per_minute
        if self._settings.calls is not None and self._under_way >= self._settings.calls:
            return math.inf
        if most is None:
            return 0.0
        while self._takes and self._takes[0].at + MINUTE_SECONDS <= now:
            self._takes.popleft()
        excess = sum(take.tokens for take in self._takes) + tokens - most
        if excess <= 0:
            return 0.0
        for take in self._takes:
            excess -= take.tokens
            if excess <= 0:
                return take.at + MINUTE_SECONDS - now
        return math.inf

    def take(self, tokens: int, now: float) -> Take:
        """Count a call that begins."""
        self._under_way += 1
        take = Take(now, tokens)
        if self._settings.tokens_per_minute is not None:
            self._takes.append(take)
        return take

    def settle(self, take: Take, tokens: int) -> None:
        """Count a call that ended, with what it took."""
        self._under_way -= 1
        take.tokens = tokens
