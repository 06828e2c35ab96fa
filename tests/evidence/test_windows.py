"""Windows are fixed once, embargoed, and refuse a panel they do not fit."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.evaluation import PanelContext
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.errors import EvidenceError
from alphaloom.evidence.settings import WindowSettings
from alphaloom.evidence.windows import HORIZONS, fix_windows
from alphaloom.ledger import Ledger, Look, Run
from alphaloom.market import Panel, SyntheticConfig, simulate


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def market(days: int, seed: int = 3) -> Panel:
    return simulate(SyntheticConfig(seed=seed, days=days, names=20)).panel


def test_sixty_twenty_twenty_with_an_embargo_longer_than_any_label(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        windows = fix_windows(market(1000), ledger, WindowSettings(), "m")
    assert (windows.search.days, windows.selection.days, windows.sealed.days) == (600, 200 - 21, 200 - 21)
    assert windows.selection.start - windows.search.stop == max(HORIZONS) + 1
    assert windows.sealed.start - windows.selection.stop == max(HORIZONS) + 1


def test_new_days_move_no_boundary(tmp_path: Path) -> None:
    panel = market(1000)
    with Ledger.open(tmp_path, clock=clock) as ledger:
        first = fix_windows(panel.rows(0, 900), ledger, WindowSettings(), "m")
        later = fix_windows(panel, ledger, WindowSettings(), "m")
    assert (later.boundaries, later.inherited, first.inherited) == (first.boundaries, True, False)
    assert later.sealed.stop == 900


def test_another_market_gets_windows_of_its_own(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        fix_windows(market(1000), ledger, WindowSettings(), "m")
        assert fix_windows(market(700, seed=4), ledger, WindowSettings(), "n").search.days == 420


def test_a_panel_that_ends_inside_the_fixed_windows_is_refused(tmp_path: Path) -> None:
    panel = market(1000)
    with Ledger.open(tmp_path, clock=clock) as ledger:
        fix_windows(panel, ledger, WindowSettings(), "m")
        with pytest.raises(
            EvidenceError,
            check=lambda error: error.code == "boundary_conflict",
            match="of these days and names were fixed earlier",
        ):
            fix_windows(panel.rows(0, 700), ledger, WindowSettings(), "m")


def only(panel: Panel, *columns: int) -> Panel:
    """Return the panel with some of its names."""
    kept = list(columns)
    return Panel(
        dates=panel.dates,
        symbols=tuple(panel.symbols[column] for column in kept),
        fields={name: np.ascontiguousarray(values[:, kept]) for name, values in panel.fields.items()},
        universe=np.ascontiguousarray(panel.universe[:, kept]),
    )


def test_names_that_inherit_windows_keep_them_without_the_name_they_shared(tmp_path: Path) -> None:
    panel = market(1000)
    other = WindowSettings(search=0.5, selection=0.3)
    with Ledger.open(tmp_path, clock=clock) as ledger:
        first = fix_windows(only(panel, *range(10)), ledger, WindowSettings(), "m")
        bridge = fix_windows(only(panel, *range(9, 20)), ledger, other, "bridge")
        rest = fix_windows(only(panel, *range(10, 20)), ledger, other, "rest")
        ledger.runs.start(Run("one", {}, 1, "m", "2026"))
        ledger.trials.open(Look("one", "f", bridge.key(bridge.selection)))
        assert ledger.trials.open(Look("one", "f", rest.key(rest.selection))).number == 2
    assert rest.search == bridge.search == first.search
    assert rest.inherited
    assert rest.key(rest.selection).names == panel.symbols[10:]
    assert bridge.key(bridge.selection).names == panel.symbols[9:]


def test_asking_where_windows_would_lie_fixes_none(tmp_path: Path) -> None:
    panel, other = market(1000), WindowSettings(search=0.5, selection=0.3)
    with Ledger.open(tmp_path, clock=clock) as ledger:
        assert fix_windows(panel, ledger, WindowSettings(), "m", store=False).search.days == 600
        assert fix_windows(panel, ledger, other, "m").search.days == 500


def test_a_bench_that_only_looks_or_is_refused_fixes_nothing(tmp_path: Path) -> None:
    panel = market(600)
    other = EvidenceSettings(windows=WindowSettings(search=0.5, selection=0.3))
    long = EvidenceSettings(horizon_days=20, windows=WindowSettings(search=0.65, min_selection_days=40))
    with Ledger.open(tmp_path, clock=clock) as ledger:
        assert PanelContext.set_up(panel, ledger, EvidenceSettings(), "m", store=False).windows.search.days == 360
        with pytest.raises(EvidenceError, check=lambda error: error.code == "too_few_days", match="proves nothing"):
            PanelContext.set_up(panel.rows(0, 405), ledger, long, "m")
        with pytest.raises(
            EvidenceError,
            check=lambda error: error.code == "too_few_names",
            match="At most 9 names have a return on any day of the search window",
        ) as caught:
            PanelContext.set_up(only(panel, *range(9)), ledger, EvidenceSettings(returns="raw"), "m")
        assert (caught.value.field, caught.value.got) == ("panel", "9 names")
        bench = PanelContext.set_up(panel, ledger, other, "m")
    assert (bench.windows.search.days, bench.windows.inherited) == (300, False)


def test_too_few_days_say_how_many_are_needed(tmp_path: Path) -> None:
    with (
        Ledger.open(tmp_path, clock=clock) as ledger,
        pytest.raises(EvidenceError, check=lambda error: error.code == "too_few_days") as caught,
    ):
        fix_windows(market(200), ledger, WindowSettings(), "m")
    assert "The panel has 200 days, too few for its windows: selection 19 (needs 60), sealed 19 (needs 40)." in str(
        caught.value
    )


@settings(max_examples=20)
@given(st.floats(0.3, 0.7), st.floats(0.1, 0.25), st.integers(600, 1200))
def test_no_day_lies_in_two_windows(search: float, selection: float, days: int) -> None:
    panel = market(1200).rows(0, days)
    wanted = WindowSettings(search=search, selection=selection, min_selection_days=40)
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, Ledger.open(Path(folder), clock=clock) as ledger:
        try:
            windows = fix_windows(panel, ledger, wanted, "m")
        except EvidenceError as error:
            assert error.code == "too_few_days"  # noqa: PT017 - the property also holds where windows are refused
            return
    edges = [windows.search, windows.selection, windows.sealed]
    for before, after in pairwise(edges):
        assert after.start - before.stop >= max(HORIZONS) + 1
