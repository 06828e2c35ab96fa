"""The bill of model calls: what was paid, what went up, and what one tier alone would have cost."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.facts.model_spend import describe_spend, sum_spend
from alphaloom.ledger import Ledger, ModelCall, Run, VerdictRow
from alphaloom.ledger.reservations import Hold, Wish

SMALL = {"model": "x/small", "place": "local", "input_cost_per_mtok": 1, "output_cost_per_mtok": 10}
LARGE = {"model": "x/large", "tier": "frontier", "input_cost_per_mtok": 3, "output_cost_per_mtok": 15}
MODELS = {"models": {"small": SMALL, "large": LARGE}, "roles": {"idea": "frontier", "factor": "auto"}}
CALL = ModelCall("k", "one", "factor", "new", "local", "small", "p", "q", "r", 1000, 100, 0.002, 1, "desk")


def decided(tier: str, role: str) -> dict[str, Any]:
    return {"tier": tier, "intent": "new", "signals": {"role": role}, "reason": "told"}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    clock = [datetime(2026, 1, 2, 23, 59, tzinfo=UTC)]
    with Ledger.open(tmp_path / "w", clock=lambda: clock[0]) as ledger:
        for run in ("one", "two"):
            ledger.runs.start(Run(run, {"settings": {"models": MODELS}}, 1, "data", "2026"))
        large = replace(CALL, tier="frontier", model="large", cost_usd=0.0045)
        for call, decision in (
            (replace(CALL, key="plain"), decided("local", "factor")),
            (replace(large, key="hard"), decided("frontier", "factor")),
            (replace(large, key="fixed", role="idea"), decided("frontier", "idea")),
            (replace(large, key="failed", tenant=""), decided("local", "factor")),
            (replace(large, key="fixed", role="idea", run="two", attempts=0), decided("frontier", "idea")),
        ):
            ledger.events.record(call.run, "route", call.key, decision)
            ledger.calls.add(call)
        ledger.verdicts.add(VerdictRow("one", "f1", "accepted", [], {}))
        clock[0] = datetime(2026, 1, 3, tzinfo=UTC)
        ledger.calls.add(replace(CALL, key="old"))
        ledger.verdicts.add(VerdictRow("one", "f2", "accepted", [], {}))
        ledger.verdicts.add(VerdictRow("one", "f3", "rejected", [], {}))
        yield ledger


def test_a_run_is_billed_by_every_part(ledger: Ledger) -> None:
    said = sum_spend(ledger, "one", "", None)
    assert (said["calls"], said["usd"], said["paid_usd"]) == (5, pytest.approx(0.0175), pytest.approx(0.0175))
    assert {name: bill["calls"] for name, bill in said["by_model"].items()} == {"large": 3, "small": 2}
    assert said["prices"]["small"] == {
        "model": "x/small", "tier": "local", "usd_in": pytest.approx(1), "usd_out": pytest.approx(10)
    }  # fmt: skip  # a table
    assert {name: bill["calls"] for name, bill in said["by_tenant"].items()} == {"desk": 4, "": 1}
    assert said["escalations"] == {"by_prompt": 1, "by_failure": 1, "unknown": 1}
    assert said["per_accepted"]["usd"] == pytest.approx(0.0175 / 2)
    assert said["always"]["local"]["usd"] == pytest.approx(5 * (1000 * 1 + 100 * 10) / 1e6)
    assert said["always"]["frontier"]["usd"] == pytest.approx(5 * (1000 * 3 + 100 * 15) / 1e6)


def test_each_question_is_told_with_its_tiers_and_the_cost_of_one_tier_alone(ledger: Ledger) -> None:
    up = decided("frontier", "factor") | {"first_tier": "local"}
    ledger.events.record("one", "route", "came up", up)
    ledger.calls.add(replace(CALL, key="came up", tier="frontier", model="large", cost_usd=0.0045))
    rows = sum_spend(ledger, "one", "", None)["by_question"]
    assert [*rows] == ["factor/new", "idea/new"]
    row = rows["factor/new"]
    assert (row["local"], row["frontier"], row["went_up"], row["usd"]) == (2, 3, 2, pytest.approx(0.0175))
    assert row["models"] == {"large": 3, "small": 2}
    assert row["always"] == {"local": pytest.approx(5 * 0.002), "frontier": pytest.approx(5 * 0.0045)}


def test_a_run_with_settings_that_are_gone_is_billed_all_the_same(ledger: Ledger) -> None:
    old = MODELS | {"models": {"small": SMALL | {"tokens_per_second": 20}}, "routing": {"most_failures": 0.3}}
    ledger.runs.start(Run("old", {"settings": {"models": old}}, 1, "data", "2026"))
    ledger.calls.add(replace(CALL, run="old"))
    assert sum_spend(ledger, "old", "", None)["always"]["local"]["usd"] == pytest.approx(0.002)


def test_a_reply_that_was_paid_for_elsewhere_is_priced_and_not_paid(ledger: Ledger) -> None:
    said = sum_spend(ledger, "two", "", None)
    assert (said["usd"], said["paid_usd"], said["reused"], said["accepted"]) == (0.0045, 0.0, 1, 0)
    assert said["per_accepted"] is None


def test_days_and_tenants_go_over_all_runs(ledger: Ledger) -> None:
    day = sum_spend(ledger, None, "2026-01-02", None)
    assert (day["calls"], day["reused"], day["accepted"]) == (5, 1, 1)
    assert sum_spend(ledger, None, "2026-01-03", None)["calls"] == 1
    assert sum_spend(ledger, None, "", "desk")["calls"] == 5
    assert sum_spend(ledger, "one", "2026-01-02", "desk")["calls"] == 3
    assert sum_spend(ledger, None, "", "nobody")["calls"] == 0


def test_where_one_tier_stands_alone_nothing_went_up_and_without_a_call_nothing_is_estimated(ledger: Ledger) -> None:
    ledger.runs.start(Run("alone", {"settings": {"models": {"models": {"large": LARGE}}}}, 1, "data", "2026"))
    nothing = {"usd": None, "why": "no call is recorded", "estimate": True}
    assert sum_spend(ledger, "alone", "", None)["always"] == {"local": nothing, "frontier": nothing}
    for name, tier in (("wanted", "local"), ("hard", "frontier")):
        ledger.events.record("alone", "route", name, decided(tier, "factor"))
        ledger.calls.add(replace(CALL, key=name, run="alone", tier="frontier", model="large"))
    assert sum_spend(ledger, "alone", "", None)["escalations"] == {"by_prompt": 0, "by_failure": 0, "unknown": 0}


def test_what_calls_under_way_hold_is_told(ledger: Ledger) -> None:
    assert isinstance(ledger.holds.hold(Wish("one", "now", "desk", 1, 0.25), [], 60.0), Hold)
    assert sum_spend(ledger, None, "", "desk")["held"] == {"calls": 1, "usd": 0.25}
    assert sum_spend(ledger, "two", "", None)["held"] == {"calls": 0, "usd": 0.0}


def test_what_a_killed_process_had_under_way_is_told_as_such(ledger: Ledger) -> None:
    with Ledger.open(ledger.workspace, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as killed:
        assert isinstance(killed.holds.hold(Wish("one", "now", "desk", 1, 0.25), [], 60.0), Hold)
    said = sum_spend(ledger, None, "", "desk")
    assert (said["held"], said["killed"]) == ({"calls": 0, "usd": 0.0}, {"calls": 1, "usd": 0.25})
    assert dict(describe_spend(said))["killed under way"].startswith("1 call, at most $0.2500 more")


def test_a_run_of_before_its_models_were_kept_has_no_estimate(ledger: Ledger) -> None:
    ledger.runs.start(Run("three", {}, 1, "data", "2026"))
    ledger.calls.add(replace(CALL, run="three"))
    assert sum_spend(ledger, "three", "", None)["always"]["local"] == {
        "usd": None,
        "why": "run three names no local model",
        "estimate": True,
    }
