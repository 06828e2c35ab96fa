"""Approved signals for tests: what the risk gate lets pass of small signals on proven evidence."""

from datetime import date

from alphaloom.risk import Approved, AssetFacts, BookState, Policy, Signal, Standing, decide

DAY = date(2026, 1, 5)
PROVEN = {"f0": Standing("f0", "accepted", "d" * 64, 1, 2_000, "shares rank", status="live")}


def approve(*assets: str, target_e8: int = 1_000_000, day: date = DAY) -> tuple[Approved, ...]:
    """Return the approvals of one signal for each asset, of `target_e8` of equity."""
    signals = [Signal(name, target_e8, target_e8, target_e8, 5, "a test", "f0", day) for name in assets]
    facts = AssetFacts(last_price=day, jump_bp=0, volume_e8=10**12)
    state = BookState({}, dict.fromkeys(assets, facts), 10**10, 10**10, sessions=(day,))
    approved = decide(signals, state, Policy(), day, PROVEN).approved
    assert len(approved) == len(assets)
    return approved
