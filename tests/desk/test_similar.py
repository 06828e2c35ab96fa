"""What a person and a program are told about formulas that are alike."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.factors import parse
from alphaloom.ledger import Ledger, LibraryRow

Capture = pytest.CaptureFixture[str]
OWN = "rank(ts_mad(close / open, 23)) * rank(ts_skew(volume, 40))"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return a workspace whose library holds one formula."""
    folder = tmp_path / "workspace"
    kept = parse(OWN)
    with Ledger.open(folder, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as ledger:
        ledger.library.add(LibraryRow(kept.id, OWN, kept.canonical_text, "h", "run", {"fields": ["close"]}))
    return folder


def rows(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    assert run_command(["factor", "similar", *arguments, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    found: list[dict[str, Any]] = json.loads(said.out)
    return found


def test_a_program_gets_the_nearest_with_what_is_shared_and_why(capsys: Capture) -> None:
    first, second = rows(capsys, "rank(ts_corr(open, volume, 11)) * -1", "--top", "2")
    assert first == {
        "id": "WorldQuant alpha 6",
        "text": "-ts_corr(open, volume, 10)",
        "ratio": 1.0,
        "shared": "ts_corr(open, volume, 11)",
        "why": "the same, but for its sign, its options, and last steps that keep the order of names; "
        "numbers are near: 10 for 11",
        "where": "Kakushadze 2016, no. 6",
    }
    assert (second["ratio"], second["why"]) == (
        0.6,
        "yours stands whole in it: 3 of its 7 nodes; numbers are near: 10 for 11",
    )


def test_what_stands_whole_in_yours_and_what_is_common_is_said(capsys: Capture) -> None:
    found = {row["id"]: row["why"] for row in rows(capsys, "-ts_corr(open, volume, 10) * rank(cap)", "--top", "400")}
    assert found["WorldQuant alpha 6"] == "it stands whole in yours: 3 of your 6 nodes"
    assert found["WorldQuant alpha 14"] == "3 nodes in common, of 6 of yours and 7 of its own"
    assert rows(capsys, "-ts_corr(open, volume, 10)")[0]["why"] == "the same formula"


def test_ten_are_shown_the_most_alike_first(capsys: Capture) -> None:
    found = rows(capsys, "ts_mean(close, 20) / close")
    assert len(found) == 10
    assert [(-row["ratio"], row["id"]) for row in found] == sorted((-row["ratio"], row["id"]) for row in found)


def test_a_library_is_searched_and_another_workspace_is_not_made(library: Path, capsys: Capture) -> None:
    near = OWN.replace("23", "24")
    found = rows(capsys, near, "--library", str(library))[0]
    assert (found["id"], found["ratio"], found["where"]) == (parse(OWN).id, 1.0, "the library")
    assert rows(capsys, near, "--top", "1")[0]["ratio"] < 0.85
    assert sorted(path.name for path in library.parent.iterdir()) == ["workspace"]


def test_a_file_of_formulas_is_a_library_too(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.txt").write_text(f"first: close - open\nsecond: {OWN}\n")
    found = rows(capsys, f"-({OWN})", "--library", "mine.txt", "--top", "1")
    assert (found[0]["id"], found[0]["where"], found[0]["ratio"]) == ("second", "mine.txt", 1.0)


def test_another_language_is_read(capsys: Capture) -> None:
    found = rows(capsys, "Mean($close, 21) / $close", "--dialect", "qlib", "--top", "1")
    assert (found[0]["ratio"], found[0]["shared"]) == (1.0, "close / ts_mean(close, 21, min_periods=1)")


def test_a_person_sees_a_table(capsys: Capture) -> None:
    assert run_command(["factor", "similar", "-ts_corr(open, volume, 10)", "--top", "2"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "100.0 % WorldQuant alpha 6 (Kakushadze 2016, no. 6)" in text
    assert "the same formula" in text


def test_a_mistake_is_told_as_by_check(capsys: Capture) -> None:
    assert run_command(["factor", "similar", "rank(clos)"]) == 2
    output = capsys.readouterr().out
    assert run_command(["factor", "check", "rank(clos)"]) == 2
    assert output == capsys.readouterr().out
    assert run_command(["factor", "similar", "rank(clos)", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["message"] == "unknown field 'clos'"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["close", "--library", "nowhere"], "nowhere: it is not there"),
        (["close", "--library", "."], "there is no ledger in it"),
        (["close", "--top", "0"], "--top"),
        (["close", "--dialect", "cobol"], "cobol"),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str, capsys: Capture) -> None:
    assert run_command(["factor", "similar", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_bad_line_of_a_library_is_named_with_its_place(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.txt").write_text("close - open\nrank(clos)\n")
    assert run_command(["factor", "similar", "close", "--library", "mine.txt"]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "--library: mine.txt:2:6: unknown field 'clos'. Did you mean close?" in text
