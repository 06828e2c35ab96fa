"""The benchmark of a long campaign says what grew."""

from __future__ import annotations

from bench.endurance import Line, faults, settings

FLAT = [Line(1_000 * n, 900.0, 4.3, 10.0 * n, 25.0) for n in range(1, 11)]


def changed(number: int, **figures: float) -> list[Line]:
    return [*FLAT[:number], *(Line(**{**vars(line), **figures}) for line in FLAT[number:])]


def test_a_flat_campaign_has_no_fault() -> None:
    assert faults(FLAT) == []
    assert faults(changed(0, each=400.0)[:1] + FLAT[1:]) == []  # the first thousand compile the kernels


def test_what_grows_is_named() -> None:
    assert faults(changed(9, checkpoints=51.0)) == ["checkpoints pass 50 MB"]
    assert faults(changed(9, memory=1_200.0)) == ["memory grew from 900 to 1200 MB"]
    assert faults(changed(7, each=40.0)) == ["an evaluation took 25.0 ms and takes 40.0 ms"]


def test_the_campaign_has_the_evaluations_that_were_asked_for() -> None:
    assert settings(10_000).budget.evaluations == 10_000
    assert settings(10_000).agents.rounds == 400
