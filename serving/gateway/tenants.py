"""The tenants of an endpoint: their file, and of each its calls in order, the counter of its tokens, its quotas."""

from __future__ import annotations

import asyncio
import math
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from .. import ServingPlan
from ..errors import GatewayError

REPLIES_REMEMBERED = 8
"""Number of calls, about, over which the length of a tenant's usual reply is averaged."""
MINUTE_SECONDS = 60.0
MAX_CALL_TOKENS = 2**31
"""Upper bound on a call's tokens: a larger count is a mistake or an attack, and would dwarf the counts of others."""
TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(eq=False)
class TenantCall:
    """One call: its input, the most that it may take, and its progress.

    `take` is the call's entry in the quota, once it is counted; `estimate` is the output that was reserved when the
    call was dispatched; `reported` is the output so far, None while it is unknown.
    """

    tenant: Tenant
    tokens_in: int
    most_tokens_out: int
    number: int
    granted: asyncio.Future[None]
    take: Take | None = None
    estimate: float = 0.0
    reported: int | None = None

    @property
    def worst(self) -> int:
        """Return the most tokens that the call can take."""
        return self.tokens_in + self.most_tokens_out

    @property
    def reserved(self) -> float:
        """Return the tokens out that are counted and not yet reported."""
        return max(0.0, self.estimate - (self.reported or 0))


@dataclass(eq=False)
class Tenant:
    """The waiting and running calls of one tenant, and the tokens served to it.

    Input is charged when its call is dispatched, output as it is reported. `level` is the weighted tokens served
    divided by the share, raised after idle time (`lift`), relative to the scheduler's zero (`rebase`). `last` is the
    number of its latest dispatch.
    """

    name: str
    settings: FairnessSettings
    waiting: deque[TenantCall] = field(default_factory=deque)
    running: set[TenantCall] = field(default_factory=set)
    tokens_in: int = 0
    tokens_out: int = 0
    level: float = 0.0
    last: int = 0
    usual: float | None = None

    def __post_init__(self) -> None:
        """Find the tenant's own settings."""
        self.own = self.settings.find_tenant(self.name)
        self.meter = QuotaMeter(self.own)

    @property
    def served(self) -> float:
        """Return the weighted tokens that the tenant was served."""
        return self.settings.input_weight * self.tokens_in + self.settings.output_weight * self.tokens_out

    @property
    def counter(self) -> float:
        """Return the virtual token counter: the level, plus the reservations of the calls under way."""
        reserved = sum(call.reserved for call in self.running)
        return self.level + self.settings.output_weight * reserved / self.own.share

    def lift(self, level: float) -> None:
        """Raise the level of a tenant that returns from idle time, so that it cannot save that time up."""
        self.level = max(self.level, level)

    def rebase(self, level: float) -> None:
        """Subtract this level, so that numbers stay small enough to resolve a token."""
        self.level -= level

    def wait_seconds(self, now: float) -> float:
        """Return the seconds until the quotas admit the first waiting call."""
        head = self.waiting[0]
        return 0.0 if head.take is not None else self.meter.wait_seconds(head.worst, now)

    def start(self, now: float, number: int) -> TenantCall:
        """Dispatch the first waiting call: its input is charged, and its usual output reserved."""
        call = self.waiting[0]
        most = float(call.most_tokens_out)
        call.estimate = most if self.usual is None else min(self.usual, most)
        self._charge(call.tokens_in, 0)
        if call.take is None:
            call.take = self.meter.take(call.worst, now)
        self.waiting.popleft()
        self.running.add(call)
        self.last = number
        return call

    def report(self, call: TenantCall, tokens_out: int) -> None:
        """Charge the output of a call so far."""
        self._charge(0, tokens_out - (call.reported or 0))
        call.reported = tokens_out

    def correct_input(self, call: TenantCall, tokens_in: int) -> None:
        """Charge the actual input of a call."""
        self._charge(tokens_in - call.tokens_in, 0)
        call.tokens_in = tokens_in

    def finish(self, call: TenantCall) -> None:
        """End a call that was dispatched; for one that reported nothing the reservation is charged."""
        if call.reported is None:
            self.report(call, round(call.estimate))
        took = call.reported or 0
        self.usual = float(took) if self.usual is None else self.usual + (took - self.usual) / REPLIES_REMEMBERED
        self.running.discard(call)
        self._settle(call, call.tokens_in + took)

    def withdraw(self, call: TenantCall) -> None:
        """Remove a waiting call."""
        self.waiting.remove(call)
        self._settle(call, 0)

    def _charge(self, tokens_in: int, tokens_out: int) -> None:
        weighted = self.settings.input_weight * tokens_in + self.settings.output_weight * tokens_out
        self.level += weighted / self.own.share
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out

    def _settle(self, call: TenantCall, tokens: int) -> None:
        """Return to the quota the tokens that the call did not take."""
        if call.take is not None:
            self.meter.settle(call.take, tokens)


