"""Predicted times are the roofline's, power and price the makers', reckoned by hand from stated efficiencies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alphaloom.serving import DEVICES, Request, ServingError, find_device, find_model, make_plan
from alphaloom.serving.choice import choose_launch
from alphaloom.serving.memory import MemoryBudget, compute_memory_budget
from alphaloom.serving.speed import (
    choose_speculation,
    count_attention_operations,
    count_kernels,
    estimate_first_token,
    estimate_output_step,
)
from alphaloom.serving.tensors import count_active_parameters

EIGHT = find_model("Llama-3.1-8B")
HEAD = 128_256 * 4096


def on(gpu: str, request: Request, gpus: int = 1, precision: str = "bfloat16") -> MemoryBudget:
    return compute_memory_budget(request, DEVICES[gpu], gpus, precision)


def test_a_token_costs_the_reading_of_weights_and_cache() -> None:
    step = estimate_output_step(EIGHT, DEVICES["h100"], on("h100", Request(EIGHT)), 1000)
    read = 2 * (8_030_261_248 - HEAD) + 1000 * 131_072  # the embedding is looked up, not read
    assert step.memory_s == pytest.approx(read / (3.35e12 * 0.85))
    assert step.compute_s == pytest.approx(2 * (8_030_261_248 - HEAD) / (989.4e12 * 0.65))
    assert step.kernels == 32 * (6 + 2 + 3) + 12  # attention, norms, MLP; once a step
    assert step.total_s == pytest.approx(step.memory_s + 364 * 3.4e-6 + 0.3e-3)
    assert step.bound == "memory bandwidth"


def test_a_prompt_costs_two_operations_for_each_parameter_and_token() -> None:
    step = estimate_first_token(Request(EIGHT, prompt_tokens=1024), DEVICES["h100"], on("h100", Request(EIGHT)))
    matrices = 2 * ((8_030_261_248 - 2 * HEAD) * 1024 + HEAD)  # the head works once, for the last token
    attention = 32 * 4 * 32 * 128 * 1024 * 1025 / 2
    assert step.compute_s == pytest.approx((matrices + attention) / (989.4e12 * 0.65))
    assert step.bound == "compute"


def test_fp8_halves_both_on_a_gpu_that_has_it() -> None:
    wide, narrow = (on("h100", Request(EIGHT), precision=precision) for precision in ("bfloat16", "fp8"))
    slow, fast = (estimate_first_token(Request(EIGHT), DEVICES["h100"], one).compute_s for one in (wide, narrow))
    assert slow / fast == pytest.approx(1978.9 / 989.4)


def test_all_reduces_cost_latency_and_bandwidth_of_the_link() -> None:
    model = find_model("Llama-3.1-70B")
    for gpu, latency, link in (("h100", 10e-6, 450e9), ("a100", 12e-6, 300e9), ("l40s", 40e-6, 32e9)):
        step = estimate_output_step(model, DEVICES[gpu], on(gpu, Request(model), 4), 0, 8)
        assert step.link_s == pytest.approx(160 * (latency + 2 * 3 / 4 * 8 * 8192 * 2 / link))


def test_a_long_prompt_is_read_in_chunks_each_with_its_own_costs() -> None:
    model = find_model("Qwen2.5-32B")
    request = Request(model, prompt_tokens=7000)  # four steps of 2,048 tokens
    step = estimate_first_token(request, DEVICES["l40s"], on("l40s", request, 2))
    assert step.host_s == pytest.approx(4 * 0.3e-3)
    assert step.kernels == 4 * (64 * 11 + 12)
    assert step.link_s == pytest.approx(128 * (4 * 40e-6 + 2 * 1 / 2 * 7000 * 5120 * 2 / 32e9))


def test_published_speeds_are_about_what_is_predicted() -> None:
    """SGLang's documentation: Llama-3.1-8B on an H100, MT-Bench, one stream, no drafts: 158 tokens/s."""
    step = estimate_output_step(EIGHT, DEVICES["h100"], on("h100", Request(EIGHT)), 500)
    assert 1 / step.total_s == pytest.approx(158, rel=0.1)


def test_many_small_kernels_bound_a_large_mixture() -> None:
    """Without them DeepSeek-V3 would take 3 ms a token on eight H200, which no server reaches."""
    model = find_model("DeepSeek-V3")
    step = estimate_output_step(model, DEVICES["h200"], on("h200", Request(model), 8, "fp8"), 1152)
    dense, mixture = 2 + 12 + 2 + 3 + 2, 2 + 12 + 2 + 8 + 2 + 4 + 2
    assert step.kernels == 12 + 3 * dense + 58 * mixture
    assert step.all_reduces == 122
    assert step.launch_s > step.memory_s + step.link_s
    assert 0.008 < step.total_s < 0.012


@pytest.mark.parametrize("name", ["Qwen3-8B", "Gemma-2-9B", "gpt-oss-20b"])
def test_each_layer_adds_its_kernels(name: str) -> None:
    extra = {"Qwen3-8B": 36 * (2 + 6 + 2 + 3), "Gemma-2-9B": 42 * (4 + 6 + 3), "gpt-oss-20b": 24 * (2 + 6 + 8)}
    assert count_kernels(find_model(name), "bfloat16") == 12 + extra[name]


def test_many_sequences_meet_all_experts() -> None:
    model = find_model("Mixtral-8x7B")
    experts = 32 * 8 * 3 * 4096 * 14_336
    rest = 46_702_792_704 - experts - 32_000 * 4096
    assert count_active_parameters(model) == pytest.approx(rest + experts * 2 / 8)
    assert count_active_parameters(model, 2) == pytest.approx(rest + experts * (1 - 0.75**2))
    assert count_active_parameters(model, 1000) == pytest.approx(rest + experts)


