"""The classifier's answer on one prompt: the probability of each intent, and of being hard."""

from __future__ import annotations

from dataclasses import dataclass

INTENTS = (
    "factor_idea", "code", "backtest_read", "debug", "data_lookup", "sentiment", "summary", "portfolio_risk",
    "macro_regime", "critique",
)  # fmt: skip  # a table
"""The built-in intents in the order of the weights' columns; `training/README.md` defines them."""


@dataclass(frozen=True)
class PromptReading:
    """The intents and the difficulty that a prompt's text suggests.

    Attributes
    ----------
    intents : mapping of str to float
        The probability of each intent; they sum to 1.
    hard : float
        The probability that a small model would fail.
    """

    intents: dict[str, float]
    hard: float

    @property
    def intent(self) -> str:
        """The likeliest intent; of equally likely ones the first by name."""
        return min(self.intents, key=lambda name: (-self.intents[name], name))
