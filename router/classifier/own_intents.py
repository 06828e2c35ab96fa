"""Intents of the user's own, defined by a few example prompts and recognised beside the built-in ones.

One ridge regression over our intents and the user's, on the rows by which the classifier reads anyway, solved in closed form.
So every example, ours too, is also read as if it had not been there (leave one out), and the limit from which on a prompt is
one of the user's own is set on those readings: so high that of our training prompts a stated share at most would be lost.
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
from .fit import Arrays, digest_arrays, load_arrays, save_arrays
from .model import Classifier, Vectors
from .prompt_reading import INTENTS, PromptReading
from .training_prompts import Example, read_examples

OWN_INTENT_PENALTY = 1.5
"""Of the squared length of the weights, in units of a row's."""
MAX_TAKEN_SHARE = 0.01
"""Share of the training prompts, each left out once, that all intents of the user's own may take away from ours together."""
CACHE_FORMAT = 1
"""Version of how they are made; what was kept of another is left alone."""

FloatTable = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaughtIntents:
    """What tells the user's own intents from ours and from each other.

    Attributes
    ----------
    names : tuple of str
        The user's own intents, by name.
    weights : array, float32, [width + 1, intents of ours + own]
        The last row is added.
    limits, slopes : array, float64, [own]
        How far an intent must lie ahead of all others, and how fast its odds grow from there.
    recalled : array, float64, [own]
        The share of its examples that are told to be it, each read as if it had not been an example.
    """

    names: tuple[str, ...]
    weights: NDArray[np.float32]
    limits: FloatTable
    slopes: FloatTable
    recalled: FloatTable

    @classmethod
    def of(cls, own: Mapping[str, Sequence[str]], vectors: Vectors, ours: Sequence[Example]) -> Self:
        """Return what examples of the user's own say beside ours; the order of neither intents nor examples matters."""
        names = tuple(sorted(own))
        prompts = [each.prompt for each in ours] + [text for name in names for text in sorted(own[name])]
        wanted = [INTENTS.index(each.intent) for each in ours]
        wanted += [len(INTENTS) + at for at, name in enumerate(names) for _ in own[name]]
        groups = [each.voice for each in ours] + [f" {at}" for at in range(len(prompts) - len(ours))]
        weights, left_out = _ridge(
            vectors.rows(prompts), vectors.width, np.array(wanted), len(INTENTS) + len(names), groups
        )
        ahead = _lead_of_own(left_out)
        columns = np.array(wanted) - len(INTENTS)
        limits = np.quantile(
            _lead_on_ours(left_out, ahead, columns), 1.0 - MAX_TAKEN_SHARE / len(names), axis=0, method="higher"
        )
        held = [ahead[columns == at, at] for at in range(len(names))]
        slopes = [_slope(mine, ahead[columns < 0, at]) for at, mine in enumerate(held)]
        recalled = [float(np.mean(mine > limit)) for mine, limit in zip(held, limits, strict=True)]
        return cls(names, weights.astype(np.float32), limits, np.array(slopes), np.array(recalled))

    @classmethod
    def read(cls, arrays: Arrays, names: tuple[str, ...], width: int) -> Self | None:
        """Return what was kept; None where it is of another shape, or holds what is no number."""
        own = (len(names),)
        shapes = {"weights": (width + 1, len(INTENTS) + len(names)), "limits": own, "slopes": own, "recalled": own}
        if {name: each.shape for name, each in arrays.items()} != shapes:
            return None
        sound = all(np.isfinite(each).all() for each in arrays.values())
        return cls(names, **arrays) if sound else None

    def arrays(self) -> Arrays:
        """Return all numbers by name."""
        return {name: getattr(self, name) for name in ("weights", "limits", "slopes", "recalled")}

    def odds(self, found: Features) -> dict[str, float]:
        """Return how much likelier each is than the likeliest of ours: above 1 where it lies ahead by more than its limit."""
        scores = found.weights @ self.weights[found.rows] + self.weights[-1]
        told = self.slopes * (_lead_of_own(scores[None, :].astype(np.float64))[0] - self.limits)
        return dict(zip(self.names, (float(each) for each in np.exp(np.clip(told, -30.0, 30.0))), strict=True))


