"""The benchmark of combiners: every line is there, and a panel's sealed span is not read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphaloom.evidence.originality.published import published_expressions
from alphaloom.market import SyntheticConfig, simulate
from bench import combination

SOME = list(published_expressions())[:12]


def test_every_combiner_stands_beside_the_oracle() -> None:
    found = combination.planted(1, 420, 40, wild=True)
    assert len(found) == 10
    assert {len(line) for line in found.values()} == {3}
    assert found["equal, search"] == found["equal, day by day"], "equal weights learn nothing"
    assert found["oracle, search"][0] > found["equal, search"][0]


def test_the_sealed_span_of_a_panel_is_not_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(combination, "published_expressions", lambda: iter(SOME))
    monkeypatch.setattr(combination, "LEAST_T", 0.0)
    panel = simulate(SyntheticConfig(seed=2, days=400, names=40)).panel
    moved = np.ones(panel.universe.shape)
    moved[round(0.8 * panel.days) :] = np.exp(np.random.default_rng(0).normal(0, 0.3, panel.names))
    prices = ("open", "high", "low", "close", "vwap")
    other = replace(
        panel, fields={name: each * moved if name in prices else each for name, each in panel.fields.items()}
    )
    said = []
    for each in (panel, other):
        combination.print_panel(each)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "selection adaptive" in said[0]
    assert "sealed" not in said[0]
