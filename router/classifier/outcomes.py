"""How likely a small model fails at a question of our own agents, learned from what became of such questions.

The agents' questions carry role and intent, and the pages that ask are the same in every campaign, so their text says
little. A logistic model reads the task instead: which question it is, how long its data are, whether earlier results
were refused. Its labels come from recorded campaigns whose questions were put to a small model and to the offline
researcher (`bench/router/campaigns`): hard is what only the latter answered to use. They hold for that pair of models.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Self

from ...ledger.files import read_given
from ..errors import ClassifierUnusable

SHIPPED_OUTCOMES = Path(__file__).with_name("outcomes.json")


@dataclass(frozen=True)
class AskedQuestion:
    """What is known of an agent's question before it is asked.

    Attributes
    ----------
    role, intent : str
        Of the task, as our agents declare them.
    tokens : int
        Estimated tokens of all messages.
    refused : int
        Earlier refusals of the same piece of work.
    """

    role: str
    intent: str
    tokens: int
    refused: int = 0

    @property
    def kind(self) -> str:
        """Role and intent, such as `factor/repair`."""
        return f"{self.role}/{self.intent}"

    def features(self) -> dict[str, float]:
        """Return the features by name; lengths are log2 of thousands of tokens."""
        return {self.kind: 1.0, "length": math.log2(max(self.tokens, 1) / 1_000), "refused": float(self.refused > 0)}


@dataclass(frozen=True)
class OutcomeModel:
    """The probability of a hard question: a logistic model whose logit is calibrated on left-out campaigns.

    Attributes
    ----------
    weights : mapping of str to float
        By feature; every kind of question that was seen has one.
    bias : float
    calibration : tuple of two floats
        Slope and intercept of the logit.
    pair : tuple of two str
        The small model and the one that it was compared with.
    name : str
        The name for the record; it changes with every weight.
    """

    weights: Mapping[str, float]
    bias: float
    calibration: tuple[float, float]
    pair: tuple[str, str]
    name: str = ""

    @classmethod
    @cache
    def shipped(cls) -> Self:
        """Return the model of the file that `build` wrote.

        Raises
        ------
        ClassifierUnusable
            The file is missing or damaged.
        """
        try:
            body = read_given(SHIPPED_OUTCOMES)
            row = json.loads(body)
            small, other = row["pair"]
            slope, intercept = row["calibration"]
            name = f"outcomes-{sha256(body).hexdigest()[:12]}"
            return cls(row["weights"], row["bias"], (slope, intercept), (small, other), name)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ClassifierUnusable(
                f"the model of outcomes cannot be read: {error}",
                field="classifier",
                got=str(SHIPPED_OUTCOMES),
                hint="python -m alphaloom.router.classifier.build writes it again.",
            ) from None

    def logit(self, question: AskedQuestion) -> float:
        """Return the logit of a hard question before its calibration."""
        return self.bias + math.fsum(self.weights.get(name, 0.0) * x for name, x in question.features().items())

    def read(self, question: AskedQuestion) -> float | None:
        """Return the probability that the small model fails; None for a kind of question that was not seen."""
        if question.kind not in self.weights:
            return None
        slope, intercept = self.calibration
        return 1.0 / (1.0 + math.exp(-(slope * self.logit(question) + intercept)))