def test_a_window_saves_attention_beyond_it() -> None:
    mistral = find_model("Mistral-7B-v0.1")
    per = 2 * 32 * 2 * 128 * 32
    assert count_attention_operations(mistral, 4096) == pytest.approx(per * 4096 * 4097 / 2)
    seen = sum(min(token, 4096) for token in range(1, 6001))
    assert count_attention_operations(mistral, 6000) == pytest.approx(per * seen)


def test_speculation_keeps_the_geometric_sum_and_picks_the_least_depth_near_the_best() -> None:
    request = Request(EIGHT, speculate="draft", draft=find_model("Llama-3.2-1B"), acceptance=0.8)
    one = on("h200", request)
    deep = choose_speculation(request, DEVICES["h200"], one, 1000)
    assert deep is not None
    assert deep.tokens == pytest.approx((1 - 0.8 ** (deep.depth + 1)) / (1 - 0.8))
    draft = estimate_output_step(find_model("Llama-3.2-1B"), DEVICES["h200"], one, 1000).total_s
    checked = estimate_output_step(EIGHT, DEVICES["h200"], one, 1000, tokens_each=deep.depth + 1).total_s
    assert deep.per_token_s == pytest.approx((checked + deep.depth * draft) / deep.tokens)
    assert 1 < deep.gain < deep.tokens


def test_speculation_that_does_not_pay_is_said() -> None:
    plan = make_plan(Request(EIGHT, speculate="ngram", acceptance=0.01), DEVICES["h200"])
    told = {line.what: line for line in plan.arithmetic}
    assert "does not pay" in told["speed-up"].how
    assert plan.predictions["speculative_tokens"] == 1


def test_gpus_are_joined_by_nvlink_and_copied_over_pcie() -> None:
    model = find_model("Qwen2.5-32B")
    fast, slow = (choose_launch(Request(model, gpus=8), DEVICES[gpu]) for gpu in ("h100", "l40s"))
    assert (fast.budget.gpus, fast.copies) == (8, 1)
    assert (slow.budget.gpus, slow.copies) == (2, 4)
    small = choose_launch(Request(find_model("Llama-3.2-1B"), gpus=8), DEVICES["h100"])
    assert small.budget.gpus < 8  # all-reduces would eat what splitting saves


def test_more_in_the_cache_never_makes_a_token_faster() -> None:
    one = on("h200", Request(EIGHT))
    times = [estimate_output_step(EIGHT, DEVICES["h200"], one, length, 8).total_s for length in (1, 100, 1000, 10_000)]
    assert times == sorted(times)
    halved = estimate_output_step(EIGHT, DEVICES["h200"], replace(one, kv_bytes=1), 10_000, 8).memory_s
    assert halved < estimate_output_step(EIGHT, DEVICES["h200"], one, 10_000, 8).memory_s


LIMITS = {"h100": 700, "h200": 700, "a100": 400, "a100-40": 400, "l40s": 350, "l40": 300}


def test_each_gpu_has_the_power_limit_of_its_datasheet() -> None:
    assert {one.name: one.watts for one in DEVICES.values() if one.gpu} == LIMITS


def test_energy_is_power_over_tokens_with_their_prompts_read() -> None:
    request = Request(EIGHT, prompt_tokens=2000, reply_tokens=500)
    plan = make_plan(request, DEVICES["h100"])
    budget = compute_memory_budget(request, DEVICES["h100"], 1, "bfloat16")
    count = plan.flags["max-num-seqs"]
    first = estimate_first_token(request, DEVICES["h100"], budget).total_s
    step = estimate_output_step(EIGHT, DEVICES["h100"], budget, 2250, count).total_s
    rate = count * 500 / (count * first + 500 * step)
    assert plan.predictions["tokens_per_second_with_prompts"] == pytest.approx(rate, abs=0.001)
    assert plan.predictions["watts_full"] == pytest.approx(0.99 * 700)
    assert plan.predictions["joules_per_token"] == pytest.approx(0.99 * 700 / rate, abs=0.001)


def test_a_price_is_only_what_is_given() -> None:
    assert "usd_per_million_tokens" not in make_plan(Request(EIGHT), DEVICES["h100"]).predictions
    plan = make_plan(Request(find_model("Llama-3.1-70B"), usd_per_hour=3.6), DEVICES["h100"])
    rate = float(plan.predictions["tokens_per_second_with_prompts"])
    assert plan.device.count == 2
    assert plan.predictions["usd_per_million_tokens"] == pytest.approx(2 * 3.6 / 3600 / rate * 1e6, abs=0.001)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ServingError, match="a price is above 0"):
            Request(EIGHT, usd_per_hour=wrong)


def test_a_processor_has_no_power_figure_and_a_price_if_given() -> None:
    plan = make_plan(Request(EIGHT, usd_per_hour=0.5), find_device("cpu", 64))
    assert "watts_full" not in plan.predictions
    assert float(plan.predictions["usd_per_million_tokens"]) > 0


def test_what_is_assumed_is_said_in_the_line() -> None:
    told = {line.what: line.how for line in make_plan(Request(EIGHT), DEVICES["l40"]).arithmetic}
    assert "assumed" in told["power, full"]
    assert "1 x 300 W (the maker's limit)" in told["power, 1 at once"]
    assert "assumed" in told["time per output token, 1 at once"]
