"""Build the classifier from the training prompts, and measure its accuracy on writers left out of the training.

Run ``python -m alphaloom.router.classifier.build``: it takes some minutes on one core, needs no network, and writes the
same bytes each time. Accuracy is measured only on writers, hence templates, that are not in the training.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .blocks import list_blocks, shorten
from .features import FEATURE_BUCKETS, build_features, hash_buckets, normalise_prompt
from .fit import fit_examples, fit_softmax, stack_features, weigh_classes
from .fit_outcomes import fit_outcomes, read_labels, write_outcomes
from .model import ATTACHMENT_CHARS, SHIPPED, TABLE_ARRAYS, Classifier, WeightTable, quantise
from .neighbours import Neighbours
from .outcomes import SHIPPED_OUTCOMES
from .prompt_reading import INTENTS
from .training_prompts import Example, add_noise, read_attachments, read_examples, take_one_per_template

NGRAM_PENALTY = 0.1
MIN_PROMPTS_PER_BUCKET = 2
"""Minimum prompts in which a bucket must occur."""
ATTACHMENT_PENALTY = 0.03
CALIBRATION_PENALTY = 1e-6
CALIBRATION_VOICES = ("voice_7",)
"""Writers that are left out to calibrate the probability of hardness: requests as they stand with an attachment."""
NOISE_ROUNDS = (("typos", 1), ("case", 1), ("chatter", 1), ("chatter", 2), ("wrapper", 1), ("wrapper", 2))
"""Kinds of noise with their seeds, each applied to every prompt; noise that adds words has two rounds."""


def train_table(examples: Sequence[Example]) -> WeightTable:
    """Return the weights fitted to the examples and to their noisy copies."""
    prompts = [example.prompt for example in examples]
    noisy = [add_noise(prompt, kind, seed, learned=True) for kind, seed in NOISE_ROUNDS for prompt in prompts]
    rarity, rarest = _compute_rarity(prompts)
    scale = rarity.astype(np.float32) * np.float32(rarest / 255)
    rows = _build_rows([*prompts, *noisy], scale)
    weights, bias = fit_examples(rows, examples, NGRAM_PENALTY)
    return WeightTable.of(weights, bias, rarity, rarest, _index_neighbours(examples))


def teach_attachments(table: WeightTable, examples: Sequence[Example], attachments: Sequence[str]) -> WeightTable:
    """Return a table that also tells blocks of attachments from requests."""
    pasted = [shorten(block, *ATTACHMENT_CHARS) for text in attachments for block in list_blocks(text)]
    asked = list({example.template: example.prompt for example in examples}.values())
    scale = table.rarity.astype(np.float32) * np.float32(table.rarest / 255)
    classes = np.array([1] * len(pasted) + [0] * len(asked))
    weights, bias = fit_softmax(
        _build_rows([*pasted, *asked], scale), classes, weigh_classes(classes), ATTACHMENT_PENALTY
    )
    steps, sizes = quantise((weights[:, 1] - weights[:, 0])[:, None])
    return replace(table, attached=steps[:, 0], attached_scale=np.array([sizes[0], bias[1] - bias[0]]))


def calibrate(table: WeightTable, logits: NDArray[np.float64], hard: NDArray[np.bool_]) -> WeightTable:
    """Return a table whose probability of hardness is that seen on left-out writers (Platt scaling).

    Parameters
    ----------
    logits
        Logit of hardness of each left-out prompt, `[prompts]`.
    hard
        Its label, `[prompts]`.
    """
    rows = sp.csr_array(logits[:, None])
    weights, bias = fit_softmax(rows, hard.astype(np.int64), np.ones(len(hard)), CALIBRATION_PENALTY)
    return replace(table, calibration=np.array([weights[0, 1] - weights[0, 0], bias[1] - bias[0]]))


def encode_table(table: WeightTable) -> bytes:
    """Return the bytes of a table's file: a compressed archive without timestamps."""
    arrays = {name: getattr(table, name) for name in TABLE_ARRAYS} | table.near.arrays()
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
    """Accuracy on a voice left out of the training: share of right intents, balanced share of right difficulties.

    `logits` and `hard` are the logit of hardness and the label of each of its prompts.
    """

    voice: str
    prompts: int
    intent: float
    difficulty: float
    logits: NDArray[np.float64]
    hard: NDArray[np.bool_]


def judge_left_out_voices(examples: Sequence[Example], voices: Sequence[str] | None = None) -> Iterator[VoiceFold]:
    """Yield the accuracy on each voice when it is left out, a minute each; on all voices by default."""
    for voice in voices or sorted({example.voice for example in examples}):
        training = [example for example in examples if example.voice != voice]
        left_out = [example for example in examples if example.voice == voice]
        classifier = Classifier(train_table(training), "fold")
        intent, difficulty = _measure_accuracy(classifier, left_out)
        logits = np.array([classifier.vectors.scores(example.prompt)[-1] for example in left_out])
        hard = np.array([example.hard for example in left_out])
        yield VoiceFold(voice, len(left_out), intent, difficulty, logits, hard)


def build_classifier(path: Path = SHIPPED) -> None:
    """Write the classifier, and print its accuracy on voices left out of the training."""
    examples, folds = read_examples(), []
    for fold in judge_left_out_voices(examples, CALIBRATION_VOICES):
        folds.append(fold)
        print(
            f"{fold.voice}: intent {fold.intent:.3f}, difficulty {fold.difficulty:.3f} (balanced), "
            f"{fold.prompts} prompts",
            flush=True,
        )
    table = teach_attachments(train_table(examples), examples, read_attachments())
    table = calibrate(
        table, np.concatenate([fold.logits for fold in folds]), np.concatenate([fold.hard for fold in folds])
    )
    path.write_bytes(encode_table(table))
    print(
        f"{path.name}: {path.stat().st_size:,} bytes from {len(examples):,} prompts of "
        f"{len({example.template for example in examples}):,} templates"
    )


def _measure_accuracy(classifier: Classifier, examples: Sequence[Example]) -> tuple[float, float]:
    """Return the share of right intents, and the balanced accuracy of difficulty (mean over easy and hard prompts)."""
    readings = [classifier.read(example.prompt) for example in examples]
    intent = np.mean([reading.intent == example.intent for reading, example in zip(readings, examples, strict=True)])
    hard, judged = np.array([example.hard for example in examples]), np.array([one.hard > 0.5 for one in readings])
    return float(intent), float(np.mean([np.mean(judged[hard == label] == label) for label in (False, True)]))


def _index_neighbours(examples: Sequence[Example]) -> Neighbours:
    """Return the index of the first prompt of each template; its other prompts are near-duplicates."""
    firsts = take_one_per_template(examples)
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
    return stack_features([build_features(prompt, rarity) for prompt in prompts], FEATURE_BUCKETS)


def build_outcomes(path: Path = SHIPPED_OUTCOMES) -> None:
    """Write the model of outcomes: a second, so it is built first."""
    labels, pair = read_labels()
    write_outcomes(fit_outcomes(labels, pair), path)
    print(f"{path.name}: from {len(labels)} questions of campaigns, {sum(label.hard for label in labels)} of them hard")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED.parent
    build_outcomes(folder / SHIPPED_OUTCOMES.name)
    build_classifier(folder / SHIPPED.name)
