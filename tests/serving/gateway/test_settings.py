"""The file of tenants, and what a plan says where it is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphaloom.ledger import SettingsError, read_settings
from alphaloom.serving import Request, ServingPlan, find_device, find_model, make_plan
from alphaloom.serving.errors import GatewayError
from alphaloom.serving.gateway import GatewaySettings


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
