"""Equal returns are equal data, whatever symbols, dates and price levels: trials, windows and seal stay."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.evidence.settings import WindowSettings
from alphaloom.evidence.windows import Windows, fix_windows
from alphaloom.ledger import Ledger, Look, Opening, Run
from alphaloom.market import Panel, SyntheticConfig, simulate

PRICES = ("open", "high", "low", "close")
MARKET = simulate(SyntheticConfig(seed=3, days=900, names=30)).panel
YEAR = 252


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def other(
    panel: Panel,
    days: NDArray[np.datetime64] | None = None,
    columns: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> Panel:
    """Return a panel with other days or other columns."""
    plain = {name: values for name, values in panel.fields.items() if name != "returns"}
    return Panel.build(panel.dates if days is None else days, panel.symbols, {**plain, **columns}, panel.universe)


def named(panel: Panel, symbols: list[str]) -> Panel:
    plain = {name: values for name, values in panel.fields.items() if name != "returns"}
    return Panel.build(panel.dates, symbols, plain, panel.universe)


def renamed(panel: Panel) -> Panel:
    return named(panel, [f"{symbol}.us".lower() for symbol in panel.symbols])


def shuffled(panel: Panel) -> Panel:
    return named(panel, [f"X{place:03d}" for place in np.random.default_rng(1).permutation(panel.names)])


def moved(panel: Panel, days: int) -> Panel:
    return other(panel, panel.dates + np.timedelta64(days, "D"))


def on_another_calendar(panel: Panel) -> Panel:
    """Return the panel on days without weekends that begin elsewhere in the week."""
    return other(panel, np.busday_offset(np.datetime64("2003-02-05"), np.arange(panel.days, dtype=np.int64)))


def rescaled(panel: Panel) -> Panel:
    level = np.exp(np.random.default_rng(2).normal(0, 1, panel.names))
    return other(panel, columns={name: panel.fields[name] * level for name in PRICES})


def rounded(panel: Panel) -> Panel:
    return other(panel, columns={name: panel.fields[name].astype(np.float32).astype(np.float64) for name in PRICES})


def kept(panel: Panel, columns: list[int]) -> Panel:
    plain = {name: values[:, columns] for name, values in panel.fields.items() if name != "returns"}
    return Panel.build(panel.dates, [panel.symbols[at] for at in columns], plain, panel.universe[:, columns])


def with_gaps(panel: Panel) -> Panel:
    """Return the panel with one row in a hundred missing and a few closes corrected."""
    rng = np.random.default_rng(5)
    gone = rng.random(panel.universe.shape) < 0.01
    close = panel.fields["close"].copy()
    wrong = rng.integers(0, panel.days, 20), rng.integers(0, panel.names, 20)
    close[wrong] *= 1.01
    columns = {name: np.where(gone, np.nan, panel.fields[name]) for name in ("open", "high", "low", "volume")}
    return other(panel, columns={**columns, "close": np.where(gone, np.nan, close)})


SAME: dict[str, Callable[[Panel], Panel]] = {
    "renamed": renamed,
    "renamed in another order": shuffled,
    "renamed and a day later": lambda panel: moved(renamed(panel), 1),
    "the same names thirty years later": lambda panel: moved(panel, 10_957),
    "on another calendar": on_another_calendar,
    "renamed, at other price levels": lambda panel: rescaled(renamed(panel)),
    "renamed, in float32": lambda panel: rounded(renamed(panel)),
    "renamed, without a name": lambda panel: kept(renamed(panel), list(range(panel.names - 1))),
    "renamed, one day more": lambda panel: renamed(more(panel)),
    "renamed, with gaps": lambda panel: with_gaps(renamed(panel)),
    "renamed, without its first year": lambda panel: renamed(panel.rows(YEAR, panel.days)),
    "all at once": lambda panel: with_gaps(rounded(rescaled(moved(shuffled(kept(panel, list(range(5, 30)))), -400)))),
}


def more(panel: Panel) -> Panel:
    """Return the panel with a day added."""
    late = np.append(panel.dates, panel.dates[-1] + np.timedelta64(1, "D"))
    fields = {name: np.vstack([values, values[-1:] * 1.01]) for name, values in panel.fields.items()}
    del fields["returns"]
    return Panel.build(late, panel.symbols, fields, np.vstack([panel.universe, panel.universe[-1:]]))


def looked(ledger: Ledger, windows: Windows, subject: str) -> int:
    return ledger.trials.open(Look("one", subject, windows.key(windows.selection))).number


@pytest.mark.parametrize("name", SAME)
def test_the_same_returns_keep_their_trials_windows_and_seal(tmp_path: Path, name: str) -> None:
    again = SAME[name](MARKET)
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("one", {}, 1, "m", "2026"))
        ledger.runs.start(Run("two", {}, 1, "m", "2026"))
        first = fix_windows(MARKET, ledger, WindowSettings(), "m")
        assert looked(ledger, first, "f") == 1
        assert ledger.trials.record_opening(Opening("one", first.key(first.sealed), "close")) == 1
        second = fix_windows(again, ledger, WindowSettings(search=0.7, selection=0.2), "n")
        assert looked(ledger, second, "g") == 2
        assert ledger.trials.record_opening(Opening("two", second.key(second.sealed), "close")) == 2
    begins = MARKET.days - again.days if "first year" in name else 0
    assert second.inherited
    assert (second.search.stop, second.selection.start, second.selection.stop, second.sealed.start) == tuple(
        row - begins for row in (first.search.stop, first.selection.start, first.selection.stop, first.sealed.start)
    )


def test_a_third_name_for_the_same_returns_meets_both_earlier_ones(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("one", {}, 1, "m", "2026"))
        panels = (MARKET, moved(renamed(MARKET), 7), on_another_calendar(with_gaps(shuffled(MARKET))))
        fixed = [fix_windows(panel, ledger, WindowSettings(), "m") for panel in panels]
        assert [looked(ledger, each, f"f{place}") for place, each in enumerate(fixed)] == [1, 2, 3]


OTHERS = {
    "another seed": simulate(SyntheticConfig(seed=4, days=900, names=30)).panel,
    "another seed under the same names": named(
        simulate(SyntheticConfig(seed=4, days=900, names=30)).panel, [f"{symbol}.US" for symbol in MARKET.symbols]
    ),
    "a year of other days": renamed(simulate(SyntheticConfig(seed=9, days=600, names=30)).panel),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_returns_are_other_data(tmp_path: Path, name: str) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("one", {}, 1, "m", "2026"))
        looked(ledger, fix_windows(MARKET, ledger, WindowSettings(), "m"), "f")
        windows = fix_windows(OTHERS[name], ledger, WindowSettings(), "n")
        assert (windows.inherited, looked(ledger, windows, "g")) == (False, 1)


def test_days_that_no_window_holds_count_for_nothing(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("one", {}, 1, "m", "2026"))
        first = fix_windows(MARKET, ledger, WindowSettings(), "m")
        looked(ledger, first, "f")
        again = fix_windows(renamed(MARKET), ledger, WindowSettings(), "n")
        assert ledger.trials.open(Look("one", "g", again.key(again.search))).number == 1


def test_prices_that_barely_move_are_no_identity(tmp_path: Path) -> None:
    """Two markets of names that mostly stand still share runs of zeros, and no data."""
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("one", {}, 1, "m", "2026"))
        for place, seed in enumerate((1, 2)):
            ticks = np.random.default_rng(seed).choice([-1, 0, 0, 0, 0, 0, 0, 1], size=MARKET.universe.shape)
            still = {name: 100.0 + np.cumsum(ticks, axis=0) for name in PRICES}
            panel = named(other(MARKET, columns=still), [f"{seed}{symbol}" for symbol in MARKET.symbols])
            assert looked(ledger, fix_windows(panel, ledger, WindowSettings(), "m"), f"f{place}") == 1


def test_a_workspace_without_fingerprints_goes_by_names_and_days_until_the_panel_is_seen_again(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("one", {}, 1, "m", "2026"))
        looked(ledger, fix_windows(MARKET, ledger, WindowSettings(), "m"), "f")
    older = sqlite3.connect(tmp_path / "ledger.sqlite")
    older.executescript("DROP TABLE fingerprints; PRAGMA user_version = 4;")
    older.close()
    with Ledger.open(tmp_path, clock=clock) as ledger:
        by_name = fix_windows(other(MARKET), ledger, WindowSettings(), "m", store=False)
        assert by_name.search.stop == 540
        assert looked(ledger, fix_windows(renamed(MARKET), ledger, WindowSettings(), "n"), "g") == 1
        looked(ledger, fix_windows(MARKET, ledger, WindowSettings(), "m"), "h")
        assert looked(ledger, fix_windows(renamed(MARKET), ledger, WindowSettings(), "n"), "i") == 4


def test_what_is_stored_is_bounded_and_grows_with_new_days_alone(tmp_path: Path) -> None:
    def size() -> int:
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as seen, seen:
            return int(seen.execute("SELECT coalesce(sum(length(body)), 0) FROM fingerprints").fetchone()[0])

    with Ledger.open(tmp_path, clock=clock) as ledger:
        fix_windows(MARKET.rows(0, 890), ledger, WindowSettings(), "m")
        first = size()
        fix_windows(MARKET, ledger, WindowSettings(), "m")
        second = size()
        fix_windows(MARKET, ledger, WindowSettings(), "m")
    assert 0 < first <= 160 * 890
    assert second - first <= 160 * 10 + 64
    assert size() == second
