"""A config.json is read as Hugging Face writes it, and what it lacks is said at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alphaloom.serving import find_model
from alphaloom.serving.architecture import assume_int4, parse_architecture, read_architecture
from alphaloom.serving.errors import ServingError
from alphaloom.serving.tensors import count_bytes_per_gpu

PLAIN: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 258,
    "max_position_embeddings": 2048,
}


def test_what_a_config_leaves_out_has_the_usual_meaning() -> None:
    model = parse_architecture(PLAIN, "tiny", "/weights/tiny")
    assert (model.kv_heads, model.head_dim, model.tied, model.windowed) == (4, 64, False, 0)


def test_all_missing_keys_are_said_at_once() -> None:
    config = {key: value for key, value in PLAIN.items() if key not in ("vocab_size", "hidden_size")}
    with pytest.raises(ServingError, match=r"tiny: its configuration lacks hidden_size, vocab_size") as caught:
        parse_architecture(config, "tiny", "")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("wrong", ["many", 0, -1, 2.5, True])
def test_a_number_that_is_none_is_said(wrong: object) -> None:
    with pytest.raises(ServingError, match=r"num_hidden_layers \(a whole number above 0"):
        parse_architecture(PLAIN | {"num_hidden_layers": wrong}, "tiny", "")


def test_an_unknown_family_is_not_guessed_at() -> None:
    with pytest.raises(ServingError, match=r"the family 'mamba' is not known"):
        parse_architecture(PLAIN | {"model_type": "mamba"}, "tiny", "")
    with pytest.raises(ServingError, match=r"names no model_type, so its tensors"):
        parse_architecture(PLAIN | {"model_type": None}, "tiny", "")


def test_weights_quantised_in_an_unknown_way_are_not_counted() -> None:
    with pytest.raises(ServingError, match="bitsandbytes"):
        parse_architecture(PLAIN | {"quantization_config": {"quant_method": "bitsandbytes"}}, "tiny", "")


@pytest.mark.parametrize("method", ["awq", "gptq"])
def test_int4_is_read_with_its_group_size(method: str) -> None:
    quantised = {"quantization_config": {"quant_method": method, "bits": 4, "group_size": 64}}
    model = parse_architecture(PLAIN | quantised, "tiny", "/weights/tiny")
    assert (model.stored, model.group, model.assumed_int4) == (method, 64, False)


def test_int4_is_read_by_autoawqs_keys_and_a_whole_column_is_one_group() -> None:
    quantised = {"quantization_config": {"quant_method": "awq", "w_bit": 4, "q_group_size": 32}}
    assert parse_architecture(PLAIN | quantised, "tiny", "").group == 32
    whole = parse_architecture(PLAIN | {"quantization_config": {"quant_method": "gptq", "group_size": -1}}, "tiny", "")
    assert whole.can_split(2)
    assert count_bytes_per_gpu(whole, "gptq", 1) < count_bytes_per_gpu(replace(whole, group=128), "gptq", 1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bits": 8}, "8 bits in groups of 128"),
        ({"group_size": 0}, "groups of 0"),
        ({"group_size": 96}, "no multiples"),
    ],
)
def test_int4_of_another_kind_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ServingError, match=said):
        parse_architecture(PLAIN | {"quantization_config": {"quant_method": "gptq"} | wrong}, "tiny", "")


def test_int4_is_assumed_only_of_weights_in_16_bits() -> None:
    assumed = assume_int4(find_model("Llama-3.1-8B"), "awq")
    assert (assumed.stored, assumed.group, assumed.assumed_int4) == ("awq", 128, True)
    with pytest.raises(ServingError, match="come in FP8 already"):
        assume_int4(find_model("DeepSeek-V3"), "awq")


def test_a_window_counts_only_where_it_is_meant() -> None:
    qwen = PLAIN | {"model_type": "qwen2", "sliding_window": 128}
    assert parse_architecture(qwen, "q", "").windowed == 0
    assert parse_architecture(qwen | {"use_sliding_window": True}, "q", "").windowed == 4
    assert parse_architecture(PLAIN | {"model_type": "mistral", "sliding_window": None}, "m", "").windowed == 0
    named = {"layer_types": ["sliding_attention"] * 3 + ["full_attention"], "sliding_window": 64}
    assert parse_architecture(PLAIN | {"model_type": "gemma2"} | named, "g", "").windowed == 3


def test_the_language_part_of_a_model_that_sees_is_counted_and_the_rest_is_told() -> None:
    config = {"model_type": "gemma3", "text_config": PLAIN | {"model_type": "gemma3_text", "sliding_window": 512}}
    model = parse_architecture(config, "g", "")
    assert "vision" in model.unseen
    assert (model.norms, model.qk_norm) == (4, True)


def test_a_folder_and_its_file_are_the_same_model(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(PLAIN))
    assert find_model(str(folder)) == find_model(str(folder / "config.json"))
    assert (find_model(str(folder)).name, find_model(str(folder)).source) == ("tiny", str(folder))


@pytest.mark.parametrize(("text", "said"), [("{", "no JSON"), ("[]", "holds no object")])
def test_a_file_that_is_no_config_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ServingError, match=said):
        read_architecture(tmp_path / "config.json")


def test_a_name_is_found_in_any_case_and_by_its_source() -> None:
    assert find_model("qwen3-8b") == find_model("Qwen/Qwen3-8B") == find_model("Qwen3-8B")
    with pytest.raises(ServingError, match="Did you mean Qwen3-8B"):
        find_model("Qwen3-8")
    with pytest.raises(ServingError, match=r"cannot be read: No such file"):
        find_model("nowhere/config.json")
