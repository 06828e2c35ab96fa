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
from typing import Any

import pytest

from alphaloom.ledger import canonical_json
from alphaloom.risk import RULES, UNITS_PER_BP, BookState, Policy, decide
from alphaloom.risk.decision import Approved
from alphaloom.risk.signal import RiskError, Signal

from .conftest import HAIR, KNOWN, facts

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
    assert refusals(
        [signal()], state(equity=0, pnl_today=5), Policy(trailing_drawdown_cap_bp=10_000, max_drawdown_cap_bp=10_000)
    ) == {"AAA": ("daily_loss",)}


STALE = [
    (date(2020, 2, 26), (), 2),  # a Wednesday before a Monday: Thursday and Friday lie between
    (date(2020, 2, 25), (), 3),
    (date(2020, 2, 24), ("stale_data",), 4),
    (date(2020, 3, 3), ("stale_data",), -1),
]


@pytest.mark.parametrize(("day", "expected", "age"), STALE)
def test_stale_data_counts_weekdays(signal: Make, state: Book, day: date, expected: tuple[str, ...], age: int) -> None:
    book = state(positions={"AAA": 200}, assets={"AAA": facts(last_price=day)})
    assert book.age_of("AAA", NOW) == age
    assert refusals([signal("AAA", 300)], book, Policy())["AAA"] == expected
    assert refusals([signal("AAA", 100)], book, Policy())["AAA"] == expected


def test_an_age_counts_the_sessions_that_are_known_and_weekdays_behind_them(state: Book) -> None:
    sessions = (date(2020, 2, 21), date(2020, 2, 22), date(2020, 2, 26))  # with a Saturday, without a Monday
    book = state(assets={"AAA": facts(last_price=date(2020, 2, 21))}, sessions=sessions)
    assert book.age_of("AAA", NOW) == 2 + 2
    assert book.age_of("ZZZ", NOW) is None


