"""What holds for every batch, book and policy."""

import json
import os
from collections.abc import Mapping
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.ledger import canonical_json
from alphaloom.risk import (
    UNITS_PER_BP,
    AssetFacts,
    BookState,
    Decision,
    Filled,
    Policy,
    RiskLimits,
    apply,
    decide,
    read_checks,
)
from alphaloom.risk.policy import ADDING
from alphaloom.risk.signal import Signal

from .conftest import KNOWN
from .reference import decide_slowly

NOW = date(2020, 3, 2)
ASSETS = ("AAA", "BBB", "CCC", "DDD", "EEE")
EXPOSURE = st.integers(-60 * UNITS_PER_BP, 60 * UNITS_PER_BP)
LIMITS = [name for name in RiskLimits.model_fields if name.endswith(("_bp", "_cap", "_days"))]
OWN_RULES = {"schema", "duplicate", "kill_switch", "trading_state", "stale_data"}
CASES = int(os.environ.get("ALPHALOOM_GATE_CASES", "300"))


@st.composite
def signals(draw: st.DrawFn) -> list[Signal]:
    """Draw a batch, sometimes with two signals for one asset."""
    assets = draw(st.lists(st.sampled_from(ASSETS), max_size=6))
    bounds = [sorted(draw(st.tuples(EXPOSURE, EXPOSURE, EXPOSURE))) for _ in assets]
    ends = [NOW + timedelta(days=draw(st.sampled_from([0, 0, 3, -1]))) for _ in assets]
    return [
        Signal(asset, target, low, high, 5, "test", "f0", end)
        for asset, (low, target, high), end in zip(assets, bounds, ends, strict=True)
    ]


FACTS = st.builds(
    AssetFacts,
    last_price=st.sampled_from([NOW, NOW, NOW, NOW - timedelta(days=9), NOW + timedelta(days=1), None]),
    sector=st.sampled_from(["", "banks", "tech"]),
    jump_bp=st.sampled_from([0, 0, 0, 40, None]),
    volume_e8=st.sampled_from([10**8, 10**8, 10**6, None]),
    fall_bp=st.sampled_from([0, 0, 40]),
    styles=st.dictionaries(st.sampled_from(["beta", "size"]), st.integers(-300, 300)),
)


