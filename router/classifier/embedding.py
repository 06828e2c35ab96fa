"""A sentence embedding of the user's own beside the n-grams; the scores of both are added.

The folder contains a model as ONNX (`model.onnx`, or `onnx/model.onnx`) and its `tokenizer.json`, as
sentence-transformers publishes them; `1_Pooling/config.json` and `sentence_bert_config.json` are read too. Nothing is
downloaded or sent: the model runs in this process, on one thread.

The embedding alone predicts intents less well than the words (`docs/design/router.md`, "An embedding beside it", has
the figures on writers left out of the training prompts).
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
from ..errors import ClassifierUnusable
from .blocks import shorten
from .features import Features, strip_frames
from .fit import digest_arrays, find_cache, fit_examples, load_or_fit
from .model import WeightTable
from .prompt_reading import INTENTS
from .training_prompts import Example, read_examples

HEAD_PENALTY = 0.1
HEAD_FORMAT = 1
"""Version of the fit of a head; cached heads of other versions are ignored."""
EMBEDDING_WEIGHT = 0.4
"""Weight of the embedding's scores, with 1 for the n-grams: lowest log loss on writers left out in turn."""
MODEL_FILES = ("model.onnx", "onnx/model.onnx")
INTEGER_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
POOLED_OUTPUT = "sentence_embedding"
"""Name of the output with one row for the whole text; some exports have it beside the rows of tokens."""
EMBEDDED_HEAD_CHARS, EMBEDDED_TAIL_CHARS = 900, 300
"""Characters read of a long prompt: its beginning, and its end, where the question often stands."""
DEFAULT_TOKENS, MAX_MODEL_TOKENS = 256, 512
"""Tokens read of a text: the default, and the maximum."""
ENCODER_BATCH = 32
EmbeddingRows = NDArray[np.float32]