ONE_ASSET: dict[str, tuple[dict[str, Any], Policy, int, int]] = {
    "price_jump": ({"assets": {"AAA": "jump_bp"}}, Policy(price_jump_cap_bp=700), 700, 1),
    "name_fall": ({"assets": {"AAA": "fall_bp"}, "positions": {"AAA": 50}}, Policy(name_fall_cap_bp=700), 700, 1),
    "liquidity": ({"assets": {"AAA": "volume_e8"}}, Policy(liquidate_days_cap=4), 100 * UNITS_PER_BP * 10 // 4, -1),
}
"""The state of a book in which a fact is at its limit, the policy, the fact at the limit, and the worse side."""


@pytest.mark.parametrize("rule", ONE_ASSET)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_facts_of_a_name(signal: Make, state: Book, rule: str, over: int) -> None:
    changed, policy, limit, worse = ONE_ASSET[rule]
    known = {asset: facts(**{name: limit + worse * over}) for asset, name in changed["assets"].items()}
    book = state(**{**changed, "assets": known})
    assert refusals([signal()], book, policy)["AAA"] == ((rule,) if over > 0 else ())
    held = state(positions={"AAA": 200}, assets=known)
    assert refusals([signal()], held, policy)["AAA"] == (), "what reduces is free"


@pytest.mark.parametrize("field", ["jump_bp", "volume_e8"])
def test_what_is_not_known_of_a_name_refuses_an_increase(signal: Make, state: Book, field: str) -> None:
    found = refusals([signal()], state(assets={"AAA": facts(**{field: None})}), Policy())
    assert found["AAA"] == ({"jump_bp": "price_jump", "volume_e8": "liquidity"}[field],)


@pytest.mark.parametrize(("late", "expected"), [(-1, ()), (0, ()), (1, ("valid",))])
def test_a_signal_ends(signal: Make, state: Book, late: int, expected: tuple[str, ...]) -> None:
    asked = signal("AAA", 60, until=NOW - timedelta(days=late))
    assert refusals([asked], state(), Policy())["AAA"] == expected
    assert refusals([asked], state(positions={"AAA": 70}), Policy())["AAA"] == ()


def test_a_symbol_that_nobody_lends_may_be_bought_and_covered(signal: Make, state: Book) -> None:
    policy = Policy(not_shortable=("AAA", "BBB"))
    found = refusals([signal("AAA", -1), signal("BBB", -10)], state(positions={"BBB": -20}), policy)
    assert found == {"AAA": ("borrow",), "BBB": ()}
    assert refusals([signal("AAA", 10)], state(), policy) == {"AAA": ()}


@pytest.mark.parametrize(("mode", "rising"), [("active", ()), ("reducing", ("trading_state",)), ("halted", None)])
def test_states_of_trading(signal: Make, state: Book, mode: str, rising: tuple[str, ...] | None) -> None:
    found = refusals([signal("AAA", 10), signal("BBB", 10)], state(positions={"BBB": 20}, mode=mode), Policy())
    halted = ("trading_state",)
    assert found == {"AAA": halted if rising is None else rising, "BBB": halted if rising is None else ()}


RULES_OF_THE_BOOK: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "positions": ({"positions": {"CCC": 1, "DDD": 1}}, {"position_cap": 3}),
    "rejects": ({"rejects": 7}, {"rejects_cap": 7}),
    "recent_turnover": ({"recent_e8": (20_000, 30_000)}, {"recent_turnover_cap_bp": 105}),
    "max_drawdown": ({"equity": 9_000}, {"max_drawdown_cap_bp": 1_000}),
    "margin": ({"positions": {"CCC": -40}}, {"margin_long_bp": 600_000, "margin_short_bp": 1_000_000}),
}
"""A book at its limit when 100 bp are bought, and the limits: margin is 40 bp times 100 and 100 bp times 60."""


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("rule", RULES_OF_THE_BOOK)
def test_rules_of_the_book(signal: Make, state: Book, rule: str, over: int) -> None:
    changed, limits = RULES_OF_THE_BOOK[rule]
    first = next(iter(limits))
    moved = limits[first] + (over if rule == "margin" else -over)  # more margin is tighter
    found = refusals([signal()], state(**changed), Policy.model_validate({**limits, first: moved}))
    assert found["AAA"] == ((rule,) if over > 0 else ())


SECTORS = {"AAA": facts(sector="banks"), "BBB": facts(sector="banks"), "CCC": facts(sector="tech")}


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
@pytest.mark.parametrize("side", [1, -1])
def test_a_sector(signal: Make, state: Book, over: float, expected: object, side: int) -> None:
    asked = [signal("AAA", side * (100 + over)), signal("CCC", -side * 200)]
    book = state(positions={"BBB": side * 100}, assets=SECTORS)
    decision = decide(asked, book, Policy(sector_cap_bp=200), NOW, KNOWN)
    found = {ruling.asset: ruling.refusals for ruling in decision.rulings}
    assert found == {"AAA": (), "CCC": ()} if expected == () else {"AAA": ("sector",), "CCC": ("sector",)}
    worst = next(check for check in decision.rulings[0].checks if check.rule == "sector")
    assert worst.about == ("banks" if expected is None else worst.about)


@pytest.mark.parametrize(("over", "expected"), BOUNDARY)
def test_a_style(signal: Make, state: Book, over: float, expected: object) -> None:
    known = {"AAA": facts(styles={"size": 200, "beta": 0}), "BBB": facts(styles={"size": -100, "beta": 0})}
    book = state(positions={"BBB": 100}, assets=known)
    found = refusals([signal("AAA", 150 + over)], book, Policy(style_cap_bp=200))
    assert found["AAA"] == (() if expected == () else ("style",))


def test_a_name_whose_style_is_not_known_counts_three_deviations_on_the_worse_side(signal: Make, state: Book) -> None:
    known = {"AAA": facts(styles={"size": 100}), "BBB": facts()}
    book = state(positions={"BBB": -10}, assets=known)
    assert refusals([signal("AAA", 20)], book, Policy(style_cap_bp=50))["AAA"] == ()
    assert refusals([signal("AAA", 21)], book, Policy(style_cap_bp=50))["AAA"] == ("style",)


