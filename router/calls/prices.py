"""Costs of attempts: the worst case before an attempt is made, and the charge once it is answered.

A token costs what is configured, nothing on machines of yours, or what LiteLLM's installed list says. No server is asked.
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
from .connections import parse_count
from .replies import HedgedAttempt, ModelAnswer, build_response_format
from .task import Task

MAX_TOKEN_BYTES = 16
"""Bytes of a token at the most, on average over a text without its white space."""
PRICE_LIST_FILE = "model_prices_and_context_window_backup.json"


def count_charged_tokens(text: str) -> int:
    """Return how many tokens a text is charged as where nobody says: a token is seldom less than two bytes."""
    return len(text.encode(errors="replace")) // 2 + 1


def bound_tokens_above(text: str) -> int:
    """Return how many tokens a text can have: a token has a byte at least, and digits may have one each."""
    return len(text.encode(errors="replace"))


def bound_tokens_below(text: str) -> int:
    """Return how many tokens a text has at the least."""
    return len("".join(text.split()).encode(errors="replace")) // MAX_TOKEN_BYTES


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one answered attempt; of those in, `cached` were read from the provider's cache and `written` into it."""

    tokens_in: int
    tokens_out: int
    cached: int = 0
    written: int = 0


def read_usage(usage: Any, sent: str, text: str, worst: HedgedAttempt) -> TokenUsage:
    """Return the tokens that a usage tells, as far as they can be true.

    What is no count, or less than the texts must have, is not believed, and the texts are counted instead. What is more than
    the attempt can have taken (`worst`) counts as that. Cached tokens are believed only beside a prompt that holds them.
    """
    tokens_in, tokens_out = (parse_count(getattr(usage, name, None)) for name in ("prompt_tokens", "completion_tokens"))
    least_in, least_out = bound_tokens_below(sent), bound_tokens_below(text) or bool(text.strip())
    if not tokens_in and not tokens_out:  # LiteLLM says so where a server says nothing
        tokens_in = None
    if tokens_in is None or tokens_out is None or tokens_in < least_in or tokens_out < least_out:
        return TokenUsage(
            min(count_charged_tokens(sent), worst.tokens_in), min(count_charged_tokens(text), worst.tokens_out)
        )
    details = getattr(usage, "prompt_tokens_details", None)
    cached, written = (
        parse_count(getattr(details, name, None)) or 0 for name in ("cached_tokens", "cache_creation_tokens")
    )
    if tokens_in > worst.tokens_in or cached + written > tokens_in:
        cached = written = 0
    return TokenUsage(min(tokens_in, worst.tokens_in), min(tokens_out, worst.tokens_out), cached, written)


class Charges:
    """Prices of the configured models."""

    def __init__(self, models: Mapping[str, ModelSettings]) -> None:
        self._models = models

    def require_price(self, name: str, tokens_in: int = 0) -> tuple[float, float]:
        """Return US dollars per token in and per token out of a prompt of a length.

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
        """Return the most that an attempt can take, the schema counted that may be sent beside the messages."""
        most = bound_tokens_above(canonical_json(list(messages)) + canonical_json(build_response_format(task.schema)))
        return self._charge_for(name, TokenUsage(most, task.max_tokens, written=most))

    def charge(self, answer: ModelAnswer) -> HedgedAttempt:
        """Return what an answer took."""
        return self._charge_for(
            answer.model, TokenUsage(answer.tokens_in, answer.tokens_out, answer.cached, answer.written)
        )

    def total(self, answer: ModelAnswer) -> tuple[int, int, float]:
        """Return tokens in and out, and US dollars, of an answer and of all attempts beside it."""
        all_of_it = (self.charge(answer), *answer.beside)
        tokens_in = sum(each.tokens_in for each in all_of_it)
        tokens_out = sum(each.tokens_out for each in all_of_it)
        return tokens_in, tokens_out, sum(each.cost_usd for each in all_of_it)

    def _charge_for(self, name: str, used: TokenUsage) -> HedgedAttempt:
        price_in, price_out = self.require_price(name, used.tokens_in)
        read, written = find_cache_prices(self._models[name], price_in, used.tokens_in)
        plain = used.tokens_in - used.cached - used.written
        usd = plain * price_in + used.cached * read + used.written * written + used.tokens_out * price_out
        return HedgedAttempt(name, "", used.tokens_in, used.tokens_out, usd)


def find_price(settings: ModelSettings, tokens_in: int = 0) -> tuple[float, float] | None:
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


def find_cache_prices(settings: ModelSettings, price_in: float, tokens_in: int = 0) -> tuple[float, float]:
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
