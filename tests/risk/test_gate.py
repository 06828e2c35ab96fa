"""The gate, rule by rule: one below the limit, at it, and one above."""

import copy
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import pytest

from alphaloom.ledger import canonical_json
from alphaloom.risk import UNITS_PER_BP, BookState, Policy, decide
from alphaloom.risk.decision import Approved
from alphaloom.risk.signal import RiskError, Signal

from .conftest import HAIR, KNOWN

NOW = date(2020, 3, 2)
Make = Callable[..., Signal]
Book = Callable[..., BookState]


def refusals(signals: list[Signal], state: BookState, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return what refused each asset."""
    return {ruling.asset: ruling.refusals for ruling in decide(signals, state, policy, NOW, KNOWN).rulings}


BOUNDARY = [(-HAIR, ()), (0, ()), (HAIR, None)]


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
@pytest.mark.parametrize("side", [1, -1])
def test_single_name(signal: Make, state: Book, over: float, expected: object, side: int) -> None:
    found = refusals([signal("AAA", side * (500 + over))], state(), Policy())
    assert found["AAA"] == (() if expected == () else ("single_name",))


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
def test_single_name_counts_the_worse_bound(signal: Make, state: Book, over: float, expected: object) -> None:
    found = refusals([signal("AAA", 100, lo=0, hi=500 + over)], state(), Policy())
    assert found["AAA"] == (() if expected == () else ("single_name",))


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
def test_interval_width(signal: Make, state: Book, over: float, expected: object) -> None:
    asked = signal("AAA", 10, lo=0, hi=200 + over)
    found = refusals([asked], state(), Policy(interval_width_cap_bp=200))
    assert found["AAA"] == (() if expected == () else ("interval_width",))


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
def test_gross(signal: Make, state: Book, over: float, expected: object) -> None:
    asked = [signal("AAA", 100), signal("BBB", -(101 + over))]
    found = refusals(asked, state(positions={"CCC": 99}), Policy(gross_cap_bp=300))
    assert found == {"AAA": (), "BBB": () if expected == () else ("gross",)}


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
@pytest.mark.parametrize("side", [1, -1])
def test_net(signal: Make, state: Book, over: float, expected: object, side: int) -> None:
    found = refusals([signal("AAA", side * (200 + over))], state(positions={"BBB": side * 100}), Policy(net_cap_bp=300))
    assert found["AAA"] == (() if expected == () else ("net",))


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
def test_turnover_counts_what_was_traded_before(signal: Make, state: Book, over: float, expected: object) -> None:
    book = state(positions={"AAA": 50}, traded=100)
    found = refusals([signal("AAA", -150 - over)], book, Policy(turnover_cap_bp=300))
    assert found["AAA"] == (() if expected == () else ("turnover",))


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
def test_trailing_drawdown(signal: Make, state: Book, over: float, expected: object) -> None:
    found = refusals([signal()], state(equity=8_500 - round(over * UNITS_PER_BP)), Policy())
    assert found["AAA"] == (() if expected == () else ("trailing_drawdown",))


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
def test_daily_loss(signal: Make, state: Book, over: float, expected: object) -> None:
    cents = round(over * UNITS_PER_BP)
    found = refusals([signal()], state(equity=9_700 - cents, pnl_today=-300 - cents), Policy())
    assert found["AAA"] == (() if expected == () else ("daily_loss",))


def test_a_hair_over_a_limit_is_over(signal: Make, state: Book) -> None:
    book = state(equity=8_499_999_999, high_water=10_000_000_000)
    assert refusals([signal()], book, Policy())["AAA"] == ("trailing_drawdown",)


def test_a_day_that_began_with_nothing_is_a_loss(signal: Make, state: Book) -> None:
    assert refusals([signal()], state(equity=0, pnl_today=5), Policy(trailing_drawdown_cap_bp=10_000)) == {
        "AAA": ("daily_loss",)
    }


@pytest.mark.parametrize(("age", "expected"), [(4, ()), (5, ()), (6, ("stale_data",)), (-1, ("stale_data",))])
def test_stale_data(signal: Make, state: Book, age: int, expected: tuple[str, ...]) -> None:
    book = state(positions={"AAA": 200}, last_price={"AAA": NOW - timedelta(days=age)})
    assert refusals([signal("AAA", 300)], book, Policy())["AAA"] == expected
    assert refusals([signal("AAA", 100)], book, Policy())["AAA"] == expected


def test_a_restricted_symbol_may_only_be_reduced(signal: Make, state: Book) -> None:
    book, policy = state(positions={"AAA": 200}), Policy(restricted=("AAA",))
    assert refusals([signal("AAA", 201), signal("BBB", 1)], book, policy) == {"AAA": ("restricted",), "BBB": ()}
    assert refusals([signal("AAA", 0)], book, policy) == {"AAA": ()}


def test_no_price_at_all_is_stale(signal: Make, state: Book) -> None:
    assert refusals([signal("ZZZ")], state(), Policy())["ZZZ"] == ("stale_data",)


def test_the_kill_switch_stops_everything(signal: Make, state: Book) -> None:
    found = refusals([signal("AAA", 0), signal("BBB", 10)], state(positions={"AAA": 50}), Policy(kill_switch=True))
    assert found == {"AAA": ("kill_switch",), "BBB": ("kill_switch",)}


def test_two_signals_for_one_asset_are_both_refused(signal: Make, state: Book) -> None:
    decision = decide([signal("AAA", 10), signal("BBB", 10), signal("AAA", 20)], state(), Policy(), NOW, KNOWN)
    assert [ruling.refusals for ruling in decision.rulings] == [("duplicate",), ("duplicate",), ()]


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "9", None, 1.5])
def test_a_signal_made_around_its_schema_is_refused(signal: Make, state: Book, value: object) -> None:
    forged = signal()
    object.__setattr__(forged, "target_e8", value)
    decision = decide([forged, signal("BBB")], state(), Policy(), NOW, KNOWN)
    assert [ruling.refusals for ruling in decision.rulings] == [("schema",), ()]
    canonical_json(decision.record())


def test_what_exceeds_together_is_refused_from_the_largest_down(signal: Make, state: Book) -> None:
    asked = [signal("AAA", 300), signal("BBB", 100), signal("CCC", 200), signal("DDD", 300)]
    found = refusals(asked, state(), Policy(gross_cap_bp=600))
    assert found == {"AAA": (), "BBB": (), "CCC": (), "DDD": ("gross",)}


def test_a_refused_leg_does_not_unbalance_the_rest(signal: Make, state: Book) -> None:
    asked = [signal("AAA", 400), signal("ZZZ", -400)]
    assert refusals(asked, state(), Policy(net_cap_bp=399)) == {"AAA": ("net",), "ZZZ": ("stale_data", "net")}


def test_every_rule_is_logged_even_after_a_failure(signal: Make, state: Book) -> None:
    decision = decide([signal("ZZZ", 900)], state(equity=1, pnl_today=-5000), Policy(gross_cap_bp=1), NOW, KNOWN)
    assert [check.rule for check in decision.rulings[0].checks] == [
        "schema",
        "duplicate",
        "proven",
        "original",
        "reviewed",
        "alive",
        "contained",
        "unalarmed",
        "stale_data",
        "restricted",
        "single_name",
        "interval_width",
        "kill_switch",
        "trailing_drawdown",
        "daily_loss",
        "gross",
        "net",
        "turnover",
    ]
    assert decision.rulings[0].refusals == ("stale_data", "single_name", "trailing_drawdown", "daily_loss", "gross")


def test_the_book_is_logged_as_it_will_stand(signal: Make, state: Book) -> None:
    decision = decide([signal("AAA", 300), signal("BBB", 900)], state(positions={"CCC": -100}), Policy(), NOW, KNOWN)
    assert {check.rule: check.actual for check in decision.book} == {
        "kill_switch": 0,
        "trailing_drawdown": 0,
        "daily_loss": 0,
        "gross": 400 * UNITS_PER_BP,
        "net": 200 * UNITS_PER_BP,
        "turnover": 300 * UNITS_PER_BP,
    }


def test_nothing_asked_is_a_decision_too(state: Book) -> None:
    decision = decide([], state(), Policy(), NOW, KNOWN)
    assert not decision.approved
    assert not decision.rulings
    assert len(decision.id) == 64


def test_only_the_gate_approves(signal: Make, state: Book) -> None:
    approved = decide([signal()], state(), Policy(), NOW, KNOWN).approved[0]
    assert approved.signal == signal()
    for forge in (
        lambda: Approved(signal(), "x", None),
        lambda: replace(approved, signal=signal("BBB"), seal=None),
        lambda: copy.copy(approved),
        lambda: pickle.dumps(approved),
    ):
        with pytest.raises(RiskError, check=lambda error: error.code == "not_approved"):
            forge()


def test_the_id_is_of_everything_that_went_in(signal: Make, state: Book) -> None:
    inputs = [
        ([signal()], state(), Policy(), NOW, KNOWN),
        ([signal(reason="other")], state(), Policy(), NOW, KNOWN),
        ([signal()], state(traded=1), Policy(), NOW, KNOWN),
        ([signal()], state(), Policy(net_cap_bp=1_999), NOW, KNOWN),
        ([signal()], state(), Policy(), NOW + timedelta(days=1), KNOWN),
        ([signal()], state(), Policy(), NOW, {"f0": replace(KNOWN["f0"], digest="e" * 64)}),
    ]
    assert len({decide(*arguments).id for arguments in inputs}) == len(inputs)


@pytest.mark.parametrize(
    "changed",
    [
        {"equity": 1.0},
        {"equity": True},
        {"high_water": 9_999},
        {"equity": -5, "high_water": 0},
        {"pnl_today": math.nan},
        {"traded_e8": -1},
        {"positions": {"AAA": "1.5"}},
        {"last_price": {"AAA": "2020-03-02"}},
    ],
)
def test_nothing_is_decided_on_a_malformed_state(state: Book, changed: dict[str, object]) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "book_state", match="malformed"):
        state(**changed)


@pytest.mark.parametrize("changed", [{"gross_cap_bp": -1}, {"gross_cap_bp": 1.0}, {"kill_switch": 1}, {"gros": 1}])
def test_a_policy_is_whole_numbers_of_known_names(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Policy.model_validate(changed)


SCRIPT = """
from datetime import date
from alphaloom.ledger import canonical_json
from alphaloom.risk import BookState, Policy, Signal, Standing, decide
now = date(2020, 3, 2)
names = {"AAA", "BBB", "CCC", "DDD", "EEE", "FFF"}
asked = [Signal(name, 3_000_000, 2_000_000, 4_000_000, 5, "test", "f0") for name in names]
state = BookState({name: 100_000 for name in names}, {name: now for name in names}, 10, 10)
known = {name: Standing(name, "accepted", similarity_bp=100, status="live") for name in {"f0", "f1", "f2"}}
print(canonical_json(decide(asked, state, Policy(gross_cap_bp=1000), now, known).record()))
"""


def test_replay_is_equal_to_the_byte_in_another_process() -> None:
    def run(seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True).stdout

    assert run("1") == run("2") != b""
