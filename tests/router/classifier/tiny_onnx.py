"""A tiny sentence embedding: a table of word vectors as an ONNX graph, and its tokenizer, in a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from alphaloom.router.classifier.training_prompts import read_examples

SIZE = 256
WORDS = 1_500


def written(
    folder: Path, *, inputs: tuple[str, ...] = ("input_ids", "attention_mask"), rows: int = WORDS, pooled: bool = False
) -> Path:
    """Write model.onnx and tokenizer.json: common words of the training prompts, and a random vector for each.

    With `pooled` a second output `sentence_embedding` holds the mean over a text's tokens, of texts of one length.
    """
    import onnx
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    counts = Counter(word for example in read_examples() for word in example.prompt.lower().split())
    known = ["[UNK]", *sorted(word for word, _ in counts.most_common(WORDS - 1))]
    told = tokenizers.Tokenizer(models.WordLevel({word: at for at, word in enumerate(known)}, unk_token="[UNK]"))
    told.normalizer = normalizers.Lowercase()
    told.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    told.enable_padding(length=128)
    told.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(1).normal(size=(rows, SIZE)).astype(np.float32)
    _save(onnx, folder / "model.onnx", table, inputs, pooled)
    return folder


def _save(onnx: Any, path: Path, table: Any, inputs: tuple[str, ...], pooled: bool) -> None:
    helper, kind = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Gather", ["table", inputs[0]], ["last_hidden_state"], axis=0)]
    outputs = [helper.make_tensor_value_info("last_hidden_state", kind.FLOAT, ["texts", "tokens", table.shape[1]])]
    if pooled:
        nodes.append(
            helper.make_node("ReduceMean", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0)
        )
        outputs.append(helper.make_tensor_value_info("sentence_embedding", kind.FLOAT, ["texts", table.shape[1]]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind.INT64, ["texts", "tokens"]) for name in inputs],
        outputs,
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
