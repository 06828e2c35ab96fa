"""Models without a configuration file: those whose key is in the environment, and servers on this machine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from ..calls.prices import find_listing
from ..config import ModelSettings

PROVIDER_KEYS: Mapping[str, tuple[str, str]] = {
    "ANTHROPIC_API_KEY": ("anthropic/claude-opus-5-5", "anthropic/claude-haiku-5-5"),
    "OPENAI_API_KEY": ("openai/gpt-5.6", "openai/gpt-5.6-luna"),
    "GEMINI_API_KEY": ("gemini/gemini-3.1-pro-preview", "gemini/gemini-3.1-flash-lite"),
    "MISTRAL_API_KEY": ("mistral/mistral-large-latest", "mistral/mistral-small-latest"),
}
"""Frontier model and cheap model of each provider; the cheap one stands in for a local model."""
LOCAL_SERVERS: Mapping[str, str] = {
    "vllm": "http://127.0.0.1:8000/v1",
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}
DISCOVERY_TIMEOUT_S = 0.3


def find_models(environment: Mapping[str, str], servers: Mapping[str, str] = LOCAL_SERVERS) -> dict[str, ModelSettings]:
    """Return the models, those on this machine first; without any, the providers' cheap models form the local tier.

    Only addresses of this machine are contacted, and no call is paid.
    """
    models = {
        name: settings
        for name, address in servers.items()
        if (settings := _find_served_model(name, address)) is not None
    }
    small = not models
    for key, (large, cheap) in PROVIDER_KEYS.items():
        if environment.get(key):
            provider = large.partition("/")[0]
            models[provider] = _build_remote_model(large, "frontier", key)
            if small:
                models[f"{provider}-small"] = _build_remote_model(cheap, "local", key)
    return models


def _build_remote_model(model: str, tier: str, key: str) -> ModelSettings:
    context = find_listing(model).get("max_input_tokens")
    settings = {"model": model, "tier": tier, "place": "remote", "api_key_env": key, "context_tokens": context}
    return ModelSettings.model_validate(settings)


def _find_served_model(server: str, address: str) -> ModelSettings | None:
    """Return the first model that a server on this machine lists; None where it does not answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/models", timeout=DISCOVERY_TIMEOUT_S) as answer:
            body: Any = json.loads(answer.read(1 << 20))
        first = body["data"][0]
        provider = "hosted_vllm" if server == "vllm" else "openai"  # only vLLM supports its grammars
        settings = {"model": f"{provider}/{first['id']}", "tier": "local", "place": "local", "api_base": address}
        return ModelSettings.model_validate(settings | {"context_tokens": first.get("max_model_len")})
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None
