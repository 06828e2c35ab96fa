"""A sentence embedding in miniature: a table of word vectors as an ONNX graph, and its tokenizer, as files in a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from alphaloom.router.classifier.examples import read_examples

SIZE = 256
WORDS = 1_500


def written(folder: Path, *, inputs: tuple[str, ...] = ("input_ids", "attention_mask"), rows: int = WORDS) -> Path:
    """Write model.onnx and tokenizer.json: common words of the training prompts, and a random vector for each."""
    import onnx
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    counts = Counter(word for each in read_examples() for word in each.prompt.lower().split())
    known = ["[UNK]", *sorted(word for word, _ in counts.most_common(WORDS - 1))]
    told = tokenizers.Tokenizer(models.WordLevel({word: at for at, word in enumerate(known)}, unk_token="[UNK]"))
    told.normalizer = normalizers.Lowercase()
    told.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    told.enable_padding(length=128)
    told.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(1).normal(size=(rows, SIZE)).astype(np.float32)
    _save(onnx, folder / "model.onnx", table, inputs)
    return folder


def _save(onnx: Any, path: Path, table: Any, inputs: tuple[str, ...]) -> None:
    helper, kind = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", inputs[0]], ["last_hidden_state"], axis=0)],
        "tiny",
        [helper.make_tensor_value_info(name, kind.INT64, ["texts", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info("last_hidden_state", kind.FLOAT, ["texts", "tokens", table.shape[1]])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
