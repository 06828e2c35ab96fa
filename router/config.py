"""Which models there are, which role asks which tier, and how much may be spent."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Tier: TypeAlias = Literal["local", "frontier"]


class _Settings(BaseModel):
    """Frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(_Settings):
    """One model: its LiteLLM name, where it runs, what it costs.

    Prices are US dollars per million tokens. Without a price a model on this machine costs nothing, and any other
    takes LiteLLM's list price, or is refused where that list does not know it: a cap on money must mean something.
    """

    model: str = Field(
        min_length=1, description="LiteLLM name: provider/model, such as hosted_vllm/qwen or offline/..."
    )
    tier: Tier = "local"
    place: Literal["local", "remote"] = Field(
        default="remote", description="local: on machines of yours; confidential tasks go there only"
    )
    input_cost_per_mtok: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output_cost_per_mtok: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    api_base: str | None = Field(
        default=None, description="address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1"
    )
    api_key_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="NAME of the environment variable that holds the key",
    )

    @field_validator("api_base")
    @classmethod
    def _plain_address(cls, address: str | None) -> str | None:
        """Refuse an address that is none, or that carries a password into the record of the run."""
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an address begins with http:// or https:// and names a host")
        if parts.username or parts.password:
            raise ValueError("an address must not hold a password; name a variable in api_key_env")
        return address

    @model_validator(mode="after")
    def _both_prices(self) -> Self:
        """Refuse half a price."""
        if (self.input_cost_per_mtok is None) != (self.output_cost_per_mtok is None):
            raise ValueError("set both input_cost_per_mtok and output_cost_per_mtok, or neither")
        return self


class ModelBudget(_Settings):
    """Hard caps on what one run may ask; reaching one ends the run's search, not with an error but with a report."""

    calls: int = Field(default=10_000, ge=0, description="model calls, repairs included")
    tokens: int = Field(default=50_000_000, ge=0, description="tokens in and out")
    usd: float = Field(default=10.0, ge=0, allow_inf_nan=False, description="US dollars")


class RouterConfig(_Settings):
    """The router's settings."""

    models: dict[str, ModelSettings] = Field(min_length=1, description="in order of preference within a tier")
    roles: dict[str, Tier] = Field(default={"idea": "frontier", "factor": "local", "eval": "frontier"})
    budget: ModelBudget = ModelBudget()
    retries: int = Field(
        default=2, ge=0, le=10, description="further tries of a failed call, before the next model is asked"
    )
    timeout_seconds: float = Field(default=120.0, gt=0, le=3600)
    cooldown_seconds: float = Field(default=5.0, ge=0, le=3600, description="rest of a model that failed too often")
