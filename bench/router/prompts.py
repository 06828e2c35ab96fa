"""The prompts that are asked of: two sets that nothing was trained on, and the training prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.router.classifier.training_prompts import Example, read_examples

__all__ = ["MODELS", "Prompt", "hardness", "held_out", "mixed", "resampled", "training"]

MODELS = {"small": {"model": "a/small", "place": "local"}, "large": {"model": "b/large", "tier": "frontier"}}
"""What the router chooses from."""
FOLDER = Path(__file__).resolve().parents[2] / "tests" / "router" / "classifier" / "exam"


@dataclass(frozen=True)
class Prompt:
    """A prompt with who asks it, what it wants and how hard it is; `source` is the set that it is of."""

    text: str
    role: str
    intent: str
    hard: bool
    source: str


def held_out(folder: Path = FOLDER) -> list[Prompt]:
    """Return the prompts of all sets that nothing was trained on."""
    return [
        Prompt(told["prompt"], told["role"], told["label"]["intent"], told["label"]["difficulty"] == "high", path.stem)
        for path in sorted(folder.glob("*.jsonl"))
        for told in map(json.loads, path.read_text("utf-8").splitlines())
    ]


def training() -> list[Example]:
    """Return the training prompts."""
    return read_examples()


def mixed(amount: int, seed: int) -> list[str]:
    """Return `amount` texts in random order: all held-out ones, then training prompts."""
    rng = np.random.default_rng(seed)
    held, trained = [prompt.text for prompt in held_out()], [prompt.prompt for prompt in training()]
    chosen = [*held, *(trained[at] for at in rng.permutation(len(trained)))][:amount]
    return [chosen[at] for at in rng.permutation(len(chosen))]


def hardness(prompts: Sequence[Prompt]) -> NDArray[np.bool_]:
    """Return which prompts are labelled hard."""
    return np.array([prompt.hard for prompt in prompts])


def resampled(amount: int, times: int, seed: int) -> NDArray[np.int64]:
    """Return how often each of so many prompts is drawn in each bootstrap sample, ``[times, amount]``."""
    return np.random.default_rng(seed).multinomial(amount, np.full(amount, 1 / amount), size=times).astype(np.int64)
