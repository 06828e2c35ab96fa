"""Scorers of a prompt's difficulty: the router and the usual rivals, fitted to the same prompts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import svds

from alphaloom.router.classifier.features import FEATURE_BUCKETS, build_features, hash_buckets
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.classifier.training_prompts import Example
from bench.router.law import FRONTIER, LOCAL, Law, drawn
from bench.router.prompts import Prompt, training

if TYPE_CHECKING:
    from alphaloom.router.classifier.embedding import EmbeddingVectors

__all__ = ["OWN", "READERS", "ROUTER", "Factors", "Scorers", "Tfidf", "beside", "embedded"]

Numbers = NDArray[np.float64]
NEIGHBOURS = 30
"""The best of 5, 10, 30, 100 and 300 on the very prompts that are asked of."""
RANK, SIZE, ROUNDS, DECAY = 16, 256, 200, 1.0
ROUTER = "router"
OWN = (ROUTER, "router, embedding")
"""The router as it ships, and with a sentence embedding plugged in."""
READERS = ("nearest prompts", "TF-IDF + LR")
"""Rows that are no method of others: the router's own prompts, read by another model."""


class Tfidf:
    """TF-IDF of words and runs of letters with two logistic regressions of scikit-learn.

    Raises
    ------
    ImportError
        scikit-learn is not installed.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_union

        self._vectors = make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2),
        )
        rows = self._vectors.fit_transform([example.prompt for example in examples])
        told = {"max_iter": 300, "C": 10.0, "class_weight": "balanced"}
        self._intent = LogisticRegression(**told).fit(rows, [example.intent for example in examples])
        self._hard = LogisticRegression(**told).fit(rows, [example.hard for example in examples])

    def read(self, prompt: str) -> tuple[str, float]:
        """Return the intent of a prompt, and the probability that it is hard."""
        row = self._vectors.transform([prompt])
        return str(self._intent.predict(row)[0]), float(self._hard.predict_proba(row)[0, 1])


class Scorers:
    """All who put prompts in order of hardness, trained once on the same prompts."""

    def __init__(
        self, examples: Sequence[Example], law: Law, seed: int, embedding: EmbeddingVectors | None = None
    ) -> None:
        self._embedding = embedding
        self._texts, self._seed = [example.prompt for example in examples], seed
        self._rarity = _rarity(self._texts)
        self._known = _rows(self._texts, self._rarity)
        self._hard = np.array([example.hard for example in examples])
        self._router = Classifier.shipped()
        self._factors = Factors(self._known, examples, law, seed)
        try:
            self._tfidf: Tfidf | None = Tfidf(examples)
        except ImportError:
            self._tfidf = None

    def scores(self, texts: Sequence[str]) -> dict[str, Numbers]:
        """Return the scores of each; a row is left out without scikit-learn, or without an embedding."""
        asked = _rows(texts, self._rarity)
        found = {
            ROUTER: np.array([self._router.read(text).hard for text in texts]),
            "chance": np.random.default_rng(self._seed).random(len(texts)),
            "length": np.array([float(len(text)) for text in texts]),
            "nearest prompts": _neighbours(self._known, self._hard, asked),
            "factorisation": self._factors.scores(asked),
        }
        if self._tfidf is not None:
            found["TF-IDF + LR"] = np.array([self._tfidf.read(text)[1] for text in texts])
        if self._embedding is not None:
            found["embedding + LR"] = np.array([self._embedding.alone(text)[-1] for text in texts])
            found[OWN[1]] = np.array([self._embedding.scores(text)[-1] for text in texts])
        return found


def _rows(texts: Sequence[str], rarity: NDArray[np.float32]) -> sp.csr_array:
    """Return the router's own features of texts, each row of length one."""
    found = [build_features(text, rarity) for text in texts]
    ends = np.cumsum([0, *(len(features.rows) for features in found)])
    values = np.concatenate([features.weights for features in found]).astype(np.float64) / np.sqrt(2.0)
    return sp.csr_array(
        (values, np.concatenate([features.rows for features in found]), ends), shape=(len(texts), FEATURE_BUCKETS)
    )


def _rarity(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the inverse document frequency of the router's features; 0 where a feature is in one text only."""
    counts = np.bincount(np.concatenate([hash_buckets(text) for text in texts]), minlength=FEATURE_BUCKETS)
    return np.where(counts < 2, 0.0, 1.0 + np.log((1 + len(texts)) / (1 + counts))).astype(np.float32)


def _neighbours(known: sp.csr_array, hard: NDArray[np.bool_], asked: sp.csr_array) -> Numbers:
    """Return the share of hard ones among the nearest known prompts, weighed by their cosine."""
    likeness = (asked @ known.T).toarray()
    count = min(NEIGHBOURS, likeness.shape[1])
    nearest = np.argpartition(-likeness, count - 1, axis=1)[:, :count]
    weights = np.take_along_axis(likeness, nearest, axis=1) + 1e-9
    return np.asarray((weights * hard[nearest]).sum(axis=1) / weights.sum(axis=1))


class Factors:
    """A matrix factorisation in the manner of RouteLLM: the chance that only the frontier is right.

    A vector for each model and a projection of the prompt's vector; their product, through a logistic, is the chance
    that the strong model wins. It learns from outcomes of the training prompts, drawn by the law, not from labels.
    RouteLLM's own weights take their prompt vectors from a paid service; here these are the leading singular directions
    of the router's features.
    """

    def __init__(self, known: sp.csr_array, examples: Sequence[Example], law: Law, seed: int) -> None:
        table = drawn([Prompt(example.prompt, "", example.intent, example.hard, "") for example in examples], law, seed)
        wins = table.success[FRONTIER] & ~table.success[LOCAL]
        won = np.bincount(table.owner, weights=wins) / law.worlds
        size = min(SIZE, len(examples) // 4)
        self._directions: Numbers = svds(known, k=size, random_state=seed)[2].T
        rows = self._seen(known)
        cut = (size + 1) * RANK

        def loss(flat: Numbers) -> tuple[float, Numbers]:
            project, apart = flat[:cut].reshape(-1, RANK), flat[cut:]
            hidden = rows @ project
            logit = hidden @ apart
            error = 1.0 / (1.0 + np.exp(-logit)) - won
            value = np.logaddexp(0.0, logit).sum() - won @ logit + 0.5 * DECAY * flat @ flat
            return float(value), np.r_[(rows.T @ (error[:, None] * apart)).ravel(), hidden.T @ error] + DECAY * flat

        start = np.random.default_rng(seed).normal(scale=0.1, size=cut + RANK)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS}).x
        self._apart = found[:cut].reshape(-1, RANK) @ found[cut:]

    def scores(self, asked: sp.csr_array) -> Numbers:
        """Return the log-odds for rows of features."""
        return np.asarray(self._seen(asked) @ self._apart)

    def _seen(self, rows: sp.csr_array) -> Numbers:
        return np.hstack([rows @ self._directions, np.ones((rows.shape[0], 1))])


def embedded(folder: Path | None) -> EmbeddingVectors | None:
    """Return the embedding of a folder, or none."""
    if folder is None:
        return None
    from alphaloom.router.classifier.embedding import EmbeddingVectors

    return EmbeddingVectors(folder)


def beside(embedding: Path | None) -> tuple[Tfidf | None, Classifier | None]:
    """Return the other readers: TF-IDF where scikit-learn is installed, and an embedding where one is named."""
    own = embedded(embedding)
    try:
        tfidf: Tfidf | None = Tfidf(training())
    except ImportError:
        print("scikit-learn is not installed: no row for it")
        tfidf = None
    return tfidf, Classifier(own, own.name) if own else None
