"""Costs of attempts: the worst case before an attempt, and the charge after its answer.

The price of a token is the configured one, 0 for a local model, or the one in LiteLLM's installed list. No server is
asked.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...ledger import canonical_json
from ..config import ModelSettings
from ..errors import NoModel
from .completions import parse_count
from .replies import HedgedAttempt, ModelAnswer, build_response_format
from .task import Task

MAX_TOKEN_BYTES = 16
"""Maximum bytes per token, on average over a text without its white space."""
CACHE_COUNT_NAMES = (
    ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens"),
    ("cache_creation_tokens", "cache_creation_input_tokens"),
)
"""Names of the tokens of a prompt that were read from the cache, and of those written, as providers use them."""
PRICE_LIST_FILE = "model_prices_and_context_window_backup.json"


def count_charged_tokens(text: str) -> int:
    """Return the tokens charged for a text without a reported usage: a token seldom has less than two bytes."""
    return len(text.encode(errors="replace")) // 2 + 1


def bound_tokens_above(text: str) -> int:
    """Return the maximum tokens of a text: a token has at least one byte, and digits may have one token each."""
    return len(text.encode(errors="replace"))


def bound_tokens_below(text: str) -> int:
    """Return the minimum tokens of a text."""
    return len("".join(text.split()).encode(errors="replace")) // MAX_TOKEN_BYTES


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one answered attempt; of those in, `cached` were read from the provider's cache, `written` into it."""

    tokens_in: int
    tokens_out: int
    cached: int = 0
    written: int = 0


