"""A sentence embedding of the user's own beside the n-grams: its model reads, a head made here says what it read, and both count.

The folder holds a model as ONNX (`model.onnx`, or `onnx/model.onnx`) and its `tokenizer.json`, as sentence-transformers
publishes them; its `1_Pooling/config.json` and `sentence_bert_config.json` are heeded. Nothing is fetched and nothing is
sent: the model runs in this process, on one thread.

A sentence's meaning alone tells less of what is wanted than the words that ask for it (`docs/design/router.md`, "An
embedding beside it", has the figures on writers left out of the training prompts), so the scores of both are added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .encoder import EmbeddingRows, Encoder
from .examples import Example, read_examples
from .features import Features
from .keeping import digest_arrays, load_arrays, save_arrays
from .model import WeightTable
from .reading import INTENTS

HEAD_PENALTY = 0.1
HEAD_FORMAT = 1
"""Version of how a head is made; a cached one of another is left alone."""
EMBEDDING_WEIGHT = 0.4
"""Of the embedding's scores beside the n-grams' whole: least surprise on writers left out of the training prompts in turn."""


class EmbeddingVectors:
    """Scores prompts (`model.Vectors`) by a sentence embedding with two logistic regressions on it, and by the n-grams.

    The regressions are fitted to the training prompts when a model is first used, about a minute for a model of 20 million
    parameters, and kept in the cache folder under the hash of model, tokenizer and prompts.

    Parameters
    ----------
    directory : Path
        With `model.onnx` and `tokenizer.json`.
    cache : Path, optional
        Folder of fitted heads; `embedding` in the user's cache by default.
    examples : sequence of Example, optional
        What the head is fitted to; the prompts that ship by default.
    beside : Table, optional
        Whose scores count as well; the built-in ones by default.

    Attributes
    ----------
    name : str
        What the record calls it: changes with the model, the tokenizer, the training prompts, every weight of the head and
        what stands beside it.

    Raises
    ------
    BadClassifier
        The libraries are not installed, or the folder holds no model that embeds sentences.
    """

    def __init__(
        self,
        directory: Path,
        cache: Path | None = None,
        examples: Sequence[Example] | None = None,
        beside: WeightTable | None = None,
    ) -> None:
        self._beside = beside or WeightTable.read()
        self._encoder = Encoder(directory)
        self._last: tuple[str, Features] | None = None
        learned = read_examples() if examples is None else examples
        bodies = [repr((HEAD_FORMAT, HEAD_PENALTY)), *(repr((each.prompt, each.intent, each.hard)) for each in learned)]
        made_of = self._encoder.digest(body.encode() for body in bodies)
        self._head = self._load_or_fit((cache or _cache()) / f"{made_of}.npz", learned)
        said = f"{made_of}/{digest_arrays({'head': self._head})}/{self._beside.digest}/{EMBEDDING_WEIGHT}"
        self.name = f"embedding-{hashlib.sha256(said.encode()).hexdigest()[:12]}"

    def scores(self, prompt: str) -> NDArray[np.float64]:
        """Return the scores of a prompt, see `model.Vectors`."""
        return self._beside.scores(prompt) + EMBEDDING_WEIGHT * self.alone(prompt)

    def alone(self, prompt: str) -> NDArray[np.float64]:
        """Return the scores by the embedding alone."""
        row = self.rows([prompt])[0].weights.astype(np.float64)
        return np.asarray(row @ self._head[:-1] + self._head[-1], dtype=np.float64)

    @property
    def width(self) -> int:
        """The size of the embedding."""
        return self._encoder.dimension

    def rows(self, prompts: Sequence[str]) -> list[Features]:
        """Return the embedding of each prompt; one that was asked for just before is not made again."""
        if len(prompts) == 1 and self._last and self._last[0] == prompts[0]:
            return [self._last[1]]
        columns = np.arange(self.width)
        found = [Features(columns, row) for row in self.embed(prompts)]
        self._last = (prompts[-1], found[-1]) if found else None
        return found

    def embed(self, prompts: Sequence[str]) -> EmbeddingRows:
        """Return a row of length one for each prompt; all zero where there is nothing to read."""
        return self._encoder.embed(prompts)

    def _load_or_fit(self, path: Path, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Return the head that was kept in a file, or one that is made and kept there."""
        head = (load_arrays(path) or {}).get("head")
        if head is None or head.shape != (self.width + 1, len(INTENTS) + 1) or not np.isfinite(head).all():
            head = self._fitted(examples)
            save_arrays(path, {"head": head})
        return head

    def _fitted(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Return weights and, in the last row, the bias, ``[dimension + 1, intents + 1]``."""
        import scipy.sparse as sp

        from .fit import fit_softmax

        rows = sp.csr_array(self.embed([each.prompt for each in examples]).astype(np.float64))
        intents = np.array([INTENTS.index(each.intent) for each in examples])
        hard = np.array([int(each.hard) for each in examples])
        by_intent, bias = fit_softmax(rows, intents, 1.0 / np.bincount(intents)[intents], HEAD_PENALTY)
        by_hard, bias_hard = fit_softmax(rows, hard, 1.0 / np.bincount(hard)[hard], HEAD_PENALTY)
        weights = np.column_stack([by_intent, by_hard[:, 1] - by_hard[:, 0]])
        return np.vstack([weights, [*bias, bias_hard[1] - bias_hard[0]]])


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("alphaloom") / "embedding"
