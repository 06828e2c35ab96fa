"""What attempts at models cost: at their worst before they are made, and as they were answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...ledger import canonical_json
from ..config import ModelSettings
from ..errors import NoModel
from .prices import cache_price_of, price_of
from .replies import HedgedAttempt, ModelAnswer, response_format
from .task import Task
from .wire import parse_count

MAX_TOKEN_BYTES = 16
"""Bytes of a token at the most, on average over a text without its white space."""


def charged_tokens(text: str) -> int:
    """Return how many tokens a text is charged as where nobody says: a token is seldom less than two bytes."""
    return len(text.encode(errors="replace")) // 2 + 1


def upper_token_count(text: str) -> int:
    """Return how many tokens a text can have: a token has a byte at least, and digits may have one each."""
    return len(text.encode(errors="replace"))


def lower_token_count(text: str) -> int:
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
    least_in, least_out = lower_token_count(sent), lower_token_count(text) or bool(text.strip())
    if not tokens_in and not tokens_out:  # LiteLLM says so where a server says nothing
        tokens_in = None
    if tokens_in is None or tokens_out is None or tokens_in < least_in or tokens_out < least_out:
        return TokenUsage(min(charged_tokens(sent), worst.tokens_in), min(charged_tokens(text), worst.tokens_out))
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

    def price(self, name: str, tokens_in: int = 0) -> tuple[float, float]:
        """Return US dollars per token in and per token out of a prompt of a length.

        Raises
        ------
        NoModel
            If a remote model's price is neither configured nor listed.
        """
        settings = self._models[name]
        price = price_of(settings, tokens_in)
        if price is None:
            raise NoModel(
                f"the price of {settings.model} is not known, so no cap on money could hold",
                field=f"models.{name}.input_cost_per_mtok",
                hint="Set input_cost_per_mtok and output_cost_per_mtok (0 if it is free), or place: local.",
            )
        return price

    def worst(self, name: str, task: Task, messages: Sequence[dict[str, str]]) -> HedgedAttempt:
        """Return the most that an attempt can take, the schema counted that may be sent beside the messages."""
        most = upper_token_count(canonical_json(list(messages)) + canonical_json(response_format(task.schema)))
        return self._charge_for(name, TokenUsage(most, task.max_tokens, written=most))

    def of(self, answer: ModelAnswer) -> HedgedAttempt:
        """Return what an answer took."""
        return self._charge_for(
            answer.model, TokenUsage(answer.tokens_in, answer.tokens_out, answer.cached, answer.written)
        )

    def took(self, answer: ModelAnswer) -> tuple[int, int, float]:
        """Return tokens in and out, and US dollars, of an answer and of all attempts beside it."""
        all_of_it = (self.of(answer), *answer.beside)
        tokens_in = sum(each.tokens_in for each in all_of_it)
        tokens_out = sum(each.tokens_out for each in all_of_it)
        return tokens_in, tokens_out, sum(each.cost_usd for each in all_of_it)

    def _charge_for(self, name: str, used: TokenUsage) -> HedgedAttempt:
        price_in, price_out = self.price(name, used.tokens_in)
        read, written = cache_price_of(self._models[name], price_in, used.tokens_in)
        plain = used.tokens_in - used.cached - used.written
        usd = plain * price_in + used.cached * read + used.written * written + used.tokens_out * price_out
        return HedgedAttempt(name, "", used.tokens_in, used.tokens_out, usd)