def read_usage(usage: Mapping[str, Any], sent: str, text: str, worst: HedgedAttempt) -> TokenUsage:
    """Return the tokens of a reported usage, checked against the texts.

    Where a count is invalid, or below the minimum of its text, the tokens are estimated from the texts. A count above
    the maximum of the attempt (`worst`) is cut to it. Cached tokens are ignored where they exceed the prompt's.
    """
    tokens_in, tokens_out = (parse_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    least_in, least_out = bound_tokens_below(sent), bound_tokens_below(text) or bool(text.strip())
    if not tokens_in and not tokens_out:  # zeros stand for a usage that nobody reported
        tokens_in = None
    if tokens_in is None or tokens_out is None or tokens_in < least_in or tokens_out < least_out:
        return TokenUsage(
            min(count_charged_tokens(sent), worst.tokens_in), min(count_charged_tokens(text), worst.tokens_out)
        )
    cached, written = _read_cache_counts(usage)
    if tokens_in > worst.tokens_in or cached + written > tokens_in:
        cached = written = 0
    return TokenUsage(min(tokens_in, worst.tokens_in), min(tokens_out, worst.tokens_out), cached, written)


def _read_cache_counts(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Return the tokens read from the provider's cache, and those written into it."""
    details = usage.get("prompt_tokens_details")
    counts = {**usage, **details} if isinstance(details, dict) else usage
    cached, written = (
        next((count for name in names if (count := parse_count(counts.get(name)))), 0) for names in CACHE_COUNT_NAMES
    )
    return cached, written


class Charges:
    """Prices of the configured models."""

    def __init__(self, models: Mapping[str, ModelSettings]) -> None:
        self._models = models

    def require_price(self, name: str, tokens_in: int = 0) -> tuple[float, float]:
        """Return US dollars per token in and per token out, for a prompt of `tokens_in` tokens.

        Raises
        ------
        NoModel
            If a remote model's price is neither configured nor listed.
        """
        settings = self._models[name]
        price = find_price(settings, tokens_in)
        if price is None:
            raise NoModel(
                f"the price of {settings.model} is not known, so no cap on money could hold",
                field=f"models.{name}.input_cost_per_mtok",
                hint="Set input_cost_per_mtok and output_cost_per_mtok (0 if it is free), or place: local.",
            )
        return price

    def bound_cost(self, name: str, task: Task, messages: Sequence[dict[str, str]]) -> HedgedAttempt:
        """Return the maximum tokens and price of an attempt; the schema counts, since it may be sent too."""
        most = bound_tokens_above(canonical_json(list(messages)) + canonical_json(build_response_format(task.schema)))
        return self._compute_charge(name, TokenUsage(most, task.max_tokens, written=most))

    def charge(self, answer: ModelAnswer) -> HedgedAttempt:
        """Return the tokens and price of an answer."""
        return self._compute_charge(
            answer.model, TokenUsage(answer.tokens_in, answer.tokens_out, answer.cached, answer.written)
        )

    def total(self, answer: ModelAnswer) -> tuple[int, int, float]:
        """Return tokens in, tokens out and US dollars of an answer and of all attempts beside it."""
        attempts = (self.charge(answer), *answer.beside)
        tokens_in = sum(attempt.tokens_in for attempt in attempts)
        tokens_out = sum(attempt.tokens_out for attempt in attempts)
        return tokens_in, tokens_out, sum(attempt.cost_usd for attempt in attempts)

    def _compute_charge(self, name: str, used: TokenUsage) -> HedgedAttempt:
        price_in, price_out = self.require_price(name, used.tokens_in)
        read_price, write_price = find_cache_prices(self._models[name], price_in, used.tokens_in)
        plain = used.tokens_in - used.cached - used.written
        usd = plain * price_in + used.cached * read_price + used.written * write_price + used.tokens_out * price_out
        return HedgedAttempt(name, "", used.tokens_in, used.tokens_out, usd)


FEE_PROVIDERS = frozenset(("perplexity",))
"""Providers that charge for each request beside its tokens. No cap on money could hold, so their models count as
unpriced until the settings give a price that includes the fee."""


def find_price(settings: ModelSettings, tokens_in: int = 0) -> tuple[float, float] | None:
    """Return US dollars per token in and per token out, for a prompt of `tokens_in` tokens; None where unknown.

    Tokens out include reasoning tokens, which cost more at some models: the higher price is returned.
    """
    if settings.input_cost_per_mtok is not None and settings.output_cost_per_mtok is not None:
        return settings.input_cost_per_mtok / 1e6, settings.output_cost_per_mtok / 1e6
    if settings.place == "local":
        return 0.0, 0.0
    listing = find_listing(settings.model)
    if "input_cost_per_token" not in listing or "output_cost_per_token" not in listing:
        return None
    if settings.provider in FEE_PROVIDERS and listing.get("search_context_cost_per_query"):
        return None
    price_in, price_out = (
        _find_price_at_length(listing, name, tokens_in) for name in ("input_cost_per_token", "output_cost_per_token")
    )
    if not price_in and not price_out:  # the list also has zeros for models without a known price
        return None
    return price_in, max(price_out, float(listing.get("output_cost_per_reasoning_token") or 0.0))


def find_cache_prices(settings: ModelSettings, price_in: float, tokens_in: int = 0) -> tuple[float, float]:
    """Return US dollars per token read from the provider's cache, and per token written into it.

    An unknown price is that of any token in (`price_in`). A read costs at most `price_in`, a write at least. Where the
    settings have the price of a token in, a write costs as many times of it as in the list.
    """
    if settings.input_cost_per_mtok is not None:
        read_price = settings.cached_input_cost_per_mtok
        return price_in if read_price is None else read_price / 1e6, price_in * _find_write_factor(settings.model)
    if settings.place == "local":
        return price_in, price_in
    prices = {"cache_read_input_token_cost": price_in, "cache_creation_input_token_cost": price_in}
    prices |= {name: value for name, value in find_listing(settings.model).items() if value is not None}
    read_price, write_price = (
        _find_price_at_length(prices, name, tokens_in)
        for name in ("cache_read_input_token_cost", "cache_creation_input_token_cost")
    )
    return min(read_price, price_in), max(write_price, price_in)


def _find_write_factor(model: str) -> float:
    """Return how many times the price of a token in a write into the cache costs by the list; at least 1."""
    listing = find_listing(model)
    price_in, written = (
        float(listing.get(name) or 0) for name in ("input_cost_per_token", "cache_creation_input_token_cost")
    )
    return max(written / price_in, 1.0) if price_in else 1.0


def _find_price_at_length(listing: dict[str, Any], key: str, tokens_in: int) -> float:
    """Return a price for a prompt of `tokens_in` tokens: some models cost more above a threshold."""
    price = float(listing[key])
    for name, value in listing.items():
        above = re.fullmatch(rf"{key}_above_(\d+)k_tokens", name)
        if above and tokens_in > int(above[1]) * 1000:
            price = max(price, float(value))
    return price


def find_listing(model: str) -> dict[str, Any]:
    """Return the entry of LiteLLM's list for a model; empty where the list does not know it at this provider.

    The list has some models by the name after the provider only; another provider's price for the same name is not
    this one's.
    """
    listings = _load_price_list()
    if model in listings:
        return listings[model]
    provider, _, name = model.partition("/")
    listing = listings.get(name, {})
    listed = str(listing.get("litellm_provider", ""))  # such as bedrock_converse and vertex_ai-language-models
    return listing if listed == provider or listed.startswith((f"{provider}_", f"{provider}-")) else {}


@cache
def _load_price_list() -> dict[str, dict[str, Any]]:
    """Read the price list from the installed package's files: importing the package takes seconds."""
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / PRICE_LIST_FILE
        if path.is_file():
            return dict(json.loads(path.read_text("utf-8")))
    return {}
