"""The strategies compose what they say, and play against the real gate without knowing of each other."""

from __future__ import annotations

from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.factors import parse
from alphaloom.factors.language.syntax import MAX_FORMULA_CHARS
from alphaloom.market import SyntheticConfig, simulate
from bench.adaptive import LINES, REFUSED, STRATEGIES, Room, Seen, joined, outcomes, table

SEEN = [
    Seen("a", "ts_std(returns, 20)", 1.25, "rejected"),
    Seen("b", "close / open", -0.5, "rejected"),
    Seen("c", "-(volume / ts_mean(volume, 20))", 2.5, "watchlist"),
]


def test_strategies_add_up_what_was_kind_on_selection() -> None:
    assert STRATEGIES["weighted"](SEEN) == (
        "2.50 * rank(-(volume / ts_mean(volume, 20))) + 1.25 * rank(ts_std(returns, 20))"
    )
    assert STRATEGIES["words"](SEEN) == "rank(-(volume / ts_mean(volume, 20)))"
    assert STRATEGIES["rank"](SEEN).startswith("rank(rank(")
    assert STRATEGIES["words"](SEEN[:1]) == ""
    for name in ("weighted", "equal", "words", "rank", "product"):
        parse(STRATEGIES[name](SEEN))


def test_a_sum_stops_where_a_formula_ends() -> None:
    text = joined([f"rank(ts_mean(close, {number}))" for number in range(2, 200)], around="rank({})")
    assert len(text) <= MAX_FORMULA_CHARS - 4
    assert 185 < parse(text).core.size <= 200  # another term would be one too many


def test_every_strategy_meets_the_real_gate() -> None:
    panel = simulate(SyntheticConfig(seed=1, days=620, names=20, nothing=True)).panel
    found = outcomes(Room.of(panel), 1, [2])
    assert set(found) == {(2, name) for name in LINES}
    assert found[2, "set"] == REFUSED  # its members were looked at
    assert {found[2, name].p for name in ("weighted", "equal", "without a limit")} == {1.0}  # nothing of them is left
    assert 0 < found[2, "unseen"].p < 1
    levels = sum(lond_level(number, 0) for number in (1, 2, 3))
    assert table([found], [2])[1].split()[-1] == f"{levels:.4f}"
