"""How often the router is right on prompts by people who saw the taxonomy and nothing that was trained on.

python -m bench.router accuracy
python -m bench.router accuracy --embedding FOLDER     your sentence embedding, its head fitted to the same prompts

Difficulty is balanced: the mean of the shares of hard and of easy prompts told as such. *Hard sent small* and *easy
kept small* are those that the router as it ships sends to the local tier; a rival does that from the same probability
on. A flip is a prompt whose tier changes with noise that nobody was trained on. Intervals are 95 %, by bootstrap over
prompts; a rival's second column is its figure less the router's on the same samples. The exit code is 1 where one of
`PROMISES` is not kept on a set.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.router import RouterConfig
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.classifier.training_prompts import NOISES, add_noise
from alphaloom.router.config import RoutingSettings
from alphaloom.router.policy.decision import Decider, RoutingQuestion
from bench.router.prompts import MODELS, Prompt, held_out, resampled
from bench.router.report import interval
from bench.router.scorers import beside

SEED = 5
SMALL_BELOW = RoutingSettings().most_hard
PROMISES: Mapping[str, Callable[[float], bool]] = {
    "intent": lambda share: share >= 0.45,
    "difficulty": lambda share: share >= 0.80,
    "hard sent small": lambda share: share <= 0.05,
    "easy kept small": lambda share: share >= 0.40,
    "intent, role known": lambda share: share >= 0.95,
} | {f"flips by {kind}": lambda share: share < 0.05 for kind in NOISES}

Reader = Callable[[str], tuple[str, float]]
"""From a text to its intent and the probability that it is hard."""


@dataclass(frozen=True, eq=False)
class Measure:
    """A share among those of the prompts that it is of: 1 where it holds; its kind of mean over hard and easy ones."""

    holds: NDArray[np.bool_]
    groups: tuple[NDArray[np.bool_], ...]

    def of(self, counts: NDArray[np.int64]) -> float:
        """Return the mean over groups of the share that holds, with each prompt counted so often."""
        return float(np.mean([(counts * self.holds)[group].sum() / counts[group].sum() for group in self.groups]))


def main(given: Sequence[str]) -> int:
    """Measure, print, and return 1 where a promise is not kept."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--embedding", type=Path, help="folder with model.onnx and tokenizer.json")
    options.add_argument("--samples", type=int, default=2_000, help="bootstrap samples")
    arguments = options.parse_args(given)
    prompts, broken = held_out(), 0
    rivals = {name: cache(reader) for name, reader in readers(arguments.embedding).items()}
    sources = sorted({prompt.source for prompt in prompts})
    for sources_of in (*((source,) for source in sources), tuple(sources)):
        chosen = [prompt for prompt in prompts if prompt.source in sources_of]
        own: dict[str, Measure] = {}
        for name, reader in rivals.items():
            found = measures(chosen, reader) | (by_role(chosen) if name == "router" else {})
            title = f"set {' and '.join(sources_of)}, {len(chosen)} prompts, {name}"
            print(f"{title}\n{table(found, arguments.samples, own)}\n", flush=True)
            own = own or found
            once = np.ones(len(chosen), dtype=np.int64)
            broken += name == "router" and not all(PROMISES[metric](found[metric].of(once)) for metric in found)
    return int(broken > 0)


def readers(embedding: Path | None) -> dict[str, Reader]:
    """Return the router's classifier and its rivals; without scikit-learn its row is left out."""
    tfidf, own = beside(embedding)
    found: dict[str, Reader] = {"router": reader_of(Classifier.shipped())}
    return found | ({"TF-IDF + LR": tfidf.read} if tfidf else {}) | ({own.name: reader_of(own)} if own else {})


def reader_of(classifier: Classifier) -> Reader:
    """Return a classifier as a reader."""

    def read(text: str) -> tuple[str, float]:
        reading = classifier.read(text)
        return reading.intent, reading.hard

    return read


def measures(prompts: Sequence[Prompt], reader: Reader) -> dict[str, Measure]:
    """Return all that is measured of a reader."""
    told = [reader(prompt.text) for prompt in prompts]
    hard = np.array([prompt.hard for prompt in prompts])
    chance = np.array([each for _, each in told])
    small, everybody = chance < SMALL_BELOW, np.ones(len(prompts), dtype=bool)
    right = np.array([intent == each.intent for (intent, _), each in zip(told, prompts, strict=True)])
    found = {
        "intent": Measure(right, (everybody,)),
        "difficulty": Measure((chance > 0.5) == hard, (hard, ~hard)),
        "hard sent small": Measure(small, (hard,)),
        "easy kept small": Measure(small, (~hard,)),
    }
    for kind in NOISES:
        again = [reader(add_noise(prompt.text, kind, SEED, learned=False))[1] < SMALL_BELOW for prompt in prompts]
        found[f"flips by {kind}"] = Measure(np.array(again) != small, (everybody,))
    return found


def by_role(prompts: Sequence[Prompt]) -> dict[str, Measure]:
    """Return how often the intent is right where the router is told who asks."""
    decider = Decider(RouterConfig.model_validate({"models": MODELS}))
    told = [
        decider.decide(RoutingQuestion(prompt=prompt.text, role=prompt.role)).intent == prompt.intent
        for prompt in prompts
    ]
    return {"intent, role known": Measure(np.array(told), (np.ones(len(told), dtype=bool),))}


def table(found: Mapping[str, Measure], samples: int, own: Mapping[str, Measure] | None = None) -> str:
    """Return the rows as text; with the router's `own` figures, by how much they differ from those."""
    lines = []
    for name, measure in found.items():
        once = np.ones(len(measure.holds), dtype=np.int64)
        again = resampled(len(once), samples, SEED)
        low, high = interval([measure.of(counts) for counts in again])
        line = f"{name:20s} {measure.of(once):6.1%} {f'({low:.1%} to {high:.1%})':18s}"
        if own:
            low, high = interval([measure.of(counts) - own[name].of(counts) for counts in again])
            line += f" {measure.of(once) - own[name].of(once):+6.1%} ({low:+.1%} to {high:+.1%})"
        lines.append(line.rstrip())
    return "\n".join(lines)
