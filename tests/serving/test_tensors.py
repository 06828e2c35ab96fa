"""Parameters, weights and cache agree with what is published and with sums done by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alphaloom.serving import DEVICES, Architecture, Request, find_model, list_models, make_plan
from alphaloom.serving.architecture import assume_int4
from alphaloom.serving.devices import GIB
from alphaloom.serving.memory import CacheRules, count_sequence_bytes, count_token_bytes
from alphaloom.serving.tensors import count_active_parameters, count_bytes_per_gpu, count_parameters, list_tensors

PUBLISHED = {  # the totals of the models' own pages on Hugging Face (safetensors), or of their reports
    "Llama-3.1-8B": 8_030_261_248,
    "Llama-3.1-70B": 70_553_706_496,
    "Llama-3.1-405B": 405_853_388_800,
    "Llama-3.2-1B": 1_235_814_400,
    "Llama-3.2-3B": 3_212_749_824,
    "Qwen2.5-0.5B": 494_032_768,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen2.5-32B": 32_763_876_352,
    "Qwen2.5-72B": 72_706_203_648,
    "Qwen3-0.6B": 596_049_920,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-30B-A3B": 30_532_122_624,
    "Qwen3-235B-A22B": 235_093_634_560,
    "Mistral-7B-v0.1": 7_241_732_096,
    "Mixtral-8x7B": 46_702_792_704,
    "Gemma-2-9B": 9_241_705_984,
    "Gemma-2-27B": 27_227_128_320,
    "Gemma-3-1B": 999_885_952,
    "DeepSeek-V3": 671_026_419_200,
    "Phi-4": 14_659_507_200,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
}
CACHED = {  # bytes of a token on one GPU, in 16 bits: layers x (keys and values) x heads x size x 2 bytes
    "Llama-3.1-8B": 32 * 2 * 8 * 128 * 2,
    "Llama-3.1-70B": 80 * 2 * 8 * 128 * 2,
    "Llama-3.1-405B": 126 * 2 * 8 * 128 * 2,
    "Llama-3.2-1B": 16 * 2 * 8 * 64 * 2,
    "Qwen2.5-7B": 28 * 2 * 4 * 128 * 2,
    "Qwen2.5-72B": 80 * 2 * 8 * 128 * 2,
    "Qwen3-30B-A3B": 48 * 2 * 4 * 128 * 2,
    "Mistral-7B-v0.1": 32 * 2 * 8 * 128 * 2,
    "Mixtral-8x7B": 32 * 2 * 8 * 128 * 2,
    "Gemma-2-9B": 42 * 2 * 8 * 256 * 2,
    "Gemma-2-27B": 46 * 2 * 16 * 128 * 2,
    "DeepSeek-V3": 61 * (512 + 64) * 2,
    "Phi-4": 40 * 2 * 10 * 128 * 2,
    "gpt-oss-20b": 24 * 2 * 8 * 64 * 2,
    "gpt-oss-120b": 36 * 2 * 8 * 64 * 2,
    "Qwen2.5-32B": 64 * 2 * 8 * 128 * 2,
    "Qwen3-8B": 36 * 2 * 8 * 128 * 2,
}
# GPUs and GiB of weights on each, for H100, H200, A100 80 GB, L40S: parameters x 2 / GPUs / 2**30, FP8 where said
FEWEST = {
    "Llama-3.1-8B": ((1, 14.96), (1, 14.96), (1, 14.96), (1, 14.96)),
    "Llama-3.1-70B": ((2, 65.71), (2, 65.71), (2, 65.71), (4, 32.85)),
    "Llama-3.2-1B": ((1, 2.30), (1, 2.30), (1, 2.30), (1, 2.30)),
    "Qwen2.5-7B": ((1, 14.19), (1, 14.19), (1, 14.19), (1, 14.19)),
    "Qwen2.5-32B": ((1, 61.03), (1, 61.03), (1, 61.03), (2, 30.51)),
    "Qwen2.5-72B": ((4, 33.86), (2, 67.71), (4, 33.86), (4, 33.86)),
    "Qwen3-8B": ((1, 15.26), (1, 15.26), (1, 15.26), (1, 15.26)),
    "Qwen3-30B-A3B": ((1, 56.87), (1, 56.87), (1, 56.87), (2, 28.44)),
    "Mixtral-8x7B": ((2, 43.50), (1, 86.99), (2, 43.50), (4, 21.75)),
    "Gemma-2-27B": ((1, 50.71), (1, 50.71), (1, 50.71), (2, 25.36)),
    "Phi-4": ((1, 27.31), (1, 27.31), (1, 27.31), (1, 27.31)),
    "gpt-oss-120b": ((1, 60.77), (1, 60.77), (1, 60.77), (2, 30.38)),
}
GPUS = ("h100", "h200", "a100", "l40s")


def test_every_model_of_the_table_is_held_to_its_published_size() -> None:
    assert set(list_models()) == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str) -> None:
    assert count_parameters(find_model(name)) == pytest.approx(PUBLISHED[name], rel=1e-6)


@pytest.mark.parametrize(("name", "billion"), [("DeepSeek-V3", 37), ("Qwen3-30B-A3B", 3.3), ("Qwen3-235B-A22B", 22)])
def test_parameters_at_work_are_those_published(name: str, billion: float) -> None:
    """Makers count the embedding, which is looked up and not multiplied."""
    model = find_model(name)
    assert count_active_parameters(model) + model.vocab * model.hidden == pytest.approx(billion * 1e9, rel=0.02)


def test_gpt_oss_is_as_small_as_its_files() -> None:
    """OpenAI's model card: 12.8 GiB and 60.8 GiB, MXFP4 for the experts' matrices."""
    sizes = [count_bytes_per_gpu(find_model(name), "bfloat16", 1) / 2**30 for name in ("gpt-oss-20b", "gpt-oss-120b")]
    assert sizes == pytest.approx([12.8, 60.8], rel=0.01)


@pytest.mark.parametrize("name", CACHED)
def test_a_token_takes_what_was_reckoned_by_hand(name: str) -> None:
    assert count_token_bytes(find_model(name), 2) == CACHED[name]
    assert count_token_bytes(find_model(name), 1) * 2 == CACHED[name]


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", FEWEST)
def test_as_few_gpus_are_taken_as_hold_the_weights(name: str, gpu: str) -> None:
    count, weights = FEWEST[name][GPUS.index(gpu)]
    plan = make_plan(Request(find_model(name)), DEVICES[gpu])
    told = {line.what: line.value for line in plan.arithmetic}
    assert (plan.device.count, plan.flags["tensor-parallel-size"]) == (count, count)
    assert told["weights"] == pytest.approx(weights, rel=0.005)
    assert told["cache of a token"] * 1024 * count == CACHED[name]  # none has more GPUs than heads of keys and values


def test_fp8_halves_matrices_and_not_embeddings() -> None:
    model = find_model("Llama-3.1-8B")
    embeddings, norms = 2 * 128_256 * 4096, 65 * 4096
    matrices = 8_030_261_248 - embeddings - norms
    assert count_bytes_per_gpu(model, "fp8", 1) == matrices + 2 * (embeddings + norms)


@pytest.mark.parametrize(
    ("name", "gigabytes"), [("Llama-3.1-8B", 5.73), ("Llama-3.1-70B", 39.77), ("Qwen2.5-7B", 5.57)]
)
def test_int4_is_as_small_as_published_checkpoints(name: str, gigabytes: float) -> None:
    """Sizes of the safetensors of hugging-quants' AWQ of Llama 3.1 and of Qwen2.5-7B-Instruct-AWQ, group size 128."""
    model = assume_int4(find_model(name), "awq")
    assert count_bytes_per_gpu(model, "awq", 1) / 1e9 == pytest.approx(gigabytes, rel=0.002)


