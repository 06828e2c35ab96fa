"""Which configured models answer, found without spending a token."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .config import ModelSettings
from .errors import NoModel
from .looking import get
from .route import secret

TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True)
class Health:
    """Whether a model answers (None: not known without paying for a call), and why."""

    name: str
    model: str
    tier: str
    answers: bool | None
    detail: str


async def probe(
    name: str, settings: ModelSettings, providers: Collection[str], environment: Mapping[str, str]
) -> Health:
    """Look whether a model can be asked: a provider of this process, a key, an address that answers."""
    answers, detail = await _look(settings, providers, environment)
    return Health(name, settings.model, settings.tier, answers, detail)


async def _look(
    settings: ModelSettings, providers: Collection[str], environment: Mapping[str, str]
) -> tuple[bool | None, str]:
    """Return whether it answers, and why."""
    if settings.model.partition("/")[0] in providers:
        return True, "runs in this process, without a network"
    try:
        key = secret(settings, environment)
    except NoModel as error:
        return False, error.message
    if settings.api_base is None:
        kept = settings.api_key_env or f"{settings.api_key_keyring} of the keyring"
        held = f"{kept} is set" if key else "no api_key_env: the provider looks for a key of its own"
        return None, f"not asked: that would be a paid call; {held}"
    if settings.attestation is not None and settings.api_base.startswith("https:"):
        return None, "not asked: its certificate is believed only with its proof, which a run asks for"
    return await _models(settings.api_base.rstrip("/") + "/models", key)


async def _models(address: str, key: str | None) -> tuple[bool, str]:
    """Ask one address for its list of models."""
    seen = await get(address, key, TIMEOUT_SECONDS)
    if seen.status is None:
        return False, f"{address} does not answer: {seen.text}"
    if seen.status < 300:
        return True, f"{address} answers ({seen.status})"
    return False, f"{address} {'refuses the key' if seen.status in (401, 403) else 'fails'} ({seen.status})"