class _QuotaModel(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TenantSettings(_QuotaModel):
    """One tenant: its share relative to the others, how many of its calls may wait, and its quotas."""

    share: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="twice the share is twice the tokens while both wait"
    )
    queue: int = Field(default=100, ge=0, description="calls that may wait; one more is refused")
    calls: int | None = Field(default=None, ge=1, description="calls under way at once")
    tokens_per_minute: int | None = Field(default=None, ge=1, description="tokens in and out of any 60 seconds")
    over: Literal["wait", "refuse"] = Field(default="wait", description="what becomes of a call beyond a quota")


class FairnessSettings(_QuotaModel):
    """An endpoint that tenants share: the calls that it answers at once, and the weights of tokens."""

    places: int = Field(ge=1, description="calls that the endpoint answers at once, such as its max-num-seqs")
    input_weight: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="what a token in counts")
    output_weight: float = Field(default=2.0, gt=0, allow_inf_nan=False, description="what a token out counts")
    call_tokens: int = Field(
        default=MAX_CALL_TOKENS, ge=1, le=MAX_CALL_TOKENS, description="most tokens out that one sequence may ask for"
    )
    tenants: dict[str, TenantSettings] = Field(default={}, description="by name; any other has the default's")
    default: TenantSettings = TenantSettings()

    def find_tenant(self, name: str) -> TenantSettings:
        """Return a tenant's settings."""
        return self.tenants.get(name, self.default)


@dataclass
class Take:
    """The tokens of one call, and the second at which it was admitted."""

    at: float
    tokens: int


class QuotaMeter:
    """The quotas of a tenant: the calls admitted in any 60 seconds take at most `tokens_per_minute`.

    A call counts with its maximum while it is under way, and with its actual tokens afterwards.
    """

    def __init__(self, settings: TenantSettings) -> None:
        self._settings = settings
        self._takes: deque[Take] = deque()
        self._under_way = 0

    def wait_seconds(self, tokens: int, now: float) -> float:
        """Return the seconds until a call of `tokens` tokens may go; infinity if only the end of another call helps."""
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
        """Count a call that ended, with its actual tokens."""
        self._under_way -= 1
        take.tokens = tokens


class GatewaySettings(BaseModel):
    """An endpoint that tenants share. Missing values are taken from the plan with which the endpoint was started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    places: int | None = Field(default=None, ge=1, description="calls that it answers at once, as its max-num-seqs")
    input_weight: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="what a token in counts")
    output_weight: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="what a token out counts")
    reply_tokens: int = Field(default=4096, ge=1, description="most tokens of a reply where a call does not say")
    sequences: int = Field(default=1, ge=1, description="replies that one call may ask for, which hold one place (n)")
    call_tokens: int | None = Field(
        default=None, ge=1, le=MAX_CALL_TOKENS, description="most that a call may say of it; the plan's max-model-len"
    )
    connections: int = Field(default=1000, ge=1, description="open at once; those that wait for their client make room")
    cache_salt: bool = Field(
        default=True,
        description="give each tenant's prefixes a salt, as vLLM takes it; false: the endpoint refuses such a field",
    )
    megabytes: int = Field(default=64, ge=1, description="of calls that one tenant has open at once")
    tenants: dict[str, TenantSettings] = Field(default={}, description="by name; any other has the default's")
    default: TenantSettings = TenantSettings()

    @field_validator("tenants")
    @classmethod
    def _check_names(cls, tenants: dict[str, TenantSettings]) -> dict[str, TenantSettings]:
        """Refuse invalid names."""
        for name in tenants:
            if TENANT_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name of letters, digits, '.', '_' and '-', 64 at most")
        return tenants

    def build_fairness(self, plan: ServingPlan | None = None) -> FairnessSettings:
        """Return the settings of the scheduler; missing values come from the plan.

        Raises
        ------
        GatewayError
            If neither these settings nor the plan say how many calls the endpoint answers at once.
        """
        places = self.places or _read_flag(plan, "max-num-seqs")
        if places is None:
            raise GatewayError(
                "it is not known how many calls the endpoint answers at once",
                field="places",
                hint=(
                    "Say --places N or places: N in the file of tenants, as the server's --max-num-seqs; "
                    "or name the plan."
                ),
            )
        weight = self.output_weight or self.input_weight * (_estimate_output_weight(plan) if plan else 2.0)
        return FairnessSettings(
            places=places,
            input_weight=self.input_weight,
            output_weight=weight,
            tenants=self.tenants,
            default=self.default,
            call_tokens=self.call_tokens or _read_flag(plan, "max-model-len") or MAX_CALL_TOKENS,
        )


def _read_flag(plan: ServingPlan | None, name: str) -> int | None:
    """Return a plan's positive integer for a flag; None where it has none."""
    value = plan.flags.get(name) if plan else None
    return value if isinstance(value, int) and value > 0 else None


def _estimate_output_weight(plan: ServingPlan) -> float:
    """Return how many times as long a token out holds a place as one in, by the plan's times; 2 where it has none.

    The scheduler distributes places, so a token is weighted by the time for which it holds one.
    """
    predictions = plan.predictions
    try:
        first, tokens, step = (
            float(predictions[name]) for name in ("time_to_first_token_ms", "prompt_tokens", "per_token_full_ms")
        )
    except (KeyError, ValueError):
        return 2.0
    return round(step * tokens / first, 1) if first > 0 and tokens > 0 and step > 0 else 2.0
