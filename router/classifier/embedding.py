"""A sentence embedding of the user's own in the place of n-grams: its model reads, and a head made here says what it read.

The folder holds a model as ONNX (`model.onnx`, or `onnx/model.onnx`) and its `tokenizer.json`, as sentence-transformers
publishes them. Nothing is fetched and nothing is sent: the model runs in this process, on one thread.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadClassifier
from .examples import Example, read_examples
from .features import Features
from .frames import unframed
from .reading import INTENTS

__all__ = ["Embedded"]

INSTALL = "pip install 'alphaloom[embedding]'"
MODELS = ("model.onnx", "onnx/model.onnx")
KINDS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
READ, READ_LAST = 900, 300
"""Characters of a long prompt that are looked at: its beginning, and its end, where the question often stands."""
TOKENS, MOST_TOKENS = 256, 512
"""Tokens of a text that are read where the folder does not say, and at most."""
BATCH = 32
PENALTY = 0.1
HEAD = 1
"""Version of how a head is made; a cached one of another is left alone."""

Rows = NDArray[np.float32]


class Embedded:
    """Scores prompts (`model.Vectors`) by a sentence embedding and two logistic regressions on it.

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

    Attributes
    ----------
    name : str
        What the record calls it: changes with the model, the tokenizer and the training prompts.

    Raises
    ------
    BadClassifier
        The libraries are not installed, or the folder holds no model that embeds sentences.
    """

    def __init__(self, directory: Path, cache: Path | None = None, examples: Sequence[Example] | None = None) -> None:
        self._encoder = _Encoder(directory)
        self._last: tuple[str, Features] | None = None
        learned = read_examples() if examples is None else examples
        digest = self._encoder.digest(repr((each.prompt, each.intent, each.hard)).encode() for each in learned)
        self.name = f"embedding-{digest[:12]}"
        folder = cache or _cache()
        shape = (self._encoder.dimension + 1, len(INTENTS) + 1)
        head = _kept(folder / f"{digest}.npz", shape)
        if head is None:
            head = self._fitted(learned)
            _keep(folder / f"{digest}.npz", head)
        self._head = head

    def scores(self, prompt: str) -> NDArray[np.float64]:
        """Return the scores of a prompt, see `model.Vectors`."""
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

    def embed(self, prompts: Sequence[str]) -> Rows:
        """Return a row of length one for each prompt; all zero where there is nothing to read."""
        return self._encoder.embed(prompts)

    def _fitted(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Return weights and, in the last row, the bias, ``[dimension + 1, intents + 1]``."""
        import scipy.sparse as sp

        from .fit import fitted

        rows = sp.csr_array(self.embed([each.prompt for each in examples]).astype(np.float64))
        intents = np.array([INTENTS.index(each.intent) for each in examples])
        hard = np.array([int(each.hard) for each in examples])
        by_intent, bias = fitted(rows, intents, 1.0 / np.bincount(intents)[intents], PENALTY)
        by_hard, bias_hard = fitted(rows, hard, 1.0 / np.bincount(hard)[hard], PENALTY)
        weights = np.column_stack([by_intent, by_hard[:, 1] - by_hard[:, 0]])
        return np.vstack([weights, [*bias, bias_hard[1] - bias_hard[0]]])


