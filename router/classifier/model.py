"""The built-in classifier: a linear model over hashed features, plus the votes of the nearest training prompts."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ...ledger.files import read_given
from ..errors import ClassifierUnusable
from .blocks import list_blocks, mend_text, shorten
from .features import FEATURE_BUCKETS, Features, build_features, normalise_prompt, weigh_text
from .neighbours import Neighbours
from .prompt_reading import INTENTS, PromptReading

SHIPPED = Path(__file__).with_name("weights.npz")
REQUEST_MARGIN, MIDDLE_ODDS = 0.5, 1.0
"""Log-odds above those of the block that most looks like a request, up to which a block counts as one, too; log-odds of
an attachment that a block between others gets. Chosen on composed training prompts of a writer left out."""
ATTACHMENT_CHARS = 200, 200
"""First and last characters of a block that tell whether it is an attachment."""
QUANTISATION_STEPS = 127
"""A weight is an integer from -127 to 127 times the step size of its column."""
MIN_STEPS = 3
"""Smaller weights are dropped: they are a third of the file, and no accuracy on writers left out hangs on them."""


TABLE_ARRAYS = ("steps", "sizes", "bias", "rarity", "attached", "attached_scale", "calibration")
"""Arrays of a table in its file."""


class Vectors(Protocol):
    """Turns prompts into features, and into scores."""

    @property
    def width(self) -> int:
        """The dimension of the features."""
        ...

    @property
    def calibration(self) -> NDArray[np.float64]:
        """Slope and intercept ``[2]`` that make a logit of hardness a probability."""
        ...

    def rows(self, prompts: Sequence[str]) -> list[Features]:
        """Return the features of each prompt."""
        ...

    def scores(self, prompt: str) -> NDArray[np.float64]:
        """Return the logits of a prompt, ``[intents + 1]``; the last is that of hardness."""
        ...

    def attachment(self, text: str) -> float:
        """Return the log-odds that a text is attached to a request, rather than the request itself."""
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
    attached : array, int8, [buckets]
        Weights that tell an attachment from a request, with a step size and a bias in `attached_scale`.
    attached_scale : array, float64, [2]
    calibration : array, float64, [2]
        Slope and intercept of the logit of hardness, fitted on writers that were left out.
    digest : str
        SHA-256 of the file that it was read from; empty without a file.
    """

    steps: NDArray[np.int8]
    sizes: NDArray[np.float32]
    bias: NDArray[np.float32]
    rarity: NDArray[np.uint8]
    rarest: float
    near: Neighbours
    attached: NDArray[np.int8] = field(default_factory=lambda: np.zeros(FEATURE_BUCKETS, np.int8))
    attached_scale: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    calibration: NDArray[np.float64] = field(default_factory=lambda: np.array([1.0, 0.0]))
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

    def attachment(self, text: str) -> float:
        """Return the log-odds that a text is attached to a request, rather than the request itself."""
        features = build_features(shorten(text, *ATTACHMENT_CHARS), self._rarity)
        step, bias = self.attached_scale
        return float(features.weights @ self.attached[features.rows].astype(np.float32) * step + bias)

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
        ClassifierUnusable
            The file is missing, damaged, or of another version.
        """
        try:
            body = read_given(path)
            with np.load(io.BytesIO(body), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in TABLE_ARRAYS}
                if arrays["steps"].shape != (FEATURE_BUCKETS, len(INTENTS) + 1):
                    raise ValueError(f"it is of another version, with weights of shape {arrays['steps'].shape}")
                rarest, near = float(archive["rarest"]), Neighbours.held(archive)
                return cls(rarest=rarest, near=near, digest=hashlib.sha256(body).hexdigest(), **arrays)
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise ClassifierUnusable(
                f"the classifier cannot be read: {error}",
                field="classifier",
                got=str(path),
                hint="python -m alphaloom.router.classifier.build writes it again.",
            ) from None

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
        steps, sizes = quantise(weights)
        return cls(steps, sizes.astype(np.float32), bias.astype(np.float32), rarity, rarest, near)


def quantise(weights: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Return weights ``[buckets, columns]`` as integers, and the step size of each column; small ones become 0."""
    sizes = np.maximum(np.abs(weights).max(axis=0), 1e-12) / QUANTISATION_STEPS
    steps = np.rint(weights / sizes).astype(np.int8)
    steps[np.abs(steps) < MIN_STEPS] = 0
    return steps, sizes


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
        ClassifierUnusable
            See `WeightTable.read`.
        """
        table = WeightTable.read(path)
        return cls(table, f"ngrams-{table.digest[:12]}")

    def read(self, prompt: str) -> PromptReading:
        """Return the probabilities of the intents and of a hard prompt.

        The blocks of the prompt that may be its request are read one by one. The hardest of them decides how hard the
        prompt is; their scores are averaged for the intents.
        """
        scores = [self.vectors.scores(block) for block in self._list_requests(prompt)]
        logits = np.mean([row[:-1] for row in scores], axis=0)
        intents = np.exp(logits - logits.max())
        shares = intents / intents.sum()
        slope, intercept = self.vectors.calibration
        hard = 1.0 / (1.0 + np.exp(-(slope * max(row[-1] for row in scores) + intercept)))
        return PromptReading(dict(zip(INTENTS, (float(share) for share in shares), strict=True)), float(hard))

    def _list_requests(self, prompt: str) -> list[str]:
        """Return the blocks that are about as likely to be the request as the likeliest one."""
        blocks = list_blocks(mend_text(prompt))
        if len(blocks) == 1:
            return blocks
        odds = np.array([self.vectors.attachment(block) for block in blocks])
        odds[1:-1] += MIDDLE_ODDS
        return [blocks[place] for place in np.flatnonzero(odds <= odds.min() + REQUEST_MARGIN)]
