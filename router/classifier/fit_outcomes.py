"""Fit the model of outcomes to the labelled questions of the training campaigns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .fit import fit_softmax
from .outcomes import SHIPPED_OUTCOMES, AskedQuestion, OutcomeModel
from .training_prompts import TRAINING_FOLDER

LABELS = TRAINING_FOLDER / "campaigns" / "questions.jsonl"
PENALTY, CALIBRATION_SHRINKAGE = 1.0, 0.5
"""The few labels of a kind are drawn towards all others; the calibration towards none."""
DIGITS = 6
"""Decimals of a weight, so that the file does not depend on the last bits of a sum."""


@dataclass(frozen=True)
class LabelledQuestion:
    """A question with its campaign, and whether the small model answered it to use as the other model did."""

    campaign: int
    question: AskedQuestion
    hard: bool

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Self:
        """Return the question of a row of a file of labels."""
        asked = AskedQuestion(row["role"], row["intent"], row["tokens"], row["refused"])
        return cls(row["campaign"], asked, row["small"] < row["researcher"])


def read_labels(path: Path = LABELS) -> tuple[list[LabelledQuestion], tuple[str, str]]:
    """Return the labelled questions of a file, without those that neither model answered, and the pair of models."""
    head, *rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    labels = [LabelledQuestion.parse(row) for row in rows if row["small"] or row["researcher"]]
    return labels, (head["small"], head["other"])


def fit_outcomes(labels: Sequence[LabelledQuestion], pair: tuple[str, str]) -> OutcomeModel:
    """Return the model fitted to all labels, calibrated on campaigns that are left out one after the other."""
    logits, hard = zip(*_judge_left_out(labels, pair), strict=True)
    slope, intercept = _fit(np.array(logits)[:, None], np.array(hard), CALIBRATION_SHRINKAGE)
    weights, bias = _fit_weights(labels)
    return OutcomeModel(weights, bias, (_shorten(slope[0]), _shorten(intercept)), pair)


def write_outcomes(model: OutcomeModel, path: Path = SHIPPED_OUTCOMES) -> None:
    """Write a model's file; the same labels give the same bytes."""
    body = {
        "pair": list(model.pair),
        "calibration": list(model.calibration),
        "bias": model.bias,
        "weights": dict(sorted(model.weights.items())),
    }
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def _judge_left_out(labels: Sequence[LabelledQuestion], pair: tuple[str, str]) -> Iterator[tuple[float, bool]]:
    """Yield the logit of each question under the weights of the other campaigns, and its label."""
    for campaign in sorted({label.campaign for label in labels}):
        weights, bias = _fit_weights([label for label in labels if label.campaign != campaign])
        model = OutcomeModel(weights, bias, (1.0, 0.0), pair)
        yield from ((model.logit(label.question), label.hard) for label in labels if label.campaign == campaign)


def _fit_weights(labels: Sequence[LabelledQuestion]) -> tuple[dict[str, float], float]:
    features = [label.question.features() for label in labels]
    names = sorted({name for row in features for name in row})
    rows = np.array([[row.get(name, 0.0) for name in names] for row in features])
    weights, bias = _fit(rows, np.array([label.hard for label in labels]), PENALTY)
    return {name: _shorten(weight) for name, weight in zip(names, weights, strict=True)}, _shorten(bias)


def _fit(rows: NDArray[np.float64], hard: NDArray[np.bool_], penalty: float) -> tuple[NDArray[np.float64], float]:
    table, bias = fit_softmax(sp.csr_array(rows), hard.astype(np.int64), np.ones(len(hard)), penalty)
    return table[:, 1] - table[:, 0], float(bias[1] - bias[0])


def _shorten(value: float) -> float:
    return round(float(value), DIGITS) + 0.0
