"""The built-in classifier: a linear model over hashed features, plus the votes of the nearest training prompts."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ...ledger.files import read_given
from ..errors import RouterError
from .features import FEATURE_BUCKETS, Features, build_features, normalise_prompt, weigh_text
from .neighbours import Neighbours
from .prompt_reading import INTENTS, PromptReading

SHIPPED = Path(__file__).with_name("weights.npz")
QUANTISATION_STEPS = 127
"""A weight is an integer from -127 to 127 times the step size of its column."""


class Vectors(Protocol):
    """Turns prompts into features, and into scores."""

    @property
    def width(self) -> int:
        """The dimension of the features."""
        ...

    def rows(self, prompts: Sequence[str]) -> list[Features]:
        """Return the features of each prompt."""
        ...

    def scores(self, prompt: str) -> NDArray[np.float64]:
        """Return the logits of a prompt, ``[intents + 1]``; the last is that of hardness."""
        ...


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Quantised weights by bucket: integers with a step size for each column.

    Attributes
    ----------
    steps : array, int8, [buckets, intents + 1]
    sizes, bias : array, float32, [intents + 1]
    rarity : array, uint8, [buckets]
        Inverse document frequency in steps of `rarest` / 255.
    rarest : float
    near : Neighbours
        Nearest training prompts, whose scores are added.
    digest : str
        SHA-256 of the file that it was read from; empty without a file.
    """

    steps: NDArray[np.int8]
    sizes: NDArray[np.float32]
    bias: NDArray[np.float32]
    rarity: NDArray[np.uint8]
    rarest: float
    near: Neighbours
    digest: str = ""

    @cached_property
    def _rarity(self) -> NDArray[np.float32]:
        return (self.rarity.astype(np.float32) * np.float32(self.rarest / 255)).astype(np.float32)

    def scores(self, prompt: str) -> NDArray[np.float64]:
        """Return the logits of a prompt, float64, ``[intents + 1]``."""
        text = normalise_prompt(prompt)
        features = weigh_text(text, self._rarity)
        summed = features.weights @ self.steps[features.rows].astype(np.float32)
        return np.asarray(summed * self.sizes + self.bias, dtype=np.float64) + self.near.scores(text)

    @property
    def width(self) -> int:
        """The number of buckets."""
        return len(self.rarity)

    def rows(self, prompts: Sequence[str]) -> list[Features]:
        """Return the features of each prompt."""
        return [build_features(prompt, self._rarity) for prompt in prompts]

    @classmethod
    def read(cls, path: Path = SHIPPED) -> Self:
        """Return the table of a file that `build` wrote.

        Raises
        ------
        RouterError
            The file is missing, damaged, or of another version.
        """
        try:
            body = read_given(path)
            with np.load(io.BytesIO(body), allow_pickle=False) as archive:
                table = cls(
                    archive["steps"],
                    archive["sizes"],
                    archive["bias"],
                    archive["rarity"],
                    float(archive["rarest"]),
                    Neighbours.held(archive),
                    hashlib.sha256(body).hexdigest(),
                )
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise RouterError(
                f"the classifier cannot be read: {error}",
                code="bad_classifier",
                field="classifier",
                got=str(path),
                hint="python -m alphaloom.router.classifier.build writes it again.",
            ) from None
        if table.steps.shape != (FEATURE_BUCKETS, len(INTENTS) + 1):
            raise RouterError(
                "the classifier is of another version",
                code="bad_classifier",
                field="classifier",
                got=table.steps.shape,
                allowed=(FEATURE_BUCKETS, len(INTENTS) + 1),
                hint="python -m alphaloom.router.classifier.build writes it again.",
            )
        return table

    @classmethod
    def of(
        cls,
        weights: NDArray[np.float64],
        bias: NDArray[np.float64],
        rarity: NDArray[np.uint8],
        rarest: float,
        near: Neighbours,
    ) -> Self:
        """Return the quantised table of weights, float64, ``[buckets, intents + 1]``."""
        sizes = np.maximum(np.abs(weights).max(axis=0), 1e-12) / QUANTISATION_STEPS
        steps = np.rint(weights / sizes).astype(np.int8)
        return cls(steps, sizes.astype(np.float32), bias.astype(np.float32), rarity, rarest, near)


class Classifier:
    """Reads prompts.

    Parameters
    ----------
    vectors : Vectors
        The built-in weights, or a user's embedding with a fitted head.
    name : str
        The name for the record; it changes with every weight.
    """

    def __init__(self, vectors: Vectors, name: str) -> None:
        self.vectors, self.name = vectors, name

    @classmethod
    def shipped(cls, path: Path = SHIPPED) -> Self:
        """Return the classifier of a file that `build` wrote.

        Raises
        ------
        RouterError
            See `WeightTable.read`.
        """
        table = WeightTable.read(path)
        return cls(table, f"ngrams-{table.digest[:12]}")

    def read(self, prompt: str) -> PromptReading:
        """Return the probabilities of the intents and of a hard prompt."""
        scores = self.vectors.scores(prompt)
        intents = np.exp(scores[:-1] - scores[:-1].max())
        shares = intents / intents.sum()
        hard = 1.0 / (1.0 + np.exp(-scores[-1]))
        return PromptReading(dict(zip(INTENTS, (float(share) for share in shares), strict=True)), float(hard))