class OwnClassifier(Classifier):
    """Reads prompts as another classifier does, and knows some intents more.

    The difficulty is the other's, and so are the shares of our intents among each other.

    Parameters
    ----------
    base : Classifier
        Knows our intents; theirs are read by its rows.
    own : mapping of str to sequence of str
        Example prompts by intent.
    cache : Path, optional
        Folder in which what was made is kept; `own_intents` in the user's cache by default.
    ours : sequence of Example, optional
        What the user's own are told from; one prompt of each training template by default.
    """

    def __init__(
        self, base: Classifier, own: Mapping[str, Sequence[str]], cache: Path | None = None,
        ours: Sequence[Example] | None = None,
    ) -> None:  # fmt: skip
        known = take_one_per_template(read_examples()) if ours is None else ours
        said = repr([
            CACHE_FORMAT, OWN_INTENT_PENALTY, MAX_TAKEN_SHARE, base.name, sorted((name, sorted(texts)) for name, texts in own.items()),
            [(each.prompt, each.intent) for each in known],
        ])  # fmt: skip
        made_of = hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()
        path = (cache or _cache()) / f"{made_of}.npz"
        self.taught = _load_or_teach(path, own, base.vectors, known)
        told = hashlib.sha256(f"{made_of}/{digest_arrays(self.taught.arrays())}".encode()).hexdigest()
        super().__init__(base.vectors, f"{base.name}+own-{told[:12]}")

    def read(self, prompt: str) -> PromptReading:
        """Return what a prompt says of itself, intents of the user's own among the others."""
        reading = super().read(prompt)
        odds = self.taught.odds(self.vectors.rows([prompt])[0])
        likeliest = max(reading.intents.values())
        shares = reading.intents | {name: each * likeliest for name, each in odds.items()}
        total = sum(shares.values())
        return PromptReading({name: share / total for name, share in shares.items()}, reading.hard)


def take_one_per_template(examples: Sequence[Example]) -> list[Example]:
    """Return the first prompt of each template: with a second one nothing would be left out when one is."""
    return list({each.template: each for each in reversed(examples)}.values())[::-1]


def _ridge(
    found: Sequence[Features], width: int, wanted: NDArray[np.int64], classes: int, groups: Sequence[str]
) -> tuple[FloatTable, FloatTable]:
    """Return weights ``[width + 1, classes]`` and what each row would score had it been left out ``[rows, classes]``.

    Classes count alike, however many rows they have. In the dual the left-out score is exact: what is wanted, less the row's
    coefficient over the diagonal of the inverse (Rifkin and Lippert, MIT-CSAIL-TR-2007-025).
    """
    import scipy.sparse as sp

    ends = np.cumsum([0, *(len(each.rows) for each in found)])
    values = np.concatenate([each.weights for each in found]).astype(np.float64)
    rows = sp.csr_array((values, np.concatenate([each.rows for each in found]), ends), shape=(len(found), width))
    likeness = np.asarray((rows @ rows.T).todense()) + 1.0
    penalty = OWN_INTENT_PENALTY * max(float(np.mean(np.diag(likeness) - 1.0)), 1e-9)
    counts = np.bincount(wanted, minlength=classes)
    told = (wanted[:, None] == np.arange(classes)).astype(np.float64)
    inverse = np.linalg.inv(likeness + np.diag(penalty * classes * counts[wanted] / len(found)))
    dual = inverse @ told
    left_out = told.copy()
    for group in sorted(set(groups)):
        at = np.flatnonzero(np.array(groups) == group)
        left_out[at] -= np.linalg.solve(inverse[np.ix_(at, at)], dual[at])
    return np.vstack([rows.T @ dual, dual.sum(axis=0)]), left_out


def _lead_on_ours(left_out: FloatTable, ahead: FloatTable, columns: NDArray[np.int64]) -> FloatTable:
    """Return how far each own intent lies ahead on each prompt of ours; without end behind where ours is misread anyway."""
    ours = columns < 0
    right = left_out[ours, : len(INTENTS)].argmax(axis=1) == columns[ours] + len(INTENTS)
    return np.where(right[:, None], ahead[ours], -1e9)


def _lead_of_own(scores: FloatTable) -> FloatTable:
    """Return how far each own intent lies ahead of the best of all others ``[rows, own]``."""
    places = range(len(INTENTS), scores.shape[1])
    best = [np.delete(scores, place, axis=1).max(axis=1) for place in places]
    return np.asarray(scores[:, len(INTENTS) :] - np.column_stack(best))


def _slope(mine: FloatTable, others: FloatTable) -> float:
    """Return by how much the logarithm of the odds grows: that of two normal laws with one variance."""
    spread = float(np.var(mine) + np.var(others)) / 2.0
    return max(float(np.mean(mine) - np.mean(others)), 1e-3) / max(spread, 1e-6)


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("alphaloom") / "own_intents"


def _load_or_teach(
    path: Path, own: Mapping[str, Sequence[str]], vectors: Vectors, ours: Sequence[Example]
) -> TaughtIntents:
    """Return what was kept in a file, or what is made and kept there."""
    arrays = load_arrays(path)
    taught = None if arrays is None else TaughtIntents.read(arrays, tuple(sorted(own)), vectors.width)
    if taught is None:
        taught = TaughtIntents.of(own, vectors, ours)
        save_arrays(path, taught.arrays())
    return taught
