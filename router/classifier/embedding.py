"""A sentence embedding of the user's own beside the n-grams: two regressions are fitted on it here, and both scores are added.

The folder holds a model as ONNX (`model.onnx`, or `onnx/model.onnx`) and its `tokenizer.json`, as sentence-transformers
publishes them; its `1_Pooling/config.json` and `sentence_bert_config.json` are heeded. Nothing is fetched and nothing is
sent: the model runs in this process, on one thread.

A sentence's meaning alone tells less of what is wanted than the words that ask for it (`docs/design/router.md`, "An
embedding beside it", has the figures on writers left out of the training prompts), so the scores of both are added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...extras import install_hint
from ...ledger.files import read_given_text
from ..errors import RouterError
from .features import Features, strip_frames
from .fit import digest_arrays, fit_softmax, load_arrays, save_arrays
from .model import WeightTable
from .prompt_reading import INTENTS
from .training_prompts import Example, read_examples

HEAD_PENALTY = 0.1
HEAD_FORMAT = 1
"""Version of how a head is made; a cached one of another is left alone."""
EMBEDDING_WEIGHT = 0.4
"""Of the embedding's scores beside the n-grams' whole: least surprise on writers left out of the training prompts in turn."""
MODEL_FILES = ("model.onnx", "onnx/model.onnx")
INTEGER_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
POOLED_OUTPUT = "sentence_embedding"
"""Name of the output in which some exports give a whole text's row beside those of its tokens."""
EMBEDDED_HEAD_CHARS, EMBEDDED_TAIL_CHARS = 900, 300
"""Characters of a long prompt that are looked at: its beginning, and its end, where the question often stands."""
DEFAULT_TOKENS, MAX_MODEL_TOKENS = 256, 512
"""Tokens of a text that are read where the folder does not say, and at most."""
ENCODER_BATCH = 32
EmbeddingRows = NDArray[np.float32]


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
    RouterError
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