class _Encoder:
    """A model and its tokenizer: texts in, rows of length one out."""

    def __init__(self, directory: Path) -> None:
        runtime, tokens = _libraries()
        self._folder = directory
        self._model = next((place for name in MODELS if (place := directory / name).is_file()), None)
        self._words = directory / "tokenizer.json"
        if self._model is None or not self._words.is_file():
            raise self._refusal("the folder holds no embedding")
        try:
            self._tokenizer = tokens.Tokenizer.from_file(str(self._words))
            self._session = self._opened(runtime)
        except Exception as error:  # both libraries raise classes of their own, some of them plain Exception
            raise self._refusal(f"the embedding cannot be read: {_first_line(error)}") from error
        self._inputs = {each.name: KINDS.get(each.type) for each in self._session.get_inputs()}
        if not {"input_ids"} <= set(self._inputs) <= {"input_ids", "attention_mask", "token_type_ids"} or None in set(
            self._inputs.values()
        ):
            raise self._refusal(f"the model wants {', '.join(self._inputs)}, not a text's tokens")
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=self._length())
        self.dimension = int(self.embed(["Which field holds the traded volume?"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Rows:
        """Return a row for each text."""
        told = [self._tokenizer.encode(_looked_at(text)).ids for text in texts]
        order = sorted(range(len(told)), key=lambda at: len(told[at]))
        found: dict[int, Rows] = {}
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            found |= zip(chosen, self._batch([told[at] for at in chosen]), strict=True)
        return np.stack([found[at] for at in range(len(told))])

    def digest(self, bodies: Iterable[bytes]) -> str:
        """Return the hash of how a head is made, of all that a vector depends on, and of some bodies."""
        told = hashlib.sha256(repr((HEAD, PENALTY, READ, READ_LAST, self._length())).encode())
        assert self._model is not None
        # Weights may lie beside the graph: model.onnx_data, model.onnx.data.
        for path in (*sorted(self._model.parent.glob(f"{self._model.name}*")), self._words):
            told.update(hashlib.sha256(path.read_bytes()).digest())
        for body in bodies:
            told.update(hashlib.sha256(body).digest())
        return told.hexdigest()

    def _batch(self, told: Sequence[Sequence[int]]) -> Rows:
        """Return the means over the tokens of each text, scaled to length one."""
        if not any(told):
            return np.zeros((len(told), self.dimension), dtype=np.float32)
        tokens, mask = np.zeros((2, len(told), max(len(each) for each in told)), dtype=np.int64)
        for row, each in enumerate(told):
            tokens[row, : len(each)], mask[row, : len(each)] = each, 1
        given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        try:
            out = self._session.run(None, {name: given[name].astype(kind) for name, kind in self._inputs.items()})[0]
        except Exception as error:
            raise self._refusal(f"the model does not take what its tokenizer gives: {_first_line(error)}") from error
        return self._pooled(np.asarray(out, dtype=np.float32), mask)

    def _pooled(self, out: Rows, mask: NDArray[np.int64]) -> Rows:
        if out.ndim == 3 and out.shape[:2] == mask.shape:
            counted = mask[:, :, None].astype(np.float32)
            out = (out * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1.0)
        elif out.ndim != 2 or len(out) != len(mask):
            raise self._refusal(
                f"the model's first output has the shape {out.shape}, not [texts, tokens, size] or [texts, size]"
            )
        if not np.isfinite(out).all():
            raise self._refusal("the model gives numbers that are none")
        return np.asarray(out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12))

    def _length(self) -> int:
        """Return how many tokens are read: what the folder says, else what the tokenizer does."""
        place = self._folder / "sentence_bert_config.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            return max(8, min(int(json.loads(place.read_text("utf-8"))["max_seq_length"]), MOST_TOKENS))
        cut = self._tokenizer.truncation
        return max(8, min(int(cut["max_length"]) if cut else TOKENS, MOST_TOKENS))

    def _opened(self, runtime: Any) -> Any:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        runtime.disable_telemetry_events()
        return runtime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])

    def _refusal(self, said: str) -> BadClassifier:
        return BadClassifier(
            said, field="routing.embedding", got=str(self._folder),
            allowed="a folder with model.onnx (or onnx/model.onnx) and tokenizer.json, as sentence-transformers exports them",
            hint="Name such a folder, or leave routing.embedding out: the classifier that ships needs none.",
        )  # fmt: skip


def _libraries() -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise BadClassifier(
            f"an embedding of your own needs {error.name}, which is not installed", field="routing.embedding",
            hint=f"{INSTALL}, or leave routing.embedding out.",
        ) from None  # fmt: skip
    return onnxruntime, tokenizers


def _looked_at(text: str) -> str:
    cut = text if len(text) <= READ + READ_LAST else f"{text[:READ]} {text[-READ_LAST:]}"
    return unframed(cut).encode("utf-8", "replace").decode("utf-8")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("alphaloom") / "embedding"


def _kept(path: Path, shape: tuple[int, int]) -> NDArray[np.float64] | None:
    """Return a head that was kept; None where there is none, or what is there is none."""
    with suppress(OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as held:
            head = np.asarray(held["head"], dtype=np.float64)
        return head if head.shape == shape and np.isfinite(head).all() else None
    return None


def _keep(path: Path, head: NDArray[np.float64]) -> None:
    """Keep a head whole or not at all; where nothing can be written it is made again the next time."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
            np.savez(part, head=head)
        os.replace(part.name, path)
