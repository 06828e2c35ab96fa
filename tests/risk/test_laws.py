"""What holds for every batch, book and policy."""

from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import given, strategies as st

from alphaloom.ledger import canonical_json
from alphaloom.risk import UNITS_PER_BP, BookState, Decision, Policy, decide
from alphaloom.risk.signal import Signal

from .conftest import KNOWN

NOW = date(2020, 3, 2)
ASSETS = ("AAA", "BBB", "CCC", "DDD", "EEE")
EXPOSURE = st.integers(-60 * UNITS_PER_BP, 60 * UNITS_PER_BP)
LIMITS = [name for name, field in Policy.model_fields.items() if field.annotation is int]
OWN_RULES = {"schema", "duplicate", "kill_switch", "stale_data"}


@st.composite
def signals(draw: st.DrawFn) -> list[Signal]:
    """Draw a batch, sometimes with two signals for one asset."""
    assets = draw(st.lists(st.sampled_from(ASSETS), max_size=6))
    bounds = [sorted(draw(st.tuples(EXPOSURE, EXPOSURE, EXPOSURE))) for _ in assets]
    return [
        Signal(asset, target, low, high, 5, "test", "f0")
        for asset, (low, target, high) in zip(assets, bounds, strict=True)
    ]


@st.composite
def states(draw: st.DrawFn) -> BookState:
    """Draw a book, perhaps with losses, old prices and positions that already exceed a limit."""
    ages = draw(st.dictionaries(st.sampled_from(ASSETS), st.integers(-1, 8), min_size=3))
    high = draw(st.integers(1, 1000))
    equity = draw(st.integers(-10, high))
    return BookState(
        positions=draw(st.dictionaries(st.sampled_from(ASSETS), EXPOSURE)),
        last_price={asset: NOW - timedelta(days=age) for asset, age in ages.items()},
        equity=equity if draw(st.booleans()) else high,
        high_water=high,
        pnl_today=draw(st.sampled_from([0, 0, 5, -1, -30])),
        traded_e8=draw(st.sampled_from([0, 0, 40 * UNITS_PER_BP])),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw limits near what the batches ask."""
    limits: dict[str, Any] = {name: draw(st.integers(20, 250)) for name in LIMITS if name.endswith("_bp")}
    limits["trailing_drawdown_cap_bp"] = draw(st.sampled_from([0, 1000, 9000]))
    limits["daily_loss_cap_bp"] = draw(st.sampled_from([0, 300, 9000]))
    return Policy(max_data_age_days=draw(st.integers(0, 8)), kill_switch=draw(st.integers(0, 9)) == 0, **limits)


def reduces(signal: Signal, state: BookState) -> bool:
    """Tell whether a target lies between nothing and what is held."""
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
    if not rising:
        return
    after = state.after(decision.approved)
    began = state.equity - state.pnl_today
    assert sum(map(abs, after.positions.values())) <= policy.gross_cap_bp * UNITS_PER_BP
    assert abs(sum(after.positions.values())) <= policy.net_cap_bp * UNITS_PER_BP
    assert after.traded_e8 <= policy.turnover_cap_bp * UNITS_PER_BP
    fall = Fraction(state.high_water - state.equity, state.high_water)
    assert fall * 10_000 <= policy.trailing_drawdown_cap_bp
    assert began > 0
    assert Fraction(-state.pnl_today, began) * 10_000 <= policy.daily_loss_cap_bp
    for signal in rising:
        most = policy.single_name_cap_bp * UNITS_PER_BP
        assert -most <= signal.lo_e8 <= signal.hi_e8 <= most
        assert signal.hi_e8 - signal.lo_e8 <= policy.interval_width_cap_bp * UNITS_PER_BP
        assert 0 <= (NOW - state.last_price[signal.asset]).days <= policy.max_data_age_days
    assert all(check.passed for check in decision.book)


@given(signals(), states(), policies(), st.dictionaries(st.sampled_from(LIMITS), st.integers(0, 60), min_size=1))
def test_a_tighter_limit_lets_nothing_new_pass(
    asked: list[Signal], state: BookState, policy: Policy, cuts: dict[str, int]
) -> None:
    tighter = policy.model_copy(update={name: max(getattr(policy, name) - cut, 0) for name, cut in cuts.items()})
    assert approved(decide(asked, state, tighter, NOW, KNOWN)) <= approved(decide(asked, state, policy, NOW, KNOWN))


@given(signals(), states(), policies())
def test_what_reduces_is_refused_by_form_price_and_switch_alone(
    asked: list[Signal], state: BookState, policy: Policy
) -> None:
    by_asset = {signal.asset: signal for signal in asked}
    for ruling in decide(asked, state, policy, NOW, KNOWN).rulings:
        if reduces(by_asset[ruling.asset], state):
            assert set(ruling.refusals) <= OWN_RULES


@given(st.data(), signals(), states(), policies())
def test_order_does_not_matter_and_replay_is_equal_to_the_byte(
    data: st.DataObject, asked: list[Signal], state: BookState, policy: Policy
) -> None:
    shuffled = data.draw(st.permutations(asked))
    again = BookState(
        dict(reversed(list(state.positions.items()))),
        dict(reversed(list(state.last_price.items()))),
        state.equity,
        state.high_water,
        state.pnl_today,
        state.traded_e8,
    )
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
            if check.actual is not None and check.limit is not None and check.actual >= 0:
                assert check.passed == (check.actual <= check.limit)
