"""The share of a refused change that is said to pass does pass, and one per mille more does not."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from alphaloom.campaign.what_if.remedies import PER_MILLE, GateQuestion, find_passing_share, scale_change
from alphaloom.risk import BookState, Policy, decide
from alphaloom.risk.signal import Signal

from ..risk.conftest import KNOWN
from ..risk.test_laws import NOW, policies, signals, states


@settings(max_examples=150)
@given(signals(), states(), policies())
def test_the_share_passes_and_one_per_mille_more_does_not(
    asked: list[Signal], state: BookState, policy: Policy
) -> None:
    asked = list({signal.asset: signal for signal in asked}.values())
    question = GateQuestion(tuple(asked), state, policy, NOW, KNOWN)
    approved = {one.signal for one in decide(asked, state, policy, NOW, KNOWN).approved}
    for place, signal in enumerate(asked):
        if signal in approved:
            continue
        share = find_passing_share(question, place)
        if share is None:
            assert not question.passes(place, 0)
            continue
        for part, passes in ((share, True), (share + 1, False)):
            changed = [*asked[:place], scale_change(signal, state.positions.get(signal.asset, 0), part)]
            decision = decide([*changed, *asked[place + 1 :]], state, policy, NOW, KNOWN)
            assert (changed[place] in {one.signal for one in decision.approved}) == passes


@given(signals(), st.integers(-(10**6), 10**6), st.integers(0, PER_MILLE))
def test_a_whole_change_is_the_signal_and_none_keeps_the_position(asked: list[Signal], held: int, part: int) -> None:
    for signal in asked:
        assert scale_change(signal, held, PER_MILLE) == signal
        kept = scale_change(signal, held, 0)
        assert {kept.target_e8, kept.lo_e8, kept.hi_e8} == {held}
        scaled = scale_change(signal, held, part)
        assert scaled.lo_e8 <= scaled.target_e8 <= scaled.hi_e8
