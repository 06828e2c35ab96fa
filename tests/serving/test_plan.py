"""A plan fits or is refused, says what would fit, and holds no secret."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from alphaloom.serving import (
    DEVICES,
    Request,
    ServingPlan,
    build_arguments,
    dump_plan,
    find_device,
    find_model,
    list_models,
    make_plan,
    read_plan,
)
from alphaloom.serving.architecture import assume_int4
from alphaloom.serving.choice import list_gpu_counts, list_precisions
from alphaloom.serving.errors import DeviceLacks, DoesNotFit, ServingError
from alphaloom.serving.memory import compute_memory_budget
from alphaloom.serving.request import summarise_lengths

OF_VLLM = {  # options of vLLM 0.32's `EngineArgs.add_cli_args`
    "model", "served-model-name", "dtype", "quantization", "kv-cache-dtype", "tensor-parallel-size", "max-model-len",
    "max-num-seqs", "max-num-batched-tokens", "gpu-memory-utilization", "enable-prefix-caching",
    "enable-chunked-prefill", "structured-outputs-config", "speculative-config",
}  # fmt: skip  # a table
SMALL = [
    "Llama-3.2-1B",
    "Qwen2.5-7B",
    "Phi-4",
    "Gemma-2-27B",
    "Mixtral-8x7B",
    "gpt-oss-120b",
    "DeepSeek-V3",
    "Llama-3.1-70B",
]
EIGHT = find_model("Llama-3.1-8B")


def flags(name: str, gpu: str, **asked: Any) -> dict[str, Any]:
    return make_plan(Request(find_model(name), **asked), DEVICES[gpu]).flags


def refuses_plan(said: str) -> pytest.RaisesExc[ServingError]:
    """Expect that a file is refused as a plan, and the words."""
    return pytest.raises(ServingError, match=said, check=lambda error: error.code == "plan_unreadable")


requests = st.builds(
    lambda name, context, concurrency, gpus, dtype: Request(
        find_model(name), context, concurrency, gpus, dtype, prompt_tokens=8, reply_tokens=8
    ),
    st.sampled_from(SMALL),
    st.integers(16, 8192),
    st.none() | st.integers(1, 600),
    st.none() | st.integers(1, 8),
    st.sampled_from(["auto", "bfloat16", "fp8"]),
)
gpus_known = st.sampled_from([one for one in DEVICES.values() if one.gpu])


@given(requests, gpus_known)
def test_what_does_not_fit_is_refused_and_nothing_else(request: Request, where: Any) -> None:
    try:
        tried = [
            compute_memory_budget(request, where, n, precision)
            for precision in list_precisions(request, where)
            for n in list_gpu_counts(request, where)
        ]
        plan = make_plan(request, where)
    except DoesNotFit:
        assert all(
            one.weights + one.fixed + one.activations + one.scores + one.sequence * one.wanted > one.usable
            for one in tried
        )
    except ServingError:
        assert where.fp8_tflops is None or request.model.stored == "mxfp4"
    else:
        told = {line.what: line.value for line in plan.arithmetic}
        taken = sum(told[part] for part in ("weights", "fixed overhead", "activations", "scores"))
        whole = told["cache of a sequence"] / 1024 * (request.concurrency or 1)
        planned = told["cache of a planned sequence"] / 1024 * plan.flags["max-num-seqs"]
        assert taken + max(whole, planned) <= told["usable"] + 0.05


@given(st.sampled_from(SMALL), gpus_known, st.integers(16, 8000), st.integers(1, 8000), st.sampled_from([1, 2, 4, 8]))
def test_more_context_never_allows_more_sequences(name: str, where: Any, context: int, more: int, gpus: int) -> None:
    model = find_model(name)
    short = Request(model, context, prompt_tokens=1, reply_tokens=1)
    long = replace(short, context=min(context + more, model.positions))
    one, other = (compute_memory_budget(shape, where, gpus, "bfloat16") for shape in (short, long))
    assert other.sequences <= one.sequences
    assert other.short >= one.short


@given(st.sampled_from(sorted(list_models())), gpus_known, st.integers(1, 8))
def test_tensor_parallelism_divides_what_it_splits(name: str, where: Any, gpus: int) -> None:
    try:
        plan = make_plan(Request(find_model(name), gpus=gpus), where)
    except ServingError:
        return
    model, count = find_model(name), plan.flags["tensor-parallel-size"]
    assert model.heads % count == 0
    assert count <= gpus
    assert model.latent or model.kv_heads % count == 0 or count % model.kv_heads == 0
    assert plan.device.count * plan.device.copies <= gpus


@settings(max_examples=25)
@given(requests, gpus_known)
def test_every_hint_of_a_refusal_holds(request: Request, where: Any) -> None:
    changes = {"context": int, "concurrency": int, "gpus": int, "dtype": str, "kv-dtype": str}
    try:
        make_plan(request, where)
    except DoesNotFit as refused:
        for option, value in re.findall(r"--([a-z-]+) (\w+)(?=[;.])", refused.hint.partition("--gpu ")[0]):
            changed: Any = {option.replace("-", "_"): changes[option](value), "prompt_tokens": 1, "reply_tokens": 1}
            make_plan(replace(request, **changed), where)
    except ServingError:
        pass


def test_a_refusal_says_how_much_is_lacking_and_what_would_fit() -> None:
    with pytest.raises(DoesNotFit) as caught:
        make_plan(Request(find_model("Llama-3.1-70B"), gpus=1, dtype="bfloat16"), DEVICES["h200"])
    message = str(caught.value)
    # 131.42 of weights, 2 + 2.21 of overhead, 2.5 of cache; of 139.7 nine tenths can be used
    assert "12.40 GiB are lacking" in message
    assert "What would fit: --dtype fp8; --gpus 2; --dtype awq (another checkpoint, in INT4)." in message
    assert caught.value.exit_code == 3


def test_the_longest_context_that_fits_is_named_exactly() -> None:
    asked = Request(find_model("Qwen2.5-32B"), context=32_768, gpus=1, dtype="bfloat16")
    with pytest.raises(DoesNotFit) as caught:
        make_plan(asked, DEVICES["h100"])
    longest = int(re.findall(r"--context (\d+)", caught.value.hint)[0])
    assert make_plan(replace(asked, context=longest), DEVICES["h100"]).flags["max-model-len"] == longest
    with pytest.raises(DoesNotFit):
        make_plan(replace(asked, context=longest + 16), DEVICES["h100"])


def test_flags_are_those_of_vllm() -> None:
    draft = find_model("Llama-3.2-1B")
    seen = set(flags("Llama-3.1-8B", "h100", dtype="fp8", kv_dtype="fp8", speculate="draft", draft=draft))
    assert seen == OF_VLLM
    assert flags("Llama-3.1-8B", "l40")["tensor-parallel-size"] == 1
    assert flags("Llama-3.1-8B", "h100")["structured-outputs-config"] == {"backend": "xgrammar"}


def test_speculation_is_written_as_vllm_reads_it() -> None:
    written_for = flags("Llama-3.1-70B", "h200", speculate="draft", draft=find_model("Llama-3.2-1B"))[
        "speculative-config"
    ]
    assert written_for.pop("num_speculative_tokens") in range(1, 9)
    assert written_for == {
        "method": "draft_model",
        "model": "meta-llama/Llama-3.2-1B-Instruct",
        "draft_tensor_parallel_size": 2,
    }
    assert flags("Llama-3.1-8B", "h200", speculate="ngram")["speculative-config"]["method"] == "ngram"


def test_fp8_is_taken_unasked_only_where_16_bits_do_not_fit_and_said() -> None:
    plan = make_plan(Request(find_model("Llama-3.1-70B"), gpus=1), DEVICES["h200"])
    assert plan.flags["quantization"] == "fp8"
    assert "16 bits do not fit" in plan.why
    assert "quantization" not in flags("Llama-3.1-8B", "h200")
    assert "quantization" not in flags("DeepSeek-V3", "h200")  # its weights come in FP8


@pytest.mark.parametrize("asked", [{"dtype": "fp8"}, {"kv_dtype": "fp8"}])
@pytest.mark.parametrize("gpu", ["a100", "a100-40", "cpu"])
def test_fp8_is_refused_where_there_is_none(gpu: str, asked: dict[str, Any]) -> None:
    with pytest.raises(DeviceLacks, match=r"computes in no FP8; allowed: FP8 on h100, h200, l40s"):
        make_plan(Request(EIGHT, **asked), find_device(gpu, 64 if gpu == "cpu" else None))


def test_a_cpu_gets_its_cache_in_whole_gib_by_its_variable() -> None:
    plan = make_plan(Request(EIGHT), find_device("cpu", 64))
    cache = next(line.value for line in plan.arithmetic if line.what == "cache")
    assert plan.environment["VLLM_CPU_KVCACHE_SPACE"] == str(int(cache)) == "35"
    assert "gpu-memory-utilization" not in plan.flags
    assert any("guess" in line for line in plan.assumptions)
    assert make_plan(Request(EIGHT, gpus=4), find_device("cpu", 64)).device.copies == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"context": 200_000}, "reads at most 131,072 tokens"),
        ({"context": 1000}, "longer than the context"),
        ({"speculate": "draft"}, "go together"),
        ({"speculate": "draft", "draft": find_model("Qwen3-0.6B")}, "a draft must speak the same"),
        ({"gpus": 9}, "out of range"),
        ({"utilization": 1.5}, "out of range"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ServingError, match=said) as caught:
        Request(EIGHT, **asked)
    assert caught.value.exit_code == 2


def test_an_unknown_device_and_memory_that_is_known_are_refused() -> None:
    with pytest.raises(ServingError, match="no device is known as 'h300'"):
        find_device("h300")
    with pytest.raises(ServingError, match="--memory-gb is for --gpu cpu"):
        find_device("h200", 80)
    with pytest.raises(ServingError, match="cannot be read"):
        find_device("cpu")


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = make_plan(Request(EIGHT, speculate="ngram"), DEVICES["h200"])
    file = tmp_path / "plan.yaml"
    file.write_text(dump_plan(plan))
    assert read_plan(file) == plan
    command = shlex.split(file.read_text().splitlines()[0].partition("starts: ")[2])
    assert command[3:] == build_arguments(plan)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"environment": {"HF_TOKEN": "hf_x"}}, "names a secret"),
        ({"environment": {"VLLM_API_KEY": "x"}}, "names a secret"),
        ({"environment": {"lower case": "x"}}, "no name of a variable"),
        ({"flags": {"api-key": "x"}}, "does not belong into a plan"),
        ({"flags": {"--model": "x"}}, "no flag"),
        ({"version": 2}, "version"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_plan_with_what_it_may_not_hold_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    held = make_plan(Request(EIGHT), DEVICES["h200"]).model_dump(mode="json") | change
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(held))
    with refuses_plan(said):
        read_plan(file)


@pytest.mark.parametrize("text", ["[", "", "- 1", "model: 1"])
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with refuses_plan(re.escape(str(file))):
        read_plan(file)


def test_arguments_leave_out_what_is_false_and_write_mappings_as_json() -> None:
    plan = make_plan(Request(EIGHT), DEVICES["h200"])
    changed: ServingPlan = plan.model_copy(
        update={"flags": {"model": "m", "enforce-eager": False, "x": True, "y": {"a": 1}}}
    )
    assert build_arguments(changed, port=1) == ["--model", "m", "--x", "--y", '{"a": 1}', "--port", "1"]


def test_gpus_that_a_plan_leaves_over_are_told() -> None:
    assert make_plan(Request(find_model("Llama-3.1-70B"), gpus=3), DEVICES["h200"]).why.endswith(
        "; 1 of the 3 GPUs is not used"
    )
    assert "not used" not in make_plan(Request(find_model("Llama-3.1-70B"), gpus=4), DEVICES["h200"]).why


def test_fp8_is_named_where_only_that_fits_and_16_bits_where_they_decide() -> None:
    large = Request(find_model("Llama-3.1-70B"))
    with pytest.raises(DoesNotFit) as caught:
        make_plan(large, find_device("cpu", 16))
    assert "--gpu h200 --gpus 1 (FP8)" in caught.value.hint
    assert make_plan(replace(large, gpus=1), DEVICES["h200"]).flags["quantization"] == "fp8"
    assert make_plan(large, DEVICES["h200"]).why == "the fewest GPUs that fit in 16 bits: 2"


def test_a_launch_of_few_sequences_says_what_more_gpus_would_hold() -> None:
    large = Request(find_model("Llama-3.1-70B"))
    plan = make_plan(large, DEVICES["h100"])
    assert plan.flags["max-num-seqs"] == 7  # of 1,280 tokens each
    match = re.search(r"it holds 1 sequence of 8,192 tokens at once, 4 GPUs would hold (\d+)$", plan.why)
    assert match
    wider = compute_memory_budget(large, DEVICES["h100"], 4, "bfloat16")
    assert wider.held == int(match.group(1)) >= 4
    assert "holds" not in make_plan(replace(large, concurrency=1), DEVICES["h100"]).why


def test_sequences_at_once_follow_the_lengths_that_are_asked() -> None:
    large = Request(find_model("Llama-3.1-70B"), prompt_tokens=500, reply_tokens=100)
    plan = make_plan(large, DEVICES["h100"])
    told = {line.what: line for line in plan.arithmetic}
    assert told["taken"].value == int(told["cache"].value * 1024 / told["cache of a planned sequence"].value)
    assert "600 tokens: prompt 500 and reply 100, as given" in told["cache of a planned sequence"].how
    longer = make_plan(replace(large, prompt_tokens=4000), DEVICES["h100"])
    assert longer.flags["max-num-seqs"] < plan.flags["max-num-seqs"]
    assert longer.flags["max-model-len"] == plan.flags["max-model-len"] == 8192


def test_recorded_lengths_plan_for_nearly_all_calls_and_hold_the_longest() -> None:
    recorded = summarise_lengths("run 1", [(1000 + n, 100) for n in range(99)] + [(9000, 1000), (0, 5), (7, 0)])
    assert (recorded.calls, recorded.prompt, recorded.reply) == (100, 1050, 100)
    assert (recorded.planned, recorded.longest) == (1194, 10_000)
    request = Request(EIGHT, prompt_tokens=recorded.prompt, reply_tokens=recorded.reply, recorded=recorded)
    plan = make_plan(request, DEVICES["h100"])
    assert plan.flags["max-model-len"] == 10_000
    told = {line.what: line.how for line in plan.arithmetic}
    expected = "1,194 tokens: 95% of the 100 calls of run 1 are no longer"
    assert told["cache of a planned sequence"] == expected
    with pytest.raises(ServingError, match="no model call with tokens"):
        summarise_lengths("run 2", [(0, 0)])


def test_int4_needs_no_flag_where_the_checkpoint_says_it_and_one_where_it_is_assumed() -> None:
    assumed = assume_int4(EIGHT, "awq")
    plan = make_plan(Request(assumed), DEVICES["l40s"])
    assert plan.flags["quantization"] == "awq"
    assert "holds 16 bits: name a checkpoint in AWQ with --source" in plan.model.note
    told = {line.what: line for line in plan.arithmetic}
    assert told["weights"].value == pytest.approx(5.33, abs=0.01)
    real = make_plan(Request(replace(assumed, assumed_int4=False)), DEVICES["l40s"])
    assert "quantization" not in real.flags
    assert "reads the quantisation from the checkpoint" in real.model.note
    with pytest.raises(ServingError, match="smaller than FP8"):
        make_plan(Request(assumed, dtype="fp8"), DEVICES["l40s"])


@pytest.mark.parametrize(("gpu", "possible"), [("h100", True), ("h200", True), ("a100", False), ("l40", False)])
def test_confidential_computing_is_told_with_its_source(gpu: str, possible: bool) -> None:
    said = make_plan(Request(EIGHT), DEVICES[gpu]).device.confidential
    assert ("arXiv 2409.03992" in said) == possible
    assert ("has no mode for it" in said) != possible
    if possible:
        several = make_plan(Request(find_model("Llama-3.1-70B")), DEVICES[gpu]).device
        assert "cost on several GPUs is not measured" in several.confidential


def test_a_file_of_models_is_told_from_a_plan(tmp_path: Path) -> None:
    (file := tmp_path / "router.yaml").write_text("models: {small: {model: hosted_vllm/small}}\n")
    with refuses_plan("is no plan: it names models, as a router"):
        read_plan(file)


def test_only_plans_of_several_gpus_assume_something_of_their_link() -> None:
    said = [" ".join(make_plan(Request(EIGHT, gpus=n), DEVICES["h100"]).assumptions) for n in (1, 8)]
    assert make_plan(Request(EIGHT, gpus=8), DEVICES["h100"]).device.count > 1
    assert ["an all-reduce over NVLink 4" in line for line in said] == [False, True]
