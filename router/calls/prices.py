"""What a token costs, without asking anybody: configured, nothing on machines of yours, or LiteLLM's list as it was installed."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from ..config import ModelSettings

PRICE_LIST_FILE = "model_prices_and_context_window_backup.json"


def price_of(settings: ModelSettings, tokens_in: int = 0) -> tuple[float, float] | None:
    """Return US dollars per token in and per token out of a prompt of a length; None where neither settings nor list tell.

    Thoughts count among the tokens out, and cost more than these at some models.
    """
    if settings.input_cost_per_mtok is not None and settings.output_cost_per_mtok is not None:
        return settings.input_cost_per_mtok / 1e6, settings.output_cost_per_mtok / 1e6
    if settings.place == "local":
        return 0.0, 0.0
    found = find_listing(settings.model)
    if "input_cost_per_token" not in found or "output_cost_per_token" not in found:
        return None
    price_in, price_out = (
        _price_at_length(found, name, tokens_in) for name in ("input_cost_per_token", "output_cost_per_token")
    )
    if not price_in and not price_out:  # the list says so also of what it has no price for
        return None
    return price_in, max(price_out, float(found.get("output_cost_per_reasoning_token") or 0.0))


def cache_price_of(settings: ModelSettings, price_in: float, tokens_in: int = 0) -> tuple[float, float]:
    """Return US dollars per token in that was read from the provider's cache, and per one that was written into it.

    Where no price is known for them they cost what any token in does (`price_in`); reading costs no more, writing no less.
    """
    if settings.cached_input_cost_per_mtok is not None:
        return settings.cached_input_cost_per_mtok / 1e6, price_in
    if settings.input_cost_per_mtok is not None or settings.place == "local":
        return price_in, price_in
    found = {"cache_read_input_token_cost": price_in, "cache_creation_input_token_cost": price_in}
    found |= {name: value for name, value in find_listing(settings.model).items() if value is not None}
    read, written = (
        _price_at_length(found, name, tokens_in)
        for name in ("cache_read_input_token_cost", "cache_creation_input_token_cost")
    )
    return min(read, price_in), max(written, price_in)


def _price_at_length(found: dict[str, Any], what: str, tokens_in: int) -> float:
    """Return a price for a prompt of a length: some models cost more from one on."""
    price = float(found[what])
    for name, value in found.items():
        above = re.fullmatch(rf"{what}_above_(\d+)k_tokens", name)
        if above and tokens_in > int(above[1]) * 1000:
            price = max(price, float(value))
    return price


def find_listing(model: str) -> dict[str, Any]:
    """Return what LiteLLM's list says of a model by its whole name, or by the part after the provider; nothing of others."""
    known = _list()
    return known.get(model) or known.get(model.partition("/")[2]) or {}


@cache
def _list() -> dict[str, dict[str, Any]]:
    """Read the list from the installed package: importing that would take seconds."""
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / PRICE_LIST_FILE
        if path.is_file():
            return dict(json.loads(path.read_text("utf-8")))
    return {}