def test_a_restricted_symbol_may_only_be_reduced(signal: Make, state: Book) -> None:
    book, policy = state(positions={"AAA": 200}), Policy(restricted=("AAA",))
    assert refusals([signal("AAA", 201), signal("BBB", 1)], book, policy) == {"AAA": ("restricted",), "BBB": ()}
    assert refusals([signal("AAA", 0)], book, policy) == {"AAA": ()}


def test_no_price_at_all_is_stale(signal: Make, state: Book) -> None:
    assert refusals([signal("ZZZ")], state(), Policy())["ZZZ"] == ("stale_data", "price_jump", "liquidity")


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


def test_net_is_at_most_gross_where_all_is_refused_alone(signal: Make, state: Book) -> None:
    asked = [signal("ZZX", 300), signal("ZZY", 200), signal("ZZZ", -100)]
    decision = decide(asked, state(), Policy(net_cap_bp=500), NOW, KNOWN)
    assert all("net" not in ruling.refusals for ruling in decision.rulings)


def test_a_refused_leg_does_not_unbalance_the_rest(signal: Make, state: Book) -> None:
    asked = [signal("AAA", 400), signal("ZZZ", -400)]
    assert refusals(asked, state(), Policy(net_cap_bp=399)) == {
        "AAA": ("net",),
        "ZZZ": ("stale_data", "price_jump", "liquidity", "net"),
    }


def test_every_rule_is_logged_even_after_a_failure(signal: Make, state: Book) -> None:
    decision = decide([signal("ZZZ", 900)], state(equity=1, pnl_today=-5000), Policy(gross_cap_bp=1), NOW, KNOWN)
    assert tuple(check.rule for check in decision.rulings[0].checks) == RULES
    assert decision.rulings[0].refusals == (
        "stale_data", "price_jump", "single_name", "liquidity", "trailing_drawdown", "max_drawdown", "daily_loss",
        "gross",
    )  # fmt: skip  # a table


def test_the_book_is_logged_as_it_will_stand(signal: Make, state: Book) -> None:
    decision = decide([signal("AAA", 300), signal("BBB", 900)], state(positions={"CCC": -100}), Policy(), NOW, KNOWN)
    assert {check.rule: check.actual for check in decision.book} == {
        **dict.fromkeys(
            ("kill_switch", "trading_state", "trailing_drawdown", "max_drawdown", "daily_loss", "rejects"), 0
        ),
        "gross": 400 * UNITS_PER_BP,
        "net": 200 * UNITS_PER_BP,
        "turnover": 300 * UNITS_PER_BP,
        "recent_turnover": 300 * UNITS_PER_BP,
        "margin": 200 * UNITS_PER_BP,
        "positions": 2,
        "sector": None,
        "style": None,
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
        {"assets": {"AAA": NOW}},
        {"rejects": -1},
        {"recent_e8": (1.0,)},
        {"mode": "asleep"},
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
from alphaloom.risk import AssetFacts, BookState, Policy, Signal, Standing, decide
now = date(2020, 3, 2)
names = {"AAA", "BBB", "CCC", "DDD", "EEE", "FFF"}
asked = [Signal(name, 3_000_000, 2_000_000, 4_000_000, 5, "test", "f0", now) for name in names]
facts = AssetFacts(now, "tech", 0, 100_000_000, styles={"size": 50})
state = BookState({name: 100_000 for name in names}, {name: facts for name in names}, 10, 10)
known = {name: Standing(name, "accepted", similarity_bp=100, status="live") for name in {"f0", "f1", "f2"}}
print(canonical_json(decide(asked, state, Policy(gross_cap_bp=1000), now, known).record()))
"""


def test_replay_is_equal_to_the_byte_in_another_process() -> None:
    def run(seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True).stdout

    assert run("1") == run("2") != b""