class EmbeddingVectors:
    """Scores prompts (`model.Vectors`) by two logistic regressions on a sentence embedding, plus the n-grams.

    The regressions (the head) are fitted to the training prompts when a model is first used, in about a minute for 20
    million parameters, and cached under the hash of model, tokenizer and prompts.

    Parameters
    ----------
    directory : Path
        Folder with `model.onnx` and `tokenizer.json`.
    cache : Path, optional
        Folder of fitted heads; `embedding` in the user's cache by default.
    examples : sequence of Example, optional
        Training prompts of the head; the built-in ones by default.
    beside : WeightTable, optional
        The n-gram weights whose scores are added; the built-in ones by default.

    Attributes
    ----------
    name : str
        The name for the record; it changes with the model, the tokenizer, the training prompts, the weights of the head
        and the n-gram weights.

    Raises
    ------
    ClassifierUnusable
        The libraries are not installed, or the folder contains no model that embeds sentences.
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
        training = read_examples() if examples is None else examples
        bodies = [
            repr((HEAD_FORMAT, HEAD_PENALTY)),
            *(repr((example.prompt, example.intent, example.hard)) for example in training),
        ]
        source_digest = self._encoder.digest(body.encode() for body in bodies)
        path = (cache or find_cache("embedding")) / f"{source_digest}.npz"
        shape = (self.width + 1, len(INTENTS) + 1)
        self._head = load_or_fit(path, {"head": shape}, lambda: {"head": self._fit_head(training)})["head"]
        parts = f"{source_digest}/{digest_arrays({'head': self._head})}/{self._beside.digest}/{EMBEDDING_WEIGHT}"
        self.name = f"embedding-{hashlib.sha256(parts.encode()).hexdigest()[:12]}"

    def scores(self, prompt: str) -> NDArray[np.float64]:
        """Return the logits of a prompt, float64, ``[intents + 1]``."""
        return self._beside.scores(prompt) + EMBEDDING_WEIGHT * self.alone(prompt)

    @property
    def calibration(self) -> NDArray[np.float64]:
        """Slope and intercept ``[2]`` of the n-grams' logit of hardness, which are taken for the sum as well."""
        return self._beside.calibration

    def attachment(self, text: str) -> float:
        """Return the log-odds of the n-grams that a text is attached to a request."""
        return self._beside.attachment(text)

    def alone(self, prompt: str) -> NDArray[np.float64]:
        """Return the logits by the embedding alone, float64, ``[intents + 1]``."""
        row = self.rows([prompt])[0].weights.astype(np.float64)
        return np.asarray(row @ self._head[:-1] + self._head[-1], dtype=np.float64)

    @property
    def width(self) -> int:
        """The dimension of the embedding."""
        return self._encoder.dimension

    def rows(self, prompts: Sequence[str]) -> list[Features]:
        """Return the embedding of each prompt as features; the last one is cached."""
        if len(prompts) == 1 and self._last and self._last[0] == prompts[0]:
            return [self._last[1]]
        columns = np.arange(self.width)
        features = [Features(columns, row) for row in self.embed(prompts)]
        self._last = (prompts[-1], features[-1]) if features else None
        return features

    def embed(self, prompts: Sequence[str]) -> EmbeddingRows:
        """Return rows ``[prompts, dimension]`` of length 1, float32; all zero for a prompt without tokens."""
        return self._encoder.embed(prompts)

    def _fit_head(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """Return weights and, in the last row, the bias, ``[dimension + 1, intents + 1]``."""
        import scipy.sparse as sp

        rows = sp.csr_array(self.embed([example.prompt for example in examples]).astype(np.float64))
        return np.vstack(fit_examples(rows, examples, HEAD_PENALTY))


class Encoder:
    """A model and its tokenizer: texts to rows of length 1."""

    def __init__(self, directory: Path) -> None:
        runtime, tokens = _load_libraries()
        self._folder = directory
        self._model = next((place for name in MODEL_FILES if (place := directory / name).is_file()), None)
        self._words = directory / "tokenizer.json"
        if self._model is None or not self._words.is_file():
            raise self._build_refusal("the folder holds no embedding")
        try:
            self._tokenizer = tokens.Tokenizer.from_file(str(self._words))
            self._session = self._open_session(runtime)
        except Exception as error:  # both libraries raise classes of their own, some directly below Exception
            raise self._build_refusal(f"the embedding cannot be read: {_take_first_line(error)}") from error
        self._inputs = {argument.name: INTEGER_TYPES.get(argument.type) for argument in self._session.get_inputs()}
        if not {"input_ids"} <= set(self._inputs) <= {"input_ids", "attention_mask", "token_type_ids"} or None in set(
            self._inputs.values()
        ):
            raise self._build_refusal(f"the model wants {', '.join(self._inputs)}, not a text's tokens")
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=self._read_length())
        outputs = [output.name for output in self._session.get_outputs()]
        self._output = POOLED_OUTPUT if POOLED_OUTPUT in outputs else outputs[0]
        self._pooling = "given" if self._output == POOLED_OUTPUT else self._read_pooling()
        self.dimension = int(self.embed(["Which field holds the traded volume?"]).shape[1])

    def embed(self, texts: Sequence[str]) -> EmbeddingRows:
        """Return a row for each text, float32, ``[texts, dimension]``."""
        tokens = [self._tokenizer.encode(_cut_text(text)).ids for text in texts]
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        rows: dict[int, EmbeddingRows] = {}
        for start in range(0, len(order), ENCODER_BATCH):
            batch = order[start : start + ENCODER_BATCH]
            rows |= zip(batch, self._embed_batch([tokens[at] for at in batch]), strict=True)
        return np.stack([rows[at] for at in range(len(tokens))])

    def digest(self, bodies: Iterable[bytes]) -> str:
        """Return the SHA-256 (hex) of everything that a vector depends on, and of some bodies."""
        digest = hashlib.sha256(
            repr((EMBEDDED_HEAD_CHARS, EMBEDDED_TAIL_CHARS, self._read_length(), self._output, self._pooling)).encode()
        )
        assert self._model is not None
        # Weights may lie beside the graph: model.onnx_data, model.onnx.data.
        for path in (*sorted(self._model.parent.glob(f"{self._model.name}*")), self._words):
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        for body in bodies:
            digest.update(hashlib.sha256(body).digest())
        return digest.hexdigest()

    def _embed_batch(self, texts: Sequence[Sequence[int]]) -> EmbeddingRows:
        """Return the row of each text, given as token ids, scaled to length 1."""
        if not any(texts):
            return np.zeros((len(texts), self.dimension), dtype=np.float32)
        tokens, mask = np.zeros((2, len(texts), max(len(ids) for ids in texts)), dtype=np.int64)
        for row, ids in enumerate(texts):
            tokens[row, : len(ids)], mask[row, : len(ids)] = ids, 1
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        try:
            out = self._session.run(
                [self._output], {name: inputs[name].astype(kind) for name, kind in self._inputs.items()}
            )[0]
        except Exception as error:
            raise self._build_refusal(
                f"the model does not take what its tokenizer gives: {_take_first_line(error)}"
            ) from error
        return self._pool_tokens(np.asarray(out, dtype=np.float32), mask)

    def _pool_tokens(self, out: EmbeddingRows, mask: NDArray[np.int64]) -> EmbeddingRows:
        if out.ndim == 3 and out.shape[:2] == mask.shape:
            counted = mask[:, :, None].astype(np.float32)
            mean = (out * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1.0)
            out = out[:, 0] if self._pooling == "cls" else mean
        elif out.ndim != 2 or len(out) != len(mask):
            raise self._build_refusal(
                f"the model's output {self._output} has the shape {out.shape}, not [texts, tokens, size] or [texts, "
                "size]"
            )
        if not np.isfinite(out).all():
            raise self._build_refusal("the model gives numbers that are none")
        return np.asarray(out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12))

    def _read_pooling(self) -> str:
        """Return the pooling in `1_Pooling/config.json`, in either of its spellings: "mean" (the default) or "cls"."""
        settings: dict[str, Any] = {}
        with suppress(OSError, ValueError, TypeError):
            settings = dict(json.loads(read_given_text(self._folder / "1_Pooling" / "config.json")))
        flags = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
        spelled = [
            flags.get(name, name)
            for name, flag in settings.items()
            if name.startswith("pooling_mode_") and flag is True
        ]
        modes = set(spelled or [str(settings.get("pooling_mode", "mean"))])
        if modes not in ({"mean"}, {"cls"}):
            raise self._build_refusal(
                f"rows are pooled by {', '.join(sorted(modes))}, not by mean or cls; an export with an output "
                f"{POOLED_OUTPUT} pools by itself"
            )
        return modes.pop()

    def _read_length(self) -> int:
        """Return the maximum tokens of a text: from the folder's settings, else from the tokenizer's."""
        place = self._folder / "sentence_bert_config.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            return max(8, min(int(json.loads(read_given_text(place))["max_seq_length"]), MAX_MODEL_TOKENS))
        cut = self._tokenizer.truncation
        return max(8, min(int(cut["max_length"]) if cut else DEFAULT_TOKENS, MAX_MODEL_TOKENS))

    def _open_session(self, runtime: Any) -> Any:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        runtime.disable_telemetry_events()
        return runtime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])

    def _build_refusal(self, message: str) -> ClassifierUnusable:
        return ClassifierUnusable(
            message,
            field="routing.embedding",
            got=str(self._folder),
            allowed="a folder with model.onnx (or onnx/model.onnx) and tokenizer.json, as sentence-transformers "
            "exports them",
            hint="Name such a folder, or leave routing.embedding out: the classifier that ships needs none.",
        )


def _load_libraries() -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise ClassifierUnusable(
            f"an embedding of your own needs {error.name}, which is not installed",
            field="routing.embedding",
            hint=f"{install_hint('embedding')}, or leave routing.embedding out.",
        ) from None
    return onnxruntime, tokenizers


def _cut_text(text: str) -> str:
    cut = shorten(text, EMBEDDED_HEAD_CHARS, EMBEDDED_TAIL_CHARS)
    return strip_frames(cut).encode("utf-8", "replace").decode("utf-8")


def _take_first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