class Encoder:
    """A model and its tokenizer: texts in, rows of length one out."""

    def __init__(self, directory: Path) -> None:
        runtime, tokens = _libraries()
        self._folder = directory
        self._model = next((place for name in MODEL_FILES if (place := directory / name).is_file()), None)
        self._words = directory / "tokenizer.json"
        if self._model is None or not self._words.is_file():
            raise self._refusal("the folder holds no embedding")
        try:
            self._tokenizer = tokens.Tokenizer.from_file(str(self._words))
            self._session = self._opened(runtime)
        except Exception as error:  # both libraries raise classes of their own, some of them plain Exception
            raise self._refusal(f"the embedding cannot be read: {_first_line(error)}") from error
        self._inputs = {each.name: INTEGER_TYPES.get(each.type) for each in self._session.get_inputs()}
        if not {"input_ids"} <= set(self._inputs) <= {"input_ids", "attention_mask", "token_type_ids"} or None in set(
            self._inputs.values()
        ):
            raise self._refusal(f"the model wants {', '.join(self._inputs)}, not a text's tokens")
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=self._length())
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = POOLED_OUTPUT if POOLED_OUTPUT in outputs else outputs[0]
        self._pooling = "given" if self._output == POOLED_OUTPUT else self._read_pooling()
        self.dimension = int(self.embed(["Which field holds the traded volume?"]).shape[1])

    def embed(self, texts: Sequence[str]) -> EmbeddingRows:
        """Return a row for each text."""
        told = [self._tokenizer.encode(_cut_text(text)).ids for text in texts]
        order = sorted(range(len(told)), key=lambda at: len(told[at]))
        found: dict[int, EmbeddingRows] = {}
        for start in range(0, len(order), ENCODER_BATCH):
            chosen = order[start : start + ENCODER_BATCH]
            found |= zip(chosen, self._batch([told[at] for at in chosen]), strict=True)
        return np.stack([found[at] for at in range(len(told))])

    def digest(self, bodies: Iterable[bytes]) -> str:
        """Return the hash of all that a vector depends on, and of some bodies."""
        told = hashlib.sha256(
            repr((EMBEDDED_HEAD_CHARS, EMBEDDED_TAIL_CHARS, self._length(), self._output, self._pooling)).encode()
        )
        assert self._model is not None
        # Weights may lie beside the graph: model.onnx_data, model.onnx.data.
        for path in (*sorted(self._model.parent.glob(f"{self._model.name}*")), self._words):
            told.update(hashlib.sha256(path.read_bytes()).digest())
        for body in bodies:
            told.update(hashlib.sha256(body).digest())
        return told.hexdigest()

    def _batch(self, told: Sequence[Sequence[int]]) -> EmbeddingRows:
        """Return the row of each text, scaled to length one."""
        if not any(told):
            return np.zeros((len(told), self.dimension), dtype=np.float32)
        tokens, mask = np.zeros((2, len(told), max(len(each) for each in told)), dtype=np.int64)
        for row, each in enumerate(told):
            tokens[row, : len(each)], mask[row, : len(each)] = each, 1
        given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        try:
            out = self._session.run(
                [self._output], {name: given[name].astype(kind) for name, kind in self._inputs.items()}
            )[0]
        except Exception as error:
            raise self._refusal(f"the model does not take what its tokenizer gives: {_first_line(error)}") from error
        return self._pool_tokens(np.asarray(out, dtype=np.float32), mask)

    def _pool_tokens(self, out: EmbeddingRows, mask: NDArray[np.int64]) -> EmbeddingRows:
        if out.ndim == 3 and out.shape[:2] == mask.shape:
            counted = mask[:, :, None].astype(np.float32)
            mean = (out * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1.0)
            out = out[:, 0] if self._pooling == "cls" else mean
        elif out.ndim != 2 or len(out) != len(mask):
            raise self._refusal(
                f"the model's output {self._output} has the shape {out.shape}, not [texts, tokens, size] or [texts, size]"
            )
        if not np.isfinite(out).all():
            raise self._refusal("the model gives numbers that are none")
        return np.asarray(out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12))

    def _read_pooling(self) -> str:
        """Return what `1_Pooling/config.json` says makes one row of a text's tokens, in either of its spellings; else the mean."""
        told: dict[str, Any] = {}
        with suppress(OSError, ValueError, TypeError):
            told = dict(json.loads(read_given_text(self._folder / "1_Pooling" / "config.json")))
        flags = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
        spelled = [
            flags.get(name, name) for name, held in told.items() if name.startswith("pooling_mode_") and held is True
        ]
        modes = set(spelled or [str(told.get("pooling_mode", "mean"))])
        if modes not in ({"mean"}, {"cls"}):
            raise self._refusal(
                f"rows are pooled by {', '.join(sorted(modes))}, not by mean or cls; an export with an output {POOLED_OUTPUT} pools by itself"
            )
        return modes.pop()

    def _length(self) -> int:
        """Return how many tokens are read: what the folder says, else what the tokenizer does."""
        place = self._folder / "sentence_bert_config.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            return max(8, min(int(json.loads(read_given_text(place))["max_seq_length"]), MAX_MODEL_TOKENS))
        cut = self._tokenizer.truncation
        return max(8, min(int(cut["max_length"]) if cut else DEFAULT_TOKENS, MAX_MODEL_TOKENS))

    def _opened(self, runtime: Any) -> Any:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        runtime.disable_telemetry_events()
        return runtime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])

    def _refusal(self, said: str) -> RouterError:
        return RouterError(
            said, code="bad_classifier", field="routing.embedding", got=str(self._folder),
            allowed="a folder with model.onnx (or onnx/model.onnx) and tokenizer.json, as sentence-transformers exports them",
            hint="Name such a folder, or leave routing.embedding out: the classifier that ships needs none.",
        )  # fmt: skip


def _libraries() -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise RouterError(
            f"an embedding of your own needs {error.name}, which is not installed", code="bad_classifier", field="routing.embedding",
            hint=f"{install_hint('embedding')}, or leave routing.embedding out.",
        ) from None  # fmt: skip
    return onnxruntime, tokenizers


def _cut_text(text: str) -> str:
    cut = (
        text
        if len(text) <= EMBEDDED_HEAD_CHARS + EMBEDDED_TAIL_CHARS
        else f"{text[:EMBEDDED_HEAD_CHARS]} {text[-EMBEDDED_TAIL_CHARS:]}"
    )
    return strip_frames(cut).encode("utf-8", "replace").decode("utf-8")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
