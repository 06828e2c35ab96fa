"""Power, energy and price follow from the maker's limit, the assumed shares and the given price."""

from __future__ import annotations

import pytest

from alphaloom.serving import DEVICES, Request, ServingError, find_device, find_model, make_plan
from alphaloom.serving.memory import compute_memory_budget
from alphaloom.serving.speed import estimate_first_token, estimate_output_step

EIGHT = find_model("Llama-3.1-8B")
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
    assert plan.predictions["watts_full"] == pytest.approx(0.86 * 700)
    assert plan.predictions["joules_per_token"] == pytest.approx(0.86 * 700 / rate, abs=0.001)


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
