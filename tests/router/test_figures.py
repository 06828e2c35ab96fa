"""A figure that a model made up is found, however it is spelled; one that it was given is not."""

from __future__ import annotations

import pytest

from alphaloom.router.calls import find_unfounded_figures

GIVEN = "The 30-day standard deviation of 1,200 shares, -0.0210 on five of 2019's days, one after the other."


@pytest.mark.parametrize(
    "text", ["30 days", "1200 shares", "0.021", "0,0210", "5 days", "Five", "in 2019", "No one, 1."]
)
def test_a_figure_that_was_given_is_known_in_every_spelling(text: str) -> None:
    assert find_unfounded_figures(text, GIVEN) == []


@pytest.mark.parametrize(
    ("text", "missed"),
    [
        ("31 days", ["31"]),
        ("12.00 shares", ["12.00"]),
        ("0.21 %", ["0.21"]),
        ("fifty shares, Fifty", ["fifty"]),
        ("20 of 30, then 20", ["20"]),
        ("\u0664\u0665 shares", ["\u0664\u0665"]),
    ],
)
def test_a_figure_that_was_made_up_is_named_once(text: str, missed: list[str]) -> None:
    assert find_unfounded_figures(text, GIVEN) == missed
