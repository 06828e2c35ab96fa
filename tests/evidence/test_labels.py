"""Labels against a slow reference, and the edges: no open, a name that stops, a window that ends."""

from __future__ import annotations

import numpy as np
import pytest

from alphaloom.evidence.scoring.labels import count_unlabelled, cut_label, forward_returns
from alphaloom.evidence.windows import Window
from alphaloom.market import Panel, SyntheticConfig, simulate


def slow_label(panel: Panel, horizon: int) -> np.ndarray:
    """Return labels cell by cell, by the words of the definition."""
    opened, close = panel.fields["open"], panel.fields["close"]
    label = np.full(opened.shape, np.nan)
    for t in range(panel.days - horizon - 1):
        for name in range(panel.names):
            entry, exit_price = opened[t + 1, name], opened[t + 1 + horizon, name]
            if np.isnan(exit_price):
                past = close[: t + 2 + horizon, name]
                known = past[~np.isnan(past)]
                exit_price = known[-1] if known.size else np.nan
            if panel.universe[t, name] and not np.isnan(entry):
                label[t, name] = exit_price / entry - 1
    return label


@pytest.mark.parametrize("horizon", [1, 5])
def test_labels_equal_the_slow_reference(horizon: int) -> None:
    panel = simulate(SyntheticConfig(seed=5, days=90, names=20, halts=0.05)).panel
    np.testing.assert_allclose(forward_returns(panel, horizon), slow_label(panel, horizon), rtol=1e-12)


def test_a_label_that_ends_outside_its_window_is_missing() -> None:
    panel = simulate(SyntheticConfig(seed=5, days=90, names=20)).panel
    label = forward_returns(panel, 5)
    window = Window("search", 10, 50, "", "")
    rows = cut_label(label, window, 5)
    assert np.isnan(rows[-6:]).all()
    np.testing.assert_array_equal(rows[:-6], label[10:44])
    assert np.isnan(cut_label(label, Window("search", 10, 14, "", ""), 5)).all(), "no label ends in a shorter window"


def test_no_label_changes_when_the_future_beyond_it_does() -> None:
    panel = simulate(SyntheticConfig(seed=5, days=90, names=20)).panel
    np.testing.assert_array_equal(forward_returns(panel.rows(0, 60), 5)[:54], forward_returns(panel, 5)[:54])


def test_cells_without_an_open_to_buy_at_are_counted() -> None:
    panel = simulate(SyntheticConfig(seed=5, days=90, names=20, halts=0.08)).panel
    window = Window("search", 0, 90, "", "")
    label = forward_returns(panel, 5)
    missing = sum(
        panel.universe[t, n] and np.isnan(panel.fields["open"][t + 1, n]) for t in range(84) for n in range(panel.names)
    )
    assert count_unlabelled(panel, window, label, 5) == missing > 0
