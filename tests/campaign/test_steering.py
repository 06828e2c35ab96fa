"""A person's words on the real path: from the campaign file to what is scored and what the results say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from alphaloom import Campaign
from alphaloom.ledger import AlphaloomError, SettingsError

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

BRIEF = [
    *markets.BRIEF,
    "agents.rounds=1",
    "agents.candidates=2",
    "agents.steps=0",
    "budget.evaluations=8",
    "budget.trials=0",
]


def searched(files: Files, workspace: Path, *more: str) -> dict[str, Any]:
    return dict(Campaign.from_yaml(files.campaign, workspace=workspace, overrides=[*BRIEF, *more]).run().record)


def mechanisms(record: dict[str, Any]) -> set[str]:
    return {entry["hypothesis"]["mechanism"] for entry in (*record["rejected"], *record["untested"])}


def test_words_decide_what_is_scored(files: Files, tmp_path: Path) -> None:
    asked = searched(
        files,
        tmp_path,
        "steer.goal=calm names, overnight moves",
        "steer.avoid=[overnight]",
        "steer.fields=[close, returns, high, low]",
    )
    assert mechanisms(asked) & {"low_volatility", "quiet_drift"}  # both speak of calm
    assert not any("overnight" in name for name in mechanisms(asked))
    read = {
        name
        for entry in (*asked["rejected"], *asked["untested"])
        for name in ("open", "volume", "vwap", "cap", "mood")
        if name in entry["text"]
    }
    assert read == set()
    assert asked["steer"]["goal"] == "calm names, overnight moves"
    assert not [warning for warning in asked["warnings"] if warning["code"] == "steer"]
    other = searched(files, tmp_path, "steer.goal=xylophone")
    assert mechanisms(other) != mechanisms(asked)
    assert any("xylophone" in warning["message"] for warning in other["warnings"] if warning["code"] == "steer")


def test_a_field_that_the_panel_lacks_ends_the_run_before_it_begins(files: Files, tmp_path: Path) -> None:
    with pytest.raises(AlphaloomError, match="no field sentiment") as caught:
        searched(files, tmp_path, "steer.fields=[close, sentiment]")
    assert (caught.value.field, caught.value.got) == ("steer.fields", ["sentiment"])


@pytest.mark.parametrize(
    ("label", "more", "said"),
    [("cap", ["steer.fields=[close, cap]"], "no field cap"), ('"*"', [], "not local"), ("volum", [], "volum")],
)
def test_what_is_marked_is_told_to_no_model_that_is_elsewhere(
    label: str, more: list[str], said: str, files: Files, tmp_path: Path
) -> None:
    marks = f"market.labels={{{label}: [confidential]}}"
    with pytest.raises(AlphaloomError, match=said):
        searched(
            files, tmp_path, marks, "models.models={researcher: {model: offline/researcher, place: remote}}", *more
        )
    if label == "cap":
        assert searched(files, tmp_path, marks, *more)["evaluations"], "a model on this machine is told"


def test_mistakes_in_the_section_are_told_together(files: Files) -> None:
    with pytest.raises(SettingsError, match="2 mistakes") as caught:
        Campaign.from_yaml(files.campaign, overrides=["steer.avoid=[of the]", "steer.gaol=calm"])
    assert "did you mean goal?" in caught.value.message
