"""Build the classifier from the training prompts, and measure its accuracy on writers left out of the training.

Run ``python -m alphaloom.router.classifier.build``: some minutes on one core, no network, the same bytes each time.
Nothing is measured on prompts of a template, nor of a writer, that was trained on.
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
"""Prompts in which a bucket must occur to count."""
NOISE_ROUNDS = (("typos", 1), ("case", 1), ("chatter", 1), ("chatter", 2), ("wrapper", 1), ("wrapper", 2))
"""Noise with which each prompt is read again, with its seed: more of what adds words than of what changes some."""


def train_table(examples: Sequence[Example]) -> WeightTable:
    """Return the weights that examples give; each is read again with noise."""
    prompts = [each.prompt for each in examples]
    again = [add_noise(prompt, kind, seed, learned=True) for kind, seed in NOISE_ROUNDS for prompt in prompts]
    rarity, rarest = _rarity(prompts)
    scale = rarity.astype(np.float32) * np.float32(rarest / 255)
    rows = _rows([*prompts, *again], scale)
    intents = np.array([INTENTS.index(each.intent) for each in examples] * (1 + len(NOISE_ROUNDS)))
    hard = np.array([int(each.hard) for each in examples] * (1 + len(NOISE_ROUNDS)))
    by_intent, bias_intent = fit_softmax(rows, intents, _class_weights(intents), NGRAM_PENALTY)
    by_hard, bias_hard = fit_softmax(rows, hard, _class_weights(hard), NGRAM_PENALTY)
    weights = np.column_stack([by_intent, by_hard[:, 1] - by_hard[:, 0]])
    bias = np.array([*bias_intent, bias_hard[1] - bias_hard[0]])
    return WeightTable.of(weights, bias, rarity, rarest, _neighbours(examples))


def encode_table(table: WeightTable) -> bytes:
    """Return the file of a table: compressed, and without the time at which it was made."""
    held = {name: getattr(table, name) for name in ("steps", "sizes", "bias", "rarity")} | table.near.arrays()
    held["rarest"] = np.float64(table.rarest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in held.items():
            body = io.BytesIO()
            np.lib.format.write_array(body, np.asanyarray(values), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), body.getvalue(), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


@dataclass(frozen=True)
class VoiceFold:
    """How a voice is read by what was not trained on it: shares of right intents, and of right difficulties (balanced)."""

    voice: str
    prompts: int
    intent: float
    difficulty: float


def judge_left_out_voices(examples: Sequence[Example], voices: Sequence[str] | None = None) -> Iterator[VoiceFold]:
    """Yield how each voice is read when it is left out; all of them where none is named. A minute each."""
    for voice in voices or sorted({each.voice for each in examples}):
        kept = [each for each in examples if each.voice != voice]
        asked = [each for each in examples if each.voice == voice]
        intent, difficulty = _accuracy(Classifier(train_table(kept), "fold"), asked)
        yield VoiceFold(voice, len(asked), intent, difficulty)


def build_classifier(path: Path = SHIPPED) -> None:
    """Write the classifier, and print what it reaches on voices that it was not trained on."""
    examples = read_examples()
    for fold in judge_left_out_voices(examples):
        print(f"{fold.voice}: intent {fold.intent:.3f}, difficulty {fold.difficulty:.3f} (balanced), "
              f"{fold.prompts} prompts", flush=True)  # fmt: skip
    path.write_bytes(encode_table(train_table(examples)))
    print(f"{path.name}: {path.stat().st_size:,} bytes from {len(examples):,} prompts of "
          f"{len({each.template for each in examples}):,} templates")  # fmt: skip


def _accuracy(classifier: Classifier, examples: Sequence[Example]) -> tuple[float, float]:
    """Return the share of right intents, and the mean of the shares of hard and of easy prompts that are told as such."""
    told = [classifier.read(each.prompt) for each in examples]
    intent = np.mean([reading.intent == each.intent for reading, each in zip(told, examples, strict=True)])
    shares = [
        np.mean(
            [(reading.hard > 0.5) == hard for reading, each in zip(told, examples, strict=True) if each.hard == hard]
        )
        for hard in (False, True)
    ]
    return float(intent), float(np.mean(shares))


def _neighbours(examples: Sequence[Example]) -> Neighbours:
    """Return the index of the first prompt of each template: its others say the same again."""
    first = list({each.template: each for each in reversed(examples)}.values())[::-1]
    texts, intents = [normalise_prompt(each.prompt) for each in first], [INTENTS.index(each.intent) for each in first]
    return Neighbours.of(texts, intents, [each.hard for each in first])


def _rarity(prompts: Sequence[str]) -> tuple[NDArray[np.uint8], float]:
    """Return the rarity of each bucket in steps, and the number that the largest stands for."""
    counts = np.bincount(np.concatenate([hash_buckets(prompt) for prompt in prompts]), minlength=FEATURE_BUCKETS)
    rarity = np.where(counts < MIN_PROMPTS_PER_BUCKET, 0.0, 1.0 + np.log((1 + len(prompts)) / (1 + counts)))
    return np.rint(rarity / rarity.max() * 255).astype(np.uint8), float(rarity.max())


def _rows(prompts: Sequence[str], rarity: NDArray[np.float32]) -> sp.csr_array:
    found = [build_features(prompt, rarity) for prompt in prompts]
    ends = np.cumsum([0, *(len(each.rows) for each in found)])
    values = np.concatenate([each.weights for each in found]).astype(np.float64)
    return sp.csr_array(
        (values, np.concatenate([each.rows for each in found]), ends), shape=(len(found), FEATURE_BUCKETS)
    )


def _class_weights(wanted: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what each example counts, such that all classes count alike."""
    counts = np.bincount(wanted)
    return np.asarray(1.0 / counts[wanted], dtype=np.float64)


if __name__ == "__main__":
    build_classifier(Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED)
