"""Intents of the user's own, defined by a few example prompts and recognised beside the built-in ones.

One ridge regression over the built-in intents and the user's, on the classifier's own features, solved in closed form.
This also gives the exact leave-one-out scores of every example. The limit above which a prompt has one of the user's
intents is set on these scores, so that at most a stated share of the built-in training prompts is lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .features import Features
from .fit import Arrays, digest_arrays, find_cache, load_or_fit, stack_features
from .model import Classifier, Vectors
from .prompt_reading import INTENTS, PromptReading
from .training_prompts import Example, read_examples, take_one_per_template

OWN_INTENT_PENALTY = 1.5
"""Penalty of the squared norm of the weights, in units of the mean squared norm of a row."""
MAX_TAKEN_SHARE = 0.01
"""Maximum share of the training prompts, each left out once, that all of the user's intents together may take."""
CACHE_FORMAT = 1
"""Version of the fit; cached files of other versions are ignored."""

FloatTable = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaughtIntents:
    """Fitted weights and limits of the user's intents beside the built-in ones.

    Attributes
    ----------
    names : tuple of str
        The user's intents, in alphabetical order.
    weights : array, float32, [width + 1, built-in + own intents]
        The last row is the bias.
    limits, slopes : array, float64, [own intents]
        The lead over all others that an intent needs, and the growth of its log-odds per unit of lead beyond it.
    recalled : array, float64, [own intents]
        The share of an intent's examples that are recognised when left out.
    """

    names: tuple[str, ...]
    weights: NDArray[np.float32]
    limits: FloatTable
    slopes: FloatTable
    recalled: FloatTable

    @classmethod
    def of(cls, own: Mapping[str, Sequence[str]], vectors: Vectors, ours: Sequence[Example]) -> Self:
        """Fit the user's examples beside the built-in ones; the order of intents and examples does not matter."""
        names = tuple(sorted(own))
        prompts = [example.prompt for example in ours] + [text for name in names for text in sorted(own[name])]
        classes = [INTENTS.index(example.intent) for example in ours]
        classes += [len(INTENTS) + at for at, name in enumerate(names) for _ in own[name]]
        groups = [example.voice for example in ours] + [f" {at}" for at in range(len(prompts) - len(ours))]
        weights, left_out = _fit_ridge(
            vectors.rows(prompts), vectors.width, np.array(classes), len(INTENTS) + len(names), groups
        )
        leads = _measure_lead(left_out)
        columns = np.array(classes) - len(INTENTS)
        limits = np.quantile(
            _measure_lead_on_ours(left_out, leads, columns), 1.0 - MAX_TAKEN_SHARE / len(names), axis=0, method="higher"
        )
        own_leads = [leads[columns == at, at] for at in range(len(names))]
        slopes = [_fit_slope(lead, leads[columns < 0, at]) for at, lead in enumerate(own_leads)]
        recalled = [float(np.mean(lead > limit)) for lead, limit in zip(own_leads, limits, strict=True)]
        return cls(names, weights.astype(np.float32), limits, np.array(slopes), np.array(recalled))

    def arrays(self) -> Arrays:
        """Return the arrays to save, by name."""
        return {name: getattr(self, name) for name in ("weights", "limits", "slopes", "recalled")}

    def odds(self, features: Features) -> dict[str, float]:
        """Return the odds of each intent against the likeliest built-in one; above 1 if its lead exceeds its limit."""
        scores = features.weights @ self.weights[features.rows] + self.weights[-1]
        log_odds = self.slopes * (_measure_lead(scores[None, :].astype(np.float64))[0] - self.limits)
        return dict(zip(self.names, (float(ratio) for ratio in np.exp(np.clip(log_odds, -30.0, 30.0))), strict=True))


