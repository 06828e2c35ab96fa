"""The router's settings: models, the tier of each role, caps on spending, health checks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .policy.intents import OwnIntent, collect_examples

Tier: TypeAlias = Literal["local", "frontier"]
TierChoice: TypeAlias = Literal["local", "frontier", "auto"]
"""A fixed tier; `auto`: the prompt decides."""
ModelPlace: TypeAlias = Literal["local", "attested", "region", "remote"]


class _ConfigModel(BaseModel):
    """Frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Digest: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""32 bytes in hexadecimal."""
VLLM_PROVIDER = "hosted_vllm"
"""The provider of vLLM servers; their connections alone can be pinned to one certificate."""
SERVER_PROVIDERS = ("openai", VLLM_PROVIDER)
"""Providers whose connections are made here: the OpenAI protocol, which self-hosted servers implement."""


SOLE_VENDORS = {
    "anthropic": "Anthropic",
    "deepseek": "DeepSeek",
    "gemini": "Google",
    "mistral": "Mistral AI",
    "openai": "OpenAI",
}
"""Providers that serve the models of one vendor only, at their own address."""


class AttestationSettings(_ConfigModel):
    """What a machine elsewhere must prove, and who must have signed it, before it is told anything confidential."""

    signer: tuple[Digest, ...] = Field(min_length=1, description="Ed25519 public keys, any of which may sign")
    measurements: tuple[Digest, ...] = Field(
        min_length=1, description="sha256 of the launches that are trusted: model, flags and image"
    )
    path: str = Field(
        default="/attestation", pattern=r"^/[A-Za-z0-9._~/-]*$", description="of the statement, at api_base's host"
    )
    most_seconds: float = Field(default=3600.0, ge=1, le=86_400, description="longest time for which one proof stands")

    @field_validator("signer", "measurements", mode="before")
    @classmethod
    def _wrap_single(cls, value: Any) -> Any:
        """Accept a single text instead of a list."""
        return (value,) if isinstance(value, str) else value


class ModelSettings(_ConfigModel):
    """One model: its provider and name, where it runs, what it costs.

    Prices are US dollars per million tokens. Without a price a model on this machine costs nothing, and any other
    takes LiteLLM's list price, or is refused where that list does not know it: a cap on money must mean something.
    """

    model: str = Field(
        min_length=1, description="provider/model, such as hosted_vllm/qwen or anthropic/... (as LiteLLM names them)"
    )
    tier: Tier = "local"
    place: ModelPlace = Field(
        default="remote",
        description="local: on machines of yours; attested: elsewhere, on a machine that proves what it runs; "
        "confidential tasks go to these two only; region: elsewhere, within `region`",
    )
    region: str = Field(default="", max_length=40, description="jurisdiction in which it runs, such as EU or CH")
    input_cost_per_mtok: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output_cost_per_mtok: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cached_input_cost_per_mtok: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="of tokens in that the provider had in its cache"
    )
    cutoff: date | None = Field(
        default=None, description="last day of its training data, as its vendor claims: the days up to it are exposed"
    )
    vendor: str = Field(default="", max_length=100, description="who made the model, where its name does not say it")
    context_tokens: int | None = Field(default=None, ge=1, description="tokens of prompt and reply that it can hold")
    api_base: str | None = Field(
        default=None, description="address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1"
    )
    api_key_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="NAME of the environment variable that holds the key",
    )
    api_key_keyring: str | None = Field(
        default=None,
        pattern=r"^[^/\s][^/]*/\S.*$",
        max_length=200,
        description="service/name under which the system's keyring holds the key; needs the package keyring",
    )
    attestation: AttestationSettings | None = Field(
        default=None, description="what a model with place: attested proves; without it it is as any that is elsewhere"
    )

    @field_validator("cutoff", mode="before")
    @classmethod
    def _read_cutoff(cls, value: Any) -> Any:
        """Read the text of a campaign file, whose models are validated as Python values, where a text is no date."""
        try:
            return date.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            raise ValueError("should be a day such as 2024-06-30") from None

    @property
    def provider(self) -> str:
        """Through whom it is asked: the word before the slash."""
        return self.model.partition("/")[0]

    @property
    def maker(self) -> str:
        """Who made it, as declared, or the one whose models alone its provider serves; empty where neither says it."""
        known = "" if self.api_base else SOLE_VENDORS.get(self.provider, "")
        return self.vendor or known

    @field_validator("api_base")
    @classmethod
    def _check_address(cls, address: str | None) -> str | None:
        """Refuse an invalid address, and a password in it: the run's record repeats the address."""
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an address begins with http:// or https:// and names a host")
        if parts.username or parts.password:
            raise ValueError("an address must not hold a password; name a variable in api_key_env")
        return address

    @model_validator(mode="after")
    def _check_prices(self) -> Self:
        if (self.input_cost_per_mtok is None) != (self.output_cost_per_mtok is None):
            raise ValueError("set both input_cost_per_mtok and output_cost_per_mtok, or neither")
        if self.cached_input_cost_per_mtok is None:
            return self
        if self.input_cost_per_mtok is None or self.cached_input_cost_per_mtok > self.input_cost_per_mtok:
            raise ValueError("cached_input_cost_per_mtok stands beside input_cost_per_mtok and is at most as much")
        return self

    @model_validator(mode="after")
    def _check_one_key(self) -> Self:
        if self.api_key_env and self.api_key_keyring:
            raise ValueError("set api_key_env or api_key_keyring, not both")
        return self

    @model_validator(mode="after")
    def _check_direct_connection(self) -> Self:
        """Refuse a self-hosted server that LiteLLM would connect to, through proxies and redirections."""
        if self.api_base and self.place in ("local", "attested") and self.provider not in SERVER_PROVIDERS:
            raise ValueError(
                f"a model of place {self.place} with an api_base is asked as "
                f"{' or '.join(f'{name}/NAME' for name in SERVER_PROVIDERS)}, "
                "the protocol that such servers speak (hosted_vllm for vLLM, openai for any other), not as "
                f"{self.provider}/"
            )
        return self

    @model_validator(mode="after")
    def _check_attestation(self) -> Self:
        """Refuse an attestation that does not cover the connection to the model."""
        if self.attestation is None:
            return self
        if self.place != "attested" or self.api_base is None:
            raise ValueError("attestation is for a model with place: attested and an api_base")
        parts = urlsplit(self.api_base)
        if parts.scheme == "http" and not _is_this_machine(parts.hostname or ""):
            raise ValueError("an attested model is asked over https, or over http on this machine (a tunnel's end)")
        if parts.scheme == "https" and self.provider != VLLM_PROVIDER:
            raise ValueError(
                f"only {VLLM_PROVIDER}/ models can be held to a certificate: write model: {VLLM_PROVIDER}/NAME"
            )
        return self


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class TenantBudget(_ConfigModel):
    """Hard caps on what is asked on behalf of one tenant, over all runs of the ledger."""

    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="US dollars, ever")
    day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="US dollars in a UTC day")


