"""Which configured models answer, checked without a paid call."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..calls.providers import require_connection
from ..config import ModelSettings
from ..errors import NoModel
from ..keys import find_key
from .probe import fetch_text, probe_server, read_prefix_hit_share, strip_api_version

TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class Health:
    """Whether a model answers, and why; None: unknown without a paid call."""

    name: str
    model: str
    tier: str
    answers: bool | None
    detail: str


async def probe_model(
    name: str, settings: ModelSettings, providers: Collection[str], environment: Mapping[str, str]
) -> Health:
    """Check whether a model can be asked: a provider of this process, a key, an address that answers."""
    answers, detail = await _look(settings, providers, environment)
    return Health(name, settings.model, settings.tier, answers, detail)


def refuse_keyless(models: Mapping[str, ModelSettings], environment: Mapping[str, str]) -> None:
    """Raise the first `NoModel` if every model needs a key that is missing."""
    missing: list[NoModel] = []
    for settings in models.values():
        try:
            find_key(settings, environment)
        except NoModel as error:
            missing.append(error)
    if missing and len(missing) == len(models):
        raise missing[0]


async def find_silent_models(
    models: Mapping[str, ModelSettings], providers: Collection[str], environment: Mapping[str, str]
) -> list[str]:
    """Return why models cannot be asked (a missing key, an unreachable server), without a paid call.

    A server is probed as during calls: any answer shows that it is reachable.
    """
    hindrances = await asyncio.gather(
        *(_find_hindrance(settings, providers, environment) for settings in models.values())
    )
    return [f"{name}: {why}" for name, why in zip(models, hindrances, strict=True) if why]


async def _find_hindrance(settings: ModelSettings, providers: Collection[str], environment: Mapping[str, str]) -> str:
    if settings.provider in providers:
        return ""
    try:
        require_connection(settings)
        key = find_key(settings, environment)
    except NoModel as error:
        return error.message
    if settings.api_base is None or settings.attestation is not None:
        return ""
    look = await probe_server(settings.api_base, key, TIMEOUT_SECONDS, own=settings.place == "local")
    return "" if look.up else f"{look.said}; it is tried again"


async def _look(
    settings: ModelSettings, providers: Collection[str], environment: Mapping[str, str]
) -> tuple[bool | None, str]:
    if settings.provider in providers:
        return True, "runs in this process, without a network"
    try:
        require_connection(settings)
        key = find_key(settings, environment)
    except NoModel as error:
        return False, error.message
    if settings.api_base is None:
        source = settings.api_key_env or f"{settings.api_key_keyring} of the keyring"
        key_note = f"{source} is set" if key else "no api_key_env: the provider looks for a key of its own"
        return None, f"not asked: that would be a paid call; {key_note}"
    if settings.attestation is not None and settings.api_base.startswith("https:"):
        return None, "not asked: its certificate is believed only with its proof, which a run asks for"
    return await _ask_for_models(settings.api_base.rstrip("/") + "/models", key, own=settings.place == "local")


async def _ask_for_models(address: str, key: str | None, *, own: bool) -> tuple[bool, str]:
    """Fetch the list of models of one address, and of a local server the hit share of its prefix cache."""
    response = await fetch_text(address, key, TIMEOUT_SECONDS)
    if response.status is None:
        return False, f"{address} does not answer: {response.text}"
    if response.status < 300:
        return True, f"{address} answers ({response.status}){await _describe_cache_hits(address) if own else ''}"
    return False, f"{address} {'refuses the key' if response.status in (401, 403) else 'fails'} ({response.status})"


async def _describe_cache_hits(models: str) -> str:
    """Return the prefix-cache hit share of a vLLM server as text; empty where it reports none."""
    response = await fetch_text(f"{strip_api_version(models.removesuffix('/models'))}/metrics", None, TIMEOUT_SECONDS)
    share = read_prefix_hit_share(response.text) if response.status == 200 else None
    return "" if share is None else f"; {share:.0%} of its prompt tokens came from its prefix cache"