def test_int4_counts_a_scale_and_a_zero_for_each_group() -> None:
    model = assume_int4(find_model("Llama-3.1-8B"), "gptq")
    wide = 2 * 128_256 * 4096 + 65 * 4096
    matrices = 8_030_261_248 - wide
    assert count_bytes_per_gpu(model, "gptq", 1) == matrices // 2 + matrices // 128 * 5 // 2 + 2 * wide
    assert count_bytes_per_gpu(replace(model, group=32), "gptq", 1) > count_bytes_per_gpu(model, "gptq", 1)


def test_tensor_parallelism_cuts_no_group_of_int4() -> None:
    """29,568 is 231 groups of 128: Qwen had to pad its INT4 checkpoints of 72B before vLLM could split them."""
    plain = find_model("Qwen2.5-72B")
    assert plain.can_split(4)
    assert not assume_int4(plain, "gptq").can_split(2)
    assert replace(assume_int4(plain, "gptq"), intermediate=29_696).can_split(8)


def test_two_gpus_split_all_but_the_norms() -> None:
    model = find_model("Llama-3.1-8B")
    norms = 65 * 4096
    assert count_bytes_per_gpu(model, "bfloat16", 2) == 8_030_261_248 - norms + 2 * norms


def test_key_heads_are_copied_where_there_are_more_gpus_than_heads() -> None:
    model = find_model("Qwen2.5-7B")  # 28 heads, 4 of keys and values
    assert [count_token_bytes(model, 2, gpus) for gpus in (1, 2, 4)] == [57_344, 28_672, 14_336]
    assert not model.can_split(8)
    assert not model.can_split(7)
    wide = find_model("Qwen3-235B-A22B")  # 64 heads, 4 of keys and values
    assert count_token_bytes(wide, 2, 8) == count_token_bytes(wide, 2, 4) == 94 * 2 * 128 * 2
    (keys,) = [one for one in list_tensors(wide) if one.name == "keys and values"]
    assert [keys.count_rows(gpus, 4) for gpus in (1, 2, 4, 8)] == [512, 256, 128, 128]


