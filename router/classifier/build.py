"""Build the classifier from the training prompts, and measure its accuracy on writers left out of the training.

Run ``python -m alphaloom.router.classifier.build``: it takes some minutes on one core, needs no network, and writes the
same bytes each time. Accuracy is measured only on writers, hence templates, that are not in the training.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .features import FEATURE_BUCKETS, build_features, hash_buckets, normalise_prompt
from .fit import fit_softmax
from .model import SHIPPED, Classifier, WeightTable
from .neighbours import Neighbours
from .prompt_reading import INTENTS
from .training_prompts import Example, add_noise, read_examples

NGRAM_PENALTY = 0.1
MIN_PROMPTS_PER_BUCKET = 2
"""Minimum prompts in which a bucket must occur."""
NOISE_ROUNDS = (("typos", 1), ("case", 1), ("chatter", 1), ("chatter", 2), ("wrapper", 1), ("wrapper", 2))
"""Kinds of noise with their seeds, each applied to every prompt; noise that adds words has two rounds."""


def train_table(examples: Sequence[Example]) -> WeightTable:
    """Return the weights fitted to the examples and to their noisy copies."""
    prompts = [example.prompt for example in examples]
    noisy = [add_noise(prompt, kind, seed, learned=True) for kind, seed in NOISE_ROUNDS for prompt in prompts]
    rarity, rarest = _compute_rarity(prompts)
    scale = rarity.astype(np.float32) * np.float32(rarest / 255)
    rows = _build_rows([*prompts, *noisy], scale)
    intents = np.array([INTENTS.index(example.intent) for example in examples] * (1 + len(NOISE_ROUNDS)))
    hard = np.array([int(example.hard) for example in examples] * (1 + len(NOISE_ROUNDS)))
    by_intent, bias_intent = fit_softmax(rows, intents, _weigh_classes(intents), NGRAM_PENALTY)
    by_hard, bias_hard = fit_softmax(rows, hard, _weigh_classes(hard), NGRAM_PENALTY)
    weights = np.column_stack([by_intent, by_hard[:, 1] - by_hard[:, 0]])
    bias = np.array([*bias_intent, bias_hard[1] - bias_hard[0]])
    return WeightTable.of(weights, bias, rarity, rarest, _index_neighbours(examples))


def encode_table(table: WeightTable) -> bytes:
    """Return the bytes of a table's file: a compressed archive without timestamps."""
    arrays = {name: getattr(table, name) for name in ("steps", "sizes", "bias", "rarity")} | table.near.arrays()
    arrays["rarest"] = np.float64(table.rarest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            body = io.BytesIO()
            np.lib.format.write_array(body, np.asanyarray(values), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), body.getvalue(), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


@dataclass(frozen=True)
class VoiceFold:
    """Accuracy on a voice left out of the training: share of right intents, balanced share of right difficulties."""

    voice: str
    prompts: int
    intent: float
    difficulty: float


def judge_left_out_voices(examples: Sequence[Example], voices: Sequence[str] | None = None) -> Iterator[VoiceFold]:
    """Yield the accuracy on each voice when it is left out, a minute each; on all voices by default."""
    for voice in voices or sorted({example.voice for example in examples}):
        training = [example for example in examples if example.voice != voice]
        left_out = [example for example in examples if example.voice == voice]
        intent, difficulty = _measure_accuracy(Classifier(train_table(training), "fold"), left_out)
        yield VoiceFold(voice, len(left_out), intent, difficulty)


def build_classifier(path: Path = SHIPPED) -> None:
    """Write the classifier, and print its accuracy on voices left out of the training."""
    examples = read_examples()
    for fold in judge_left_out_voices(examples):
        print(
            f"{fold.voice}: intent {fold.intent:.3f}, difficulty {fold.difficulty:.3f} (balanced), "
            f"{fold.prompts} prompts",
            flush=True,
        )
    path.write_bytes(encode_table(train_table(examples)))
    print(
        f"{path.name}: {path.stat().st_size:,} bytes from {len(examples):,} prompts of "
        f"{len({example.template for example in examples}):,} templates"
    )


def _measure_accuracy(classifier: Classifier, examples: Sequence[Example]) -> tuple[float, float]:
    """Return the share of right intents, and the balanced accuracy of difficulty (mean over easy and hard prompts)."""
    readings = [classifier.read(example.prompt) for example in examples]
    intent = np.mean([reading.intent == example.intent for reading, example in zip(readings, examples, strict=True)])
    shares = [
        np.mean(
            [
                (reading.hard > 0.5) == hard
                for reading, example in zip(readings, examples, strict=True)
                if example.hard == hard
            ]
        )
        for hard in (False, True)
    ]
    return float(intent), float(np.mean(shares))


def _index_neighbours(examples: Sequence[Example]) -> Neighbours:
    """Return the index of the first prompt of each template; its other prompts are near-duplicates."""
    firsts = list({example.template: example for example in reversed(examples)}.values())[::-1]
    texts, intents = (
        [normalise_prompt(example.prompt) for example in firsts],
        [INTENTS.index(example.intent) for example in firsts],
    )
    return Neighbours.of(texts, intents, [example.hard for example in firsts])


def _compute_rarity(prompts: Sequence[str]) -> tuple[NDArray[np.uint8], float]:
    """Return the rarity of each bucket in steps of 0 to 255, and the value of step 255."""
    counts = np.bincount(np.concatenate([hash_buckets(prompt) for prompt in prompts]), minlength=FEATURE_BUCKETS)
    rarity = np.where(counts < MIN_PROMPTS_PER_BUCKET, 0.0, 1.0 + np.log((1 + len(prompts)) / (1 + counts)))
    return np.rint(rarity / rarity.max() * 255).astype(np.uint8), float(rarity.max())


def _build_rows(prompts: Sequence[str], rarity: NDArray[np.float32]) -> sp.csr_array:
    rows = [build_features(prompt, rarity) for prompt in prompts]
    ends = np.cumsum([0, *(len(features.rows) for features in rows)])
    values = np.concatenate([features.weights for features in rows]).astype(np.float64)
    return sp.csr_array(
        (values, np.concatenate([features.rows for features in rows]), ends), shape=(len(rows), FEATURE_BUCKETS)
    )


def _weigh_classes(classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of each example, such that all classes have the same total."""
    counts = np.bincount(classes)
    return np.asarray(1.0 / counts[classes], dtype=np.float64)


if __name__ == "__main__":
    build_classifier(Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED)
