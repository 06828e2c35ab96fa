"""The library as a file: the same for the same library, taken in whole or not at all, and never as proven here."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.evaluation.admission import add_by_hand, retire_factor
from alphaloom.evidence.errors import LibraryFileError
from alphaloom.factors import parse
from alphaloom.ledger import Ledger, LibraryRow, RunLocked, StatusChange, write_json
from alphaloom.library.entries import list_entries
from alphaloom.library.exchange import export_library, import_library

from ..evidence.lab import read

FIRST, SECOND = "rank(ts_skew(volume, 31))", "ts_mad(close / open, 23) * -1"
JUDGED = {
    "horizon_days": 5,
    "returns": "residual",
    "label_scale": "own_risk",
    "sign": -1,
    "judged_to": "2020-06-30",
    "rank_ic": -0.03,
    "deviation": 0.08,
    "sectors": True,
    "names": ["A", "B"],
}


@pytest.fixture
def file(tmp_path: Path, ledger: Ledger) -> Path:
    """Return the file of a library with a judged and a retired factor."""
    one = parse(FIRST)
    row = LibraryRow(
        one.id, FIRST, one.canonical_text, "why", "", {"fields": ["volume"]}, "imported", {"judged": JUDGED}
    )
    ledger.library.record(
        rows=[row], standings=[StatusChange(one.id, "imported", "live", "hand", "from x", "2026-01-01")]
    )
    add_by_hand(ledger, parse(SECOND), "2026-01-01")
    retire_factor(ledger, parse(SECOND).id, "crowded", "2026-01-02")
    path = tmp_path / "library.json"
    write_json(path, export_library(ledger))
    return path


def test_a_library_comes_over_with_its_claims_and_its_retirements(file: Path, tmp_path: Path) -> None:
    with read(tmp_path / "other") as other:
        told = import_library(other, file, "2026-02-01")
        assert (told["added"], told["known"]) == (2, 0)
        found = {one.text: one for one in list_entries(other)}
        assert (found[FIRST].status, found[SECOND].status) == ("live", "retired")
        assert (found[FIRST].proof, found[SECOND].proof) == (
            "judged elsewhere, not proven here",
            "from elsewhere, judged nowhere",
        )
        terms = found[FIRST].terms
        assert terms is not None
        assert terms.full() == JUDGED
        assert export_library(other)["factors"][0]["judged"] == json.loads(file.read_text())["factors"][0]["judged"]


def test_a_formula_of_another_dialect_comes_over_in_our_own_language(tmp_path: Path, ledger: Ledger) -> None:
    foreign = parse("Corr($close, Log($volume + 1), 20)", dialect="qlib")
    (kept,) = [add_by_hand(ledger, foreign, "2026-01-01").entry]
    assert (kept.text, kept.expression.id) == (foreign.shown, foreign.id)
    old = LibraryRow(foreign.id, foreign.text, foreign.shown, "", "", {"fields": ["close", "volume"]}, "by_hand")
    write_json(tmp_path / "own.json", export_library(ledger))
    with Ledger.open(tmp_path / "older", clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as other:
        other.library.record(
            rows=[old], standings=[StatusChange(foreign.id, "added", "live", "hand", "", "2026-01-01")]
        )
        assert export_library(other)["factors"][0]["text"] == foreign.shown
    with Ledger.open(tmp_path / "new", clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as other:
        assert import_library(other, tmp_path / "own.json", "2026-01-02")["ids"] == [foreign.id]


def test_a_file_that_is_taken_in_twice_adds_nothing(file: Path, ledger: Ledger, tmp_path: Path) -> None:
    with read(tmp_path / "other") as other:
        import_library(other, file, "2026-02-01")
        before = (other.library.rows(), other.library.standings(), export_library(other))
        assert import_library(other, file, "2026-03-01")["added"] == 0
        assert (other.library.rows(), other.library.standings(), export_library(other)) == before
    assert import_library(ledger, file, "2026-03-01")["added"] == 0


def test_the_same_library_is_the_same_bytes(file: Path, ledger: Ledger, tmp_path: Path) -> None:
    assert write_json(tmp_path / "again.json", export_library(ledger)) == file.read_bytes()


def change(body: dict[str, Any], *path: Any, to: Any) -> None:
    *way, last = path
    for step in way:
        body = body[step]
    body[last] = to


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("format",), "x", "is no library file"),
        (("version",), 2, "another version"),
        (("factors", 1, "id"), "f0", "is not that of its formula"),
        (("factors", 1, "text"), "rank(", "cannot be read"),
        (("factors", 0, "status"), "accepted", "factors.0.status"),
        (("factors", 0, "judged", "rank_ic"), 1.5, "factors.0.judged.rank_ic"),
        (("factors", 0, "judged", "rank_ic"), 0.03, "not in the direction of its sign"),
        (("factors", 0, "judged", "judged_to"), "soon", "judged_to"),
        (("factors", 0, "proven"), True, "Extra inputs are not permitted"),
        (("factors",), None, "factors"),
    ],
)
def test_a_bad_file_is_refused_and_nothing_is_written(
    file: Path, tmp_path: Path, path: tuple[Any, ...], to: Any, said: str
) -> None:
    body = json.loads(file.read_text())
    body["factors"].sort(key=lambda one: one["judged"] is None)
    change(body, *path, to=to)
    file.write_text(json.dumps(body))
    with read(tmp_path / "other") as other:
        with pytest.raises(LibraryFileError, match=said):
            import_library(other, file, "2026-02-01")
        assert (other.library.rows(), other.library.standings()) == ([], [])


@pytest.mark.parametrize("body", ["{", "[]", "3", '"alphaloom library"'])
def test_what_is_no_library_at_all_is_said_to_be_none(tmp_path: Path, ledger: Ledger, body: str) -> None:
    (tmp_path / "x.json").write_text(body)
    with pytest.raises(LibraryFileError, match=r"x\.json is n"):
        import_library(ledger, tmp_path / "x.json", "2026-02-01")
    with pytest.raises(LibraryFileError, match="cannot be read"):
        import_library(ledger, tmp_path / "gone.json", "2026-02-01")


def test_nobody_writes_to_the_library_while_it_is_read_for_changes(file: Path, ledger: Ledger) -> None:
    """A watch that read a factor as live would set it back after a person retired it."""
    name = parse(FIRST).id
    with ledger.library.lock():
        for write in (
            lambda: retire_factor(ledger, name, "crowded", "2026-01-03"),
            lambda: add_by_hand(ledger, parse("rank(open)"), "2026-01-03"),
            lambda: import_library(ledger, file, "2026-01-03"),
        ):
            with pytest.raises(RunLocked):
                write()
    assert retire_factor(ledger, name, "crowded", "2026-01-03").status == "retired"
