"""The benchmarks of fairness and learning run, and tell what they measured."""

from __future__ import annotations

from bench import fairness, learning
from tests.router.learning import laws
from tests.serving.gateway.fairness import Scenario, ratios


def test_a_flood_is_measured_and_told() -> None:
    scenario = Scenario(places=4, longer=4.0, calls=60)
    found = ratios(scenario)
    assert found["FIFO"] > found["VTC"]
    head, row = fairness.table([(scenario, found)]).splitlines()
    assert head.split()[-3:] == ["VTC", "VTC", "1:2"]
    assert row.split()[:3] == ["4", "0.5", "4x"]


def test_what_learning_saves_is_measured_and_told() -> None:
    found, below = learning.measured(2, 120, [laws(0), laws(1)])
    assert min(found, key=lambda name: sum(found[name])) == "oracle"
    assert below["learner, floor 0.9"] == below["always frontier"] == 0 < below["always local"]
    assert "1.000 (1.000 to 1.000)" in learning.table(found, below)
