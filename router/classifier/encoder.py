"""A model that turns sentences into rows: ONNX and a tokenizer out of a folder, run in this process on one thread."""

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
from ..errors import BadClassifier
from .frames import strip_frames

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