class ModelBudget(_ConfigModel):
    """Hard caps on what one run may ask; reaching one ends the run's search, not with an error but with a report."""

    calls: int = Field(default=10_000, ge=0, description="model calls, repairs included")
    tokens: int = Field(default=50_000_000, ge=0, description="tokens in and out")
    usd: float = Field(default=10.0, ge=0, allow_inf_nan=False, description="US dollars")
    day_usd: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="US dollars in a UTC day, all runs of the ledger together"
    )
    tenants: dict[str, TenantBudget] = Field(default={}, description="caps by the name on whose behalf is asked")


class LearningSettings(_ConfigModel):
    """What the policy `learned` may not change, however calls went."""

    floor: float = Field(
        default=0.9, ge=0, le=1, description="success that a small model must have shown before it gets hard prompts"
    )
    try_hard_locally: bool = Field(
        default=False, description="below the floor, try a small model first all the same, and go up where it fails"
    )
    half_life: float = Field(default=200, gt=0, description="outcomes after which one counts half")


class RoutingSettings(_ConfigModel):
    """When a call may go to a small model, where neither its role nor its intent fixes the tier."""

    intents: dict[str, TierChoice] = Field(default={}, description="tier by intent, before that of the role")
    roles: dict[str, dict[str, float]] = Field(
        default={}, description="roles of yours: how likely each intent is, before a word was read"
    )
    own_intents: dict[str, OwnIntent] = Field(default={}, description="intents of yours, told by example prompts")
    policy: Literal["cascade", "direct", "learned"] = Field(
        default="cascade",
        description="cascade: what a small model cannot do goes up; direct: it stays; learned: the cheapest by "
        "outcomes",
    )
    local_tries: int = Field(default=2, ge=1, le=3, description="tries of a small model before a reply is asked above")
    samples: int = Field(
        default=3,
        ge=1,
        le=9,
        description="replies of a small model that are compared, where a task names what to compare",
    )
    least_agreement: float = Field(
        default=0.6, ge=0, le=1, description="share of them that must agree, else a reply is asked above"
    )
    most_refused: int = Field(
        default=2, ge=1, description="refusals of the same draft from which on its repair is asked above"
    )
    learning: LearningSettings = LearningSettings()
    most_hard: float = Field(
        default=0.15, ge=0, le=1, description="probability of being hard from which on a prompt goes up"
    )
    local_tokens: int = Field(default=8_000, ge=1, description="longest call, in tokens, that a small model is given")
    local_depth: int = Field(default=6, ge=0, description="deepest JSON schema that a small model is asked to fill")
    reply_tokens: int = Field(default=400, ge=1, description="of a reply, where nobody says how long it may be")
    embedding: Path | None = Field(
        default=None,
        description="folder of a sentence embedding of yours (onnx/model.onnx, tokenizer.json) that helps to read "
        "prompts",
    )

    def beside(self, folder: Path) -> Self:
        """Return the settings with paths resolved against `folder` and examples read from their files."""
        own = {name: intent.beside(name, folder) for name, intent in self.own_intents.items()}
        collect_examples(own)
        embedding = None if self.embedding is None else (folder / self.embedding).absolute()
        return self.model_copy(update={"own_intents": own, "embedding": embedding})


