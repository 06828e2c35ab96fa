"""What is charged lies between what is certain and what is possible, whatever a server tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.router import ModelSettings, NoModel, Task
from alphaloom.router.calls.prices import (
    Charges,
    TokenUsage,
    bound_tokens_below,
    count_charged_tokens,
    find_listing,
    find_price,
    read_usage,
)
from alphaloom.router.calls.replies import HedgedAttempt, ModelAnswer

SENT, WORST = "a prompt of five words, and more", HedgedAttempt("m", "", 60, 100, 1.0)
anything = st.one_of(
    st.integers(),
    st.floats(allow_nan=True),
    st.none(),
    st.text(max_size=5),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
)


def told(prompt: Any, completion: Any, cached: Any = None, written: Any = None) -> Any:
    details = {"cached_tokens": cached, "cache_creation_tokens": written}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}


def model(**settings: Any) -> ModelSettings:
    return ModelSettings.model_validate({"model": "openai/unknown", **settings})


@given(prompt=anything, completion=anything, cached=anything, written=anything, text=st.text(max_size=100))
def test_no_usage_moves_a_charge_out_of_what_is_possible(
    prompt: Any, completion: Any, cached: Any, written: Any, text: str
) -> None:
    usage = read_usage(told(prompt, completion, cached, written), SENT, text, WORST)
    assert bound_tokens_below(SENT) <= usage.tokens_in <= WORST.tokens_in
    assert min(bound_tokens_below(text), WORST.tokens_out) <= usage.tokens_out <= WORST.tokens_out
    assert 0 <= usage.cached + usage.written <= usage.tokens_in
    assert min(usage.cached, usage.written) >= 0


@pytest.mark.parametrize(
    ("usage", "text", "found"),
    [
        (told(40, 17), "x" * 50, TokenUsage(40, 17)),
        (told(40, 90), "x" * 50, TokenUsage(40, 90)),  # it thought, and did not say so
        (told(10**12, 10**12, 10**12), "x", TokenUsage(60, 100)),
        (told(40, 0), "x" * 50, TokenUsage(count_charged_tokens(SENT), 26)),
        (told(-1, 17), "x" * 50, TokenUsage(count_charged_tokens(SENT), 26)),
        (told(0, 0), "", TokenUsage(count_charged_tokens(SENT), 1)),
        ({}, "x" * 50, TokenUsage(count_charged_tokens(SENT), 26)),
        (told(40, 17, 30, 5), "x", TokenUsage(40, 17, 30, 5)),
        (told(40, 17, 41), "x", TokenUsage(40, 17)),
        (told(40, 17, 30, 30), "x", TokenUsage(40, 17)),
    ],
)
def test_a_usage_is_believed_where_it_can_be_true(usage: Any, text: str, found: TokenUsage) -> None:
    assert read_usage(usage, SENT, text, WORST) == found


def cost(settings: ModelSettings, cached: int = 0, written: int = 0) -> float:
    charges = Charges({"m": settings})
    return charges.charge(ModelAnswer("", "stop", 1000, 0, "m", cached, written)).cost_usd


def test_cached_tokens_cost_what_the_list_says_of_them() -> None:
    gpt, claude = model(model="openai/gpt-4o"), model(model="anthropic/claude-sonnet-4-5")
    assert cost(gpt, 800) == pytest.approx(200 * 2.5e-6 + 800 * 1.25e-6)
    assert cost(claude, 600, 300) == pytest.approx(100 * 3e-6 + 600 * 3e-7 + 300 * 3.75e-6)
    assert cost(model(model="deepseek/deepseek-chat"), 0, 1000) == pytest.approx(1000 * 2.8e-7), "written costs no less"


def test_cached_tokens_cost_what_the_settings_say_of_them_and_as_any_other_where_they_do_not() -> None:
    priced = {"model": "openai/gpt-4o", "input_cost_per_mtok": 2.0, "output_cost_per_mtok": 8.0}
    assert cost(model(**priced), 1000) == pytest.approx(2e-3)
    assert cost(model(**priced, cached_input_cost_per_mtok=0.5), 1000) == pytest.approx(5e-4)
    assert cost(model(place="local"), 1000) == 0
    claude = {"model": "anthropic/claude-sonnet-4-5", "input_cost_per_mtok": 2.0, "output_cost_per_mtok": 8.0}
    assert cost(model(**claude), written=1000) == pytest.approx(1000 * 2e-6 * 1.25), "as the list has it of a write"
    for wrong in ({"cached_input_cost_per_mtok": 0.5}, priced | {"cached_input_cost_per_mtok": 3.0}):
        with pytest.raises(ValueError, match="cached_input_cost_per_mtok stands beside"):
            model(**wrong)


@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"])
def test_no_share_of_cached_tokens_costs_more_than_the_worst(name: str, task: Callable[..., Task]) -> None:
    charges = Charges({"m": model(model=name)})
    worst = charges.bound_cost("m", task(), [{"role": "user", "content": "x" * 400_000}])
    assert worst.tokens_in > 400_000
    for cached, written in ((0, 0), (worst.tokens_in, 0), (0, worst.tokens_in), (9, 9)):
        answer = ModelAnswer("", "stop", worst.tokens_in, worst.tokens_out, "m", cached, written)
        assert charges.charge(answer).cost_usd <= worst.cost_usd
    assert find_price(model(model=name)) is not None


def test_thoughts_cost_what_the_list_says_of_them() -> None:
    name = "dashscope/qwen-turbo"
    assert find_price(model(model=name)) == (
        find_listing(name)["input_cost_per_token"],
        find_listing(name)["output_cost_per_reasoning_token"],
    )


@pytest.mark.parametrize(
    "name", ["acme/gpt-4o", "hosted_vllm/gpt-4o", "acme/claude-sonnet-4-5", "openrouter/acme/gpt-4o"]
)
def test_the_price_of_one_provider_is_not_that_of_another(name: str) -> None:
    assert find_price(model(model=name)) is None
    with pytest.raises(NoModel, match="the price") as told:
        Charges({"m": model(model=name)}).require_price("m")
    assert "input_cost_per_mtok" in str(told.value.record())


@pytest.mark.parametrize(
    "name",
    ["gpt-4o", "openai/gpt-4o", "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0", "vertex_ai/gemini-2.5-flash"],
)
def test_a_provider_is_known_by_each_of_its_names(name: str) -> None:
    assert find_price(model(model=name)) is not None


def test_a_model_elsewhere_that_the_list_gives_no_price_is_refused_until_the_settings_say_that_it_is_free() -> None:
    free: dict[str, Any] = {"model": "vertex_ai/meta/llama3-405b-instruct-maas"}
    with pytest.raises(NoModel, match="the price"):
        Charges({"m": model(**free)}).require_price("m")
    free |= {"input_cost_per_mtok": 0, "output_cost_per_mtok": 0}
    assert Charges({"m": model(**free)}).require_price("m") == (0.0, 0.0)


def test_a_fee_for_each_request_leaves_a_model_unpriced() -> None:
    assert find_price(ModelSettings(model="perplexity/sonar")) is None
    priced = ModelSettings(model="perplexity/sonar", input_cost_per_mtok=13.0, output_cost_per_mtok=1.0)
    assert find_price(priced) == (13e-6, 1e-6)
