"""What attempts at models cost: at their worst before they are made, and as they were answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ledger import canonical_json
from .config import ModelSettings
from .errors import NoModel
from .prices import price_of
from .replies import Answer, Beside, response_format
from .task import Task

__all__ = ["Charges", "fewest_tokens"]


def fewest_tokens(text: str) -> int:
    """Return how many tokens a text is charged as where nobody says: a token is seldom less than two bytes."""
    return len(text.encode(errors="replace")) // 2 + 1


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

    def worst(self, name: str, task: Task, messages: Sequence[dict[str, str]]) -> Beside:
        """Return the most that an attempt can take, the schema counted that may be sent beside the messages."""
        sent = canonical_json(list(messages)) + canonical_json(response_format(task.schema))
        return self._charged(name, fewest_tokens(sent), task.max_tokens)

    def of(self, answer: Answer) -> Beside:
        """Return what an answer took."""
        return self._charged(answer.model, answer.tokens_in, answer.tokens_out)

    def took(self, answer: Answer) -> tuple[int, int, float]:
        """Return tokens in and out, and US dollars, of an answer and of all attempts beside it."""
        all_of_it = (self.of(answer), *answer.beside)
        tokens_in = sum(each.tokens_in for each in all_of_it)
        tokens_out = sum(each.tokens_out for each in all_of_it)
        return tokens_in, tokens_out, sum(each.cost_usd for each in all_of_it)

    def _charged(self, name: str, tokens_in: int, tokens_out: int) -> Beside:
        price_in, price_out = self.price(name, tokens_in)
        return Beside(name, "", tokens_in, tokens_out, tokens_in * price_in + tokens_out * price_out)