def test_heads_and_the_padded_vocabulary_must_divide() -> None:
    """Phi-4 has 40 heads, 10 of keys and values, and 100,352 rows of vocabulary."""
    assert [gpus for gpus in range(1, 9) if find_model("Phi-4").can_split(gpus)] == [
        1,
        2,
    ]  # not 4: 10 heads; not 5: the rows
    assert [gpus for gpus in range(1, 9) if find_model("Llama-3.1-8B").can_split(gpus)] == [1, 2, 4, 8]


def test_a_compressed_key_is_on_every_gpu() -> None:
    model = find_model("DeepSeek-V3")
    assert count_token_bytes(model, 2, 8) == count_token_bytes(model, 2, 1) == 70_272
    assert sum(one.numbers for one in list_tensors(model) if one.extra) == 61 * 128 * 256 * 512


def test_a_window_bounds_the_cache() -> None:
    rules = CacheRules(2, 16, 2048, 1)
    mistral, page = find_model("Mistral-7B-v0.1"), 2 * 8 * 128 * 2 * 16
    assert count_sequence_bytes(mistral, 4096, rules) == 32 * (4096 // 16 + 1) * page
    assert count_sequence_bytes(mistral, 32_768, rules) == 32 * ((4096 - 1 + 2 * 2048 + 15) // 16 + 1) * page


def test_layers_of_two_kinds_are_dealt_out_in_groups_and_padded() -> None:
    """Gemma 3 1B: 4 layers see everything, 22 a window of 512: six groups of four, two of them padded."""
    rules, page = CacheRules(2, 16, 2048, 1), 2 * 256 * 2 * 16
    bounded = (512 - 1 + 2 * 2048 + 15) // 16 + 1
    assert count_sequence_bytes(find_model("Gemma-3-1B"), 32_768, rules) == (1 * 2048 + 6 * bounded) * 4 * page
    both = count_sequence_bytes(find_model("Gemma-2-9B"), 8192, rules)  # 21 and 21 layers: two groups
    assert both == 21 * (512 + (4096 - 1 + 4096 + 15) // 16 + 1) * 2 * 8 * 256 * 2 * 16


def test_vllm_itself_counts_as_many_sequences() -> None:
    """At its start vLLM 0.32 on a CPU printed "Maximum concurrency": 2048.00x, 224.44x, and with a draft 409.56x."""
    plain = Architecture("plain", "", "llama", 256, 4, 4, 2, 64, 512, 258, 2048)
    rules = CacheRules(2, 128, 1024, 1, steps=1)
    assert 4 * GIB / count_sequence_bytes(plain, 1024, rules) == 2048
    mixed = Architecture("mixed", "", "gemma3_text", 128, 13, 2, 1, 64, 256, 258, 4096, window=256, windowed=11)
    rules = CacheRules(2, 128, 2048, 1, steps=1)
    assert 2 * GIB / count_sequence_bytes(mixed, 4096, rules) == pytest.approx(224.44, abs=0.005)
    draft, rules = replace(plain, layers=1), CacheRules(2, 128, 2000, 1, steps=1)
    both = count_sequence_bytes(plain, 2000, rules) + count_sequence_bytes(draft, 2000, rules)
    assert 2 * GIB / both == pytest.approx(409.56, abs=0.05)
