import asyncio
import math
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from alphaloom.ledger import SettingsError, read_settings
from alphaloom.serving import Request, ServingPlan, find_device, find_model, make_plan
from alphaloom.serving.errors import GatewayError, QuotaReached
from alphaloom.serving.gateway import GatewaySettings
from alphaloom.serving.gateway.fair_scheduler import FairScheduler
from alphaloom.serving.gateway.tenants import FairnessSettings, QuotaMeter, TenantSettings

asked = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50), st.floats(0, 40)), max_size=30)


@given(asked=asked, most=st.integers(50, 120))
def test_no_sixty_seconds_hold_more_tokens_than_the_quota(asked: list[tuple[int, int, float]], most: int) -> None:
    meter, now = QuotaMeter(TenantSettings(tokens_per_minute=most)), 0.0
    begun: list[tuple[float, int]] = []
    for worst, unused, gap in asked:
        now += gap
        now += meter.wait_seconds(worst, now) + 1e-9
        assert meter.wait_seconds(worst, now) == 0
        take = meter.take(worst, now)
        took = max(0, worst - unused)
        meter.settle(take, took)
        begun.append((now, took))
    for start, _ in begun:
        assert sum(tokens for at, tokens in begun if start <= at < start + 60) <= most


@given(asked=asked)
def test_a_wait_is_no_longer_than_it_must_be(asked: list[tuple[int, int, float]]) -> None:
    meter, now = QuotaMeter(TenantSettings(tokens_per_minute=60)), 0.0
    for worst, _, gap in asked:
        now += gap
        wait = meter.wait_seconds(worst, now)
        if wait > 1e-6:
            assert meter.wait_seconds(worst, now + wait - 1e-6) > 0
        now += wait + 1e-9
        meter.settle(meter.take(worst, now), worst)


def test_calls_at_once_end_only_with_a_call() -> None:
    meter = QuotaMeter(TenantSettings(calls=1))
    take = meter.take(5, 0.0)
    assert math.isinf(meter.wait_seconds(5, 1e9))
    meter.settle(take, 5)
    assert meter.wait_seconds(5, 0.0) == 0


def test_a_tenant_without_a_setting_has_the_default() -> None:
    settings = FairnessSettings(places=1, tenants={"desk": TenantSettings(share=2)})
    assert (settings.find_tenant("desk").share, settings.find_tenant("somebody").share) == (2, 1)


@pytest.mark.parametrize(
    "wrong", [{"places": 0}, {"places": 1, "output_weight": 0}, {"places": 1, "default": {"share": 0}}]
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FairnessSettings.model_validate(wrong)


def test_who_may_not_wait_is_told_which_quota_holds_the_call_back_and_how_long() -> None:
    async def refused(gate: FairScheduler) -> QuotaReached:
        with pytest.raises(QuotaReached) as caught:
            async with gate.acquire("desk", 4, 4):
                pass
        return caught.value

    async def course() -> list[QuotaReached]:
        errors = []
        for own in (TenantSettings(tokens_per_minute=10, queue=0), TenantSettings(calls=1, queue=0)):
            gate = FairScheduler(FairnessSettings(places=5, default=own), clock=lambda: 0.0)
            async with gate.acquire("desk", 4, 4):
                errors.append(await refused(gate))
        return errors

    minute, calls = asyncio.run(course())
    assert (minute.field, minute.seconds) == ("tenants.desk.tokens_per_minute", 60.0)
    assert calls.field == "tenants.desk.calls"


@pytest.fixture(scope="module")
def plan() -> ServingPlan:
    return make_plan(Request(find_model("Llama-3.1-8B")), find_device("h200"))


def test_what_the_file_leaves_out_is_the_plans(plan: ServingPlan) -> None:
    fairness = GatewaySettings().build_fairness(plan)
    assert fairness.places == plan.flags["max-num-seqs"]
    assert fairness.call_tokens == plan.flags["max-model-len"]
    told = plan.predictions
    a_token_in = float(told["time_to_first_token_ms"]) / float(told["prompt_tokens"])
    assert fairness.output_weight == pytest.approx(float(told["per_token_full_ms"]) / a_token_in, rel=0.01)


def test_what_the_file_says_holds(plan: ServingPlan) -> None:
    fairness = GatewaySettings(places=3, output_weight=5.0).build_fairness(plan)
    assert (fairness.places, fairness.output_weight) == (3, 5.0)
    assert GatewaySettings(places=3, input_weight=4.0).build_fairness().output_weight == 8.0
    assert GatewaySettings(places=3, call_tokens=9).build_fairness().call_tokens == 9


def test_nobody_guesses_how_many_places_there_are() -> None:
    with pytest.raises(GatewayError, match=r"--places N or places: N"):
        GatewaySettings().build_fairness()


def test_a_tenant_is_called_what_a_token_can_call_it(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text('tenants:\n  "a\\"b": {share: 2}\n')
    with pytest.raises(SettingsError, match="is no name of letters"):
        read_settings(file, GatewaySettings)