@st.composite
def states(draw: st.DrawFn) -> BookState:
    """Draw a book, perhaps with losses, old prices and positions that already exceed a limit."""
    high = draw(st.integers(1, 1000))
    equity = draw(st.integers(-10, high))
    return BookState(
        positions=draw(st.dictionaries(st.sampled_from(ASSETS), EXPOSURE)),
        assets=draw(st.dictionaries(st.sampled_from(ASSETS), FACTS, min_size=3)),
        equity=equity if draw(st.booleans()) else high,
        high_water=high,
        pnl_today=draw(st.sampled_from([0, 0, 5, -1, -30])),
        traded_e8=draw(st.sampled_from([0, 0, 40 * UNITS_PER_BP])),
        recent_e8=draw(st.sampled_from([(), (0, 40 * UNITS_PER_BP)])),
        rejects=draw(st.sampled_from([0, 0, 3])),
        mode=draw(st.sampled_from(["active", "active", "active", "reducing", "halted"])),
        sessions=draw(st.sampled_from([(), (date(2020, 2, 27), date(2020, 2, 29))])),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw limits near what the batches ask."""
    caps = {name: draw(st.integers(0, 150)) for name in LIMITS if draw(st.booleans())}
    wide = {
        name: draw(st.integers(0, 20_000))
        for name in ("trailing_drawdown_cap_bp", "max_drawdown_cap_bp", "daily_loss_cap_bp")
        if name in caps
    }
    margins = {name: draw(st.integers(0, 2_000_000)) for name in ("margin_long_bp", "margin_short_bp") if name in caps}
    days = {name: draw(st.integers(0, 8)) for name in ("max_data_age_days", "position_cap") if name in caps}
    others = {
        "restricted": draw(st.sampled_from([(), ("AAA",)])),
        "not_shortable": draw(st.sampled_from([(), ("BBB",)])),
        "kill_switch": draw(st.sampled_from([False, False, False, True])),
    }
    return Policy.model_validate({**caps, **wide, **margins, **days, **others})


def reduces(signal: Signal, state: BookState) -> bool:
    """Return whether a target lies between nothing and what is held."""
    held = state.positions.get(signal.asset, 0)
    return min(held, 0) <= signal.target_e8 <= max(held, 0)


def approved(decision: Decision) -> set[Signal]:
    """Return the signals that passed."""
    return {item.signal for item in decision.approved}


@given(signals(), states(), policies())
def test_what_is_approved_holds_every_limit(asked: list[Signal], state: BookState, policy: Policy) -> None:
    decision = decide(asked, state, policy, NOW, KNOWN)
    rising = [item.signal for item in decision.approved if not reduces(item.signal, state)]
    if decision.approved:
        assert not policy.kill_switch
        assert state.mode != "halted"
    if not rising:
        return
    after, began = state, state.equity - state.pnl_today
    for item in decision.approved:
        after = apply(
            after, Filled(item.signal.asset, item.signal.target_e8 - after.positions.get(item.signal.asset, 0))
        )
    held = after.positions.values()
    assert sum(map(abs, held)) <= policy.gross_cap_bp * UNITS_PER_BP
    assert abs(sum(held)) <= policy.net_cap_bp * UNITS_PER_BP
    assert after.traded_e8 <= policy.turnover_cap_bp * UNITS_PER_BP
    assert sum(value != 0 for value in held) <= policy.position_cap
    fall = Fraction(state.high_water - state.equity, state.high_water) * 10_000
    assert fall <= min(policy.trailing_drawdown_cap_bp, policy.max_drawdown_cap_bp)
    assert began > 0
    assert Fraction(-state.pnl_today, began) * 10_000 <= policy.daily_loss_cap_bp
    assert state.mode == "active"
    for signal in rising:
        most = policy.single_name_cap_bp * UNITS_PER_BP
        assert -most <= signal.lo_e8 <= signal.hi_e8 <= most
        assert signal.hi_e8 - signal.lo_e8 <= policy.interval_width_cap_bp * UNITS_PER_BP
        assert signal.until >= NOW
    if policy.sector_cap_bp is not None:
        for sector in ("", "banks", "tech"):
            inside = [v for name, v in after.positions.items() if name_sector(state, name) == sector]
            assert abs(sum(inside)) <= policy.sector_cap_bp * UNITS_PER_BP
    assert all(check.passed for check in decision.book)


def name_sector(state: BookState, asset: str) -> str:
    """Return the sector of an asset; empty where it is not known."""
    return state.assets[asset].sector if asset in state.assets else ""


def tighten(policy: Policy, cuts: Mapping[str, int]) -> Policy:
    """Return a policy with limits that are tighter; no limit becomes one."""
    changed: dict[str, Any] = {}
    for name, cut in cuts.items():
        own = getattr(policy, name)
        changed[name] = cut if own is None else own + cut if name in ADDING else max(own - cut, 0)
    return policy.model_copy(update=changed)


@given(signals(), states(), policies(), st.dictionaries(st.sampled_from(LIMITS), st.integers(0, 60), min_size=1))
def test_a_tighter_limit_lets_nothing_new_pass(
    asked: list[Signal], state: BookState, policy: Policy, cuts: dict[str, int]
) -> None:
    tighter = tighten(policy, cuts)
    assert approved(decide(asked, state, tighter, NOW, KNOWN)) <= approved(decide(asked, state, policy, NOW, KNOWN))


@given(signals(), states(), policies())
def test_what_reduces_is_refused_by_form_price_switch_and_halt_alone(
    asked: list[Signal], state: BookState, policy: Policy
) -> None:
    by_asset = {signal.asset: signal for signal in asked}
    for ruling in decide(asked, state, policy, NOW, KNOWN).rulings:
        if reduces(by_asset[ruling.asset], state):
            assert set(ruling.refusals) <= OWN_RULES
            assert state.mode == "halted" or "trading_state" not in ruling.refusals


@given(st.data(), signals(), states(), policies())
def test_order_does_not_matter_and_replay_is_equal_to_the_byte(
    data: st.DataObject, asked: list[Signal], state: BookState, policy: Policy
) -> None:
    shuffled = data.draw(st.permutations(asked))
    fields = {name: getattr(state, name) for name in state.__dataclass_fields__}
    for name in ("positions", "assets"):
        fields[name] = dict(reversed(list(fields[name].items())))
    again = BookState(**fields)
    first, second = decide(asked, state, policy, NOW, KNOWN), decide(shuffled, again, policy.model_copy(), NOW, KNOWN)
    assert canonical_json(first.record()) == canonical_json(second.record())


@given(signals(), states(), policies())
def test_the_log_agrees_with_the_verdict(asked: list[Signal], state: BookState, policy: Policy) -> None:
    decision = decide(asked, state, policy, NOW, KNOWN)
    assert [ruling.asset for ruling in decision.rulings] == sorted(signal.asset for signal in asked)
    assert [r.asset for r in decision.rulings if r.approved] == [item.signal.asset for item in decision.approved]
    for ruling in decision.rulings:
        assert ruling.approved == (not ruling.refusals)
        for check in ruling.checks:
            known = check.limit is not None and check.actual is not None and 0 <= check.actual <= check.limit
            assert check.passed == (check.limit is None or known)


def compare(asked: list[Signal], state: BookState, policy: Policy) -> None:
    """Compare the gate with the slow one: who passes, and what refused each."""
    policy = policy.model_copy(update={"similarity_cap_bp": 10_000})  # evidence has tests of its own
    decision = decide(asked, state, policy, NOW, KNOWN)
    found = [(ruling.asset, ruling.approved, set(ruling.refusals)) for ruling in decision.rulings]
    assert found == decide_slowly(asked, state, policy, NOW)


@settings(max_examples=CASES)
@given(signals(), states(), policies())
def test_a_slow_gate_in_fractions_agrees(asked: list[Signal], state: BookState, policy: Policy) -> None:
    compare(asked, state, policy)


@pytest.mark.slow
@settings(max_examples=100_000, deadline=None)
@given(signals(), states(), policies())
def test_a_slow_gate_in_fractions_agrees_on_many(asked: list[Signal], state: BookState, policy: Policy) -> None:
    compare(asked, state, policy)


@given(signals(), states(), policies())
def test_the_checks_are_read_from_the_record(asked: list[Signal], state: BookState, policy: Policy) -> None:
    decision = decide(asked, state, policy, NOW, KNOWN)
    record = json.loads(canonical_json(decision.record()))
    for ruling, row in zip(decision.rulings, record["rulings"], strict=True):
        assert read_checks(record, row) == ruling.checks
        assert set(row["refusals"]) == {check.rule for check in ruling.checks if check.binds and not check.passed}
