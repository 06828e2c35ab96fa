"""What was known of a panel on a day: the same bytes as if nothing had come after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alphaloom.market import MarketError, Panel, SyntheticConfig, simulate
from alphaloom.market.actions import Actions, read_actions
from alphaloom.market.derive import derived
from alphaloom.market.errors import PanelError
from alphaloom.market.known import NOT_POINT_IN_TIME, known_on

RAW = simulate(SyntheticConfig(seed=4, days=120, names=20)).panel
COMES = 70
"""Row on which the last name is listed."""
SPLITS = (0.5, 1.5, 2.0, 7.0)


def actions(draws: list[tuple[int, int, float, float]]) -> Actions:
    days = RAW.dates[[row for row, *_ in draws]]
    symbols = tuple(RAW.symbols[name] for _, name, _, _ in draws)
    dividends = np.array([0.01 * paid for *_, paid, _ in draws])
    return Actions(days, symbols, dividends, np.array([split for *_, split in draws]))


def until(found: Actions, stop: int) -> Actions:
    kept = found.days <= RAW.dates[stop - 1]
    symbols = tuple(symbol for symbol, keep in zip(found.symbols, kept, strict=True) if keep)
    return Actions(found.days[kept], symbols, found.dividends[kept], found.splits[kept])


def sold(stop: int, found: Actions) -> Panel:
    """Return the panel that a vendor sells after so many days: adjusted backwards for all that happened until then."""
    rows = RAW.rows(0, stop)
    quoted = {name: rows.fields[name].copy() for name in ("open", "high", "low", "close", "volume")}
    for values in quoted.values():
        values[:COMES, -1] = np.nan
    names = RAW.symbols if stop > COMES else RAW.symbols[:-1]
    quoted = {name: values[:, : len(names)] for name, values in quoted.items()}
    prices, volumes = found.factors(rows.dates, names, quoted["close"])
    fields = {name: values * (volumes if name == "volume" else prices) for name, values in quoted.items()}
    fields["close_raw"] = quoted["close"]
    fields, notes = derived(fields, {"vwap": "typical", "amount": "close*volume"})
    sectors = [f"s{place % 4}" if place < len(RAW.symbols) - 1 else "new" for place in range(len(names))]
    return Panel.build(rows.dates, names, fields, groups={"sector": sectors}, notes=(*notes, f"sold on row {stop}"))


def backwards(panel: Panel) -> Panel:
    from dataclasses import replace

    from alphaloom.market.traps.levels import maybe_adjusted

    return replace(panel, back_adjusted=maybe_adjusted(panel))


@given(
    st.lists(
        st.tuples(st.integers(1, 119), st.integers(0, 19), st.integers(0, 90), st.sampled_from(SPLITS)), max_size=8
    ),
    st.integers(30, 120),
)
def test_what_was_known_is_what_would_be_if_nothing_had_come_after(
    draws: list[tuple[int, int, float, float]], stop: int
) -> None:
    found, day = actions([*draws, (110, 0, 30, 2.0)]), RAW.dates[stop - 1].astype(object)
    of_all = known_on(backwards(sold(120, found)), day, found, "adjusted")
    of_then = known_on(backwards(sold(stop, until(found, stop))), day, until(found, stop), "adjusted")
    assert of_all.digest == of_then.digest
    assert of_all.notes == of_then.notes
    assert of_all.back_adjusted == of_then.back_adjusted
    assert "new" not in of_all.group_labels["sector"] or stop > COMES


def test_a_split_and_a_dividend_move_what_came_before_them_alone() -> None:
    found = actions([(60, 3, 0, 2.0), (80, 3, 50, 1.0)])
    seen = known_on(backwards(sold(120, found)), RAW.dates[99].astype(object), found, "adjusted")
    at = seen.symbols.index(RAW.symbols[3])
    paid = 1.0 - 0.5 / RAW.fields["close"][79, 3]
    ratio = seen.fields["close"][:, at] / RAW.fields["close"][:100, 3]
    assert ratio[80:] == pytest.approx(1.0)
    assert ratio[60:80] == pytest.approx(paid)
    assert ratio[:60] == pytest.approx(paid / 2)
    assert seen.fields["volume"][:60, at] == pytest.approx(2 * RAW.fields["volume"][:60, 3])
    assert seen.fields["returns"][60, at] == pytest.approx(
        2 * RAW.fields["close"][60, 3] / RAW.fields["close"][59, 3] - 1
    )
    before = known_on(backwards(sold(120, found)), RAW.dates[50].astype(object), found, "adjusted")
    at = before.symbols.index(RAW.symbols[3])
    assert before.fields["close"][:, at] == pytest.approx(RAW.fields["close"][:51, 3])
    assert before.fields["volume"][:, at] == pytest.approx(RAW.fields["volume"][:51, 3])


def test_without_actions_levels_end_at_the_quote_and_it_is_said() -> None:
    found = actions([(60, 3, 0, 2.0), (110, 3, 50, 1.0)])
    seen = known_on(backwards(sold(120, found)), RAW.dates[99].astype(object))
    assert NOT_POINT_IN_TIME in seen.notes
    assert seen.fields["close"][99, seen.symbols.index(RAW.symbols[3])] == pytest.approx(RAW.fields["close"][99, 3])
    assert not any("sold on row" in note for note in seen.notes), "other notes may tell of any day"


def test_before_the_first_day_nothing_was_known() -> None:
    with pytest.raises(MarketError, match="nothing was known yet"):
        known_on(RAW, (RAW.dates[0] - np.timedelta64(1, "D")).astype(object))


def test_actions_are_read_and_mistakes_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "actions.csv"
    file.write_text("date,symbol,dividend,split\n2015-01-02,A,0.5,\n2015-01-05,B,,2\n")
    found = read_actions(file)
    assert found.symbols == ("A", "B")
    assert found.dividends.tolist() == [0.5, 0.0]
    assert found.splits.tolist() == [1.0, 2.0]
    file.write_text("date,symbol,dividend,split\n2015-13-02,A,-0.5,1\n2015-01-05,B,1,0\n")
    with pytest.raises(PanelError) as raised:
        read_actions(file)
    assert len(raised.value.findings) == 3
