"""What a token costs, without asking anybody: configured, nothing on machines of yours, or LiteLLM's list as it was installed."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

from .config import ModelSettings

__all__ = ["listed", "price_of"]

LIST = "model_prices_and_context_window_backup.json"


def price_of(settings: ModelSettings) -> tuple[float, float] | None:
    """Return US dollars per token in and per token out; None where neither the settings nor the list tell them."""
    if settings.input_cost_per_mtok is not None and settings.output_cost_per_mtok is not None:
        return settings.input_cost_per_mtok / 1e6, settings.output_cost_per_mtok / 1e6
    if settings.place == "local":
        return 0.0, 0.0
    found = listed(settings.model)
    if "input_cost_per_token" not in found or "output_cost_per_token" not in found:
        return None
    return float(found["input_cost_per_token"]), float(found["output_cost_per_token"])


def listed(model: str) -> dict[str, Any]:
    """Return what LiteLLM's list says of a model by its whole name, or by the part after the provider; nothing of others."""
    known = _list()
    return known.get(model) or known.get(model.partition("/")[2]) or {}


@cache
def _list() -> dict[str, dict[str, Any]]:
    """Read the list from the installed package: importing that would take seconds."""
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / LIST
        if path.is_file():
            return dict(json.loads(path.read_text("utf-8")))
    return {}