class OwnClassifier(Classifier):
    """Reads prompts as another classifier does, with the user's intents in addition.

    The difficulty is that of the other classifier, and so are the ratios between the built-in intents.

    Parameters
    ----------
    base : Classifier
        Classifier of the built-in intents, whose features are used.
    own : mapping of str to sequence of str
        Example prompts by intent.
    cache : Path, optional
        Folder of fitted files; `own_intents` in the user's cache by default.
    ours : sequence of Example, optional
        Examples of the built-in intents; one prompt of each training template by default.
    """

    def __init__(
        self,
        base: Classifier,
        own: Mapping[str, Sequence[str]],
        cache: Path | None = None,
        ours: Sequence[Example] | None = None,
    ) -> None:
        # With a near-duplicate in the fit, leaving a prompt out would have no effect.
        examples = take_one_per_template(read_examples()) if ours is None else ours
        source = repr(
            [
                CACHE_FORMAT,
                OWN_INTENT_PENALTY,
                MAX_TAKEN_SHARE,
                base.name,
                sorted((name, sorted(texts)) for name, texts in own.items()),
                [(example.prompt, example.intent) for example in examples],
            ]
        )
        source_digest = hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()
        path = (cache or find_cache("own_intents")) / f"{source_digest}.npz"
        one = (len(own),)
        shapes = {"weights": (base.vectors.width + 1, len(INTENTS) + len(own)), "limits": one, "slopes": one}
        fitted = load_or_fit(
            path, shapes | {"recalled": one}, lambda: TaughtIntents.of(own, base.vectors, examples).arrays()
        )
        self.taught = TaughtIntents(tuple(sorted(own)), **fitted)
        digest = hashlib.sha256(f"{source_digest}/{digest_arrays(self.taught.arrays())}".encode()).hexdigest()
        super().__init__(base.vectors, f"{base.name}+own-{digest[:12]}")

    def read(self, prompt: str) -> PromptReading:
        """Return the probabilities of all intents, the user's included, and of a hard prompt."""
        reading = super().read(prompt)
        odds = self.taught.odds(self.vectors.rows([prompt])[0])
        likeliest = max(reading.intents.values())
        shares = reading.intents | {name: ratio * likeliest for name, ratio in odds.items()}
        total = sum(shares.values())
        return PromptReading({name: share / total for name, share in shares.items()}, reading.hard)


def _fit_ridge(
    features: Sequence[Features], width: int, labels: NDArray[np.int64], classes: int, groups: Sequence[str]
) -> tuple[FloatTable, FloatTable]:
    """Return weights ``[width + 1, classes]`` and the left-out scores ``[rows, classes]``.

    Rows of one group are left out together. All classes have the same total weight. The left-out score is exact in the
    dual: the target minus the row's coefficient over the diagonal of the inverse (Rifkin and Lippert,
    MIT-CSAIL-TR-2007-025).
    """
    rows = stack_features(features, width)
    likeness = np.asarray((rows @ rows.T).todense()) + 1.0
    penalty = OWN_INTENT_PENALTY * max(float(np.mean(np.diag(likeness) - 1.0)), 1e-9)
    counts = np.bincount(labels, minlength=classes)
    targets = (labels[:, None] == np.arange(classes)).astype(np.float64)
    inverse = np.linalg.inv(likeness + np.diag(penalty * classes * counts[labels] / len(features)))
    dual = inverse @ targets
    left_out = targets.copy()
    for group in sorted(set(groups)):
        at = np.flatnonzero(np.array(groups) == group)
        left_out[at] -= np.linalg.solve(inverse[np.ix_(at, at)], dual[at])
    return np.vstack([rows.T @ dual, dual.sum(axis=0)]), left_out


def _measure_lead_on_ours(left_out: FloatTable, ahead: FloatTable, columns: NDArray[np.int64]) -> FloatTable:
    """Return the lead of each own intent on each built-in prompt; -1e9 where the built-in intent is misread anyway."""
    ours = columns < 0
    right = left_out[ours, : len(INTENTS)].argmax(axis=1) == columns[ours] + len(INTENTS)
    return np.where(right[:, None], ahead[ours], -1e9)


def _measure_lead(scores: FloatTable) -> FloatTable:
    """Return the lead of each own intent over the best of all others ``[rows, own intents]``."""
    places = range(len(INTENTS), scores.shape[1])
    best = [np.delete(scores, place, axis=1).max(axis=1) for place in places]
    return np.asarray(scores[:, len(INTENTS) :] - np.column_stack(best))


def _fit_slope(mine: FloatTable, others: FloatTable) -> float:
    """Return the slope of the log-odds: that of two normal distributions with a common variance."""
    spread = float(np.var(mine) + np.var(others)) / 2.0
    return max(float(np.mean(mine) - np.mean(others)), 1e-3) / max(spread, 1e-6)