class HealthSettings(_ConfigModel):
    """When a model is passed over, when it is looked at, and when a second one is asked beside it."""

    failures: int = Field(
        default=3, ge=1, le=100, description="failed calls in a row after which a model rests; silence is one too many"
    )
    probe_seconds: float = Field(default=2.0, gt=0, le=60, description="that a look whether a server is there may take")
    heartbeat_seconds: float = Field(
        default=10.0, ge=0, le=3600, description="between looks at servers, while calls are under way; 0: none"
    )
    patience_seconds: float = Field(
        default=300.0,
        ge=0,
        le=86400,
        description="that calls wait for a server that went away, where no other may answer",
    )
    slow_factor: float = Field(
        default=4.0,
        ge=0,
        allow_inf_nan=False,
        description="times its peers, or its past, from which on a model is slow",
    )
    slow_seconds: float = Field(default=60.0, ge=0, le=3600, description="that a slow model is asked last of its tier")
    hedge: bool = Field(
        default=False,
        description="ask a second model where a short idempotent call takes longer than 95 % of its calls",
    )
    hedge_tokens: int = Field(default=4_000, ge=1, description="longest reply, in tokens, of such a call")
    load: bool = Field(
        default=True, description="of servers of the same model, ask the one with the shorter queue by its /metrics"
    )


REMOVED_MODEL_SETTINGS = frozenset({"tokens_per_second"})
REMOVED_ROUTING_SETTINGS = frozenset({"most_failures"})
"""Settings of older runs that no campaign ever read."""


def drop_removed_settings(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section `models` that a run recorded, without settings that no longer exist."""
    models = {
        name: {key: value for key, value in model.items() if key not in REMOVED_MODEL_SETTINGS}
        for name, model in recorded["models"].items()
    }
    routing = recorded.get("routing", {}).items()
    kept = {key: value for key, value in routing if key not in REMOVED_ROUTING_SETTINGS}
    return {**recorded, "models": models, "routing": kept}


class RouterConfig(_ConfigModel):
    """The router's settings: the section `models` of a campaign, or a file of their own, `router.yaml`."""

    models: dict[str, ModelSettings] = Field(min_length=1, description="in order of preference within a tier")
    roles: dict[str, TierChoice] = Field(
        default={}, description="tier by role; auto, and others: as the prompt demands"
    )
    routing: RoutingSettings = RoutingSettings()
    budget: ModelBudget = ModelBudget()
    health: HealthSettings = HealthSettings()
    retries: int = Field(
        default=2, ge=0, le=10, description="further tries of a failed call, before the next model is asked"
    )
    timeout_seconds: float = Field(default=120.0, gt=0, le=3600)
    cooldown_seconds: float = Field(
        default=5.0, ge=0, le=3600, description="first rest of a model that failed too often; then twice as long"
    )

    def beside(self, folder: Path) -> Self:
        """Return the settings with paths resolved against `folder`."""
        return self.model_copy(update={"routing": self.routing.beside(folder)})
