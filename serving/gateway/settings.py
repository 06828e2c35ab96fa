"""The file of tenants: quotas and shares of one endpoint, and the weights of tokens."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator

from .. import ServingPlan
from ..errors import GatewayError
from .tenants import MAX_CALL_TOKENS, FairnessSettings, TenantSettings

TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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
