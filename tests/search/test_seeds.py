"""A person's formulas, in every form that they may come in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from alphaloom.evidence.errors import LibraryFileError
from alphaloom.ledger import Ledger, LibraryRow
from alphaloom.library.exchange import export_library
from alphaloom.search.seeds import read_seeds

from ..evidence.lab import SMALL, Lab, clock, market

FORMULA = "ts_mean(returns, 23) / ts_std(returns, 41)"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("own.txt", f"# mine\n\n{FORMULA}\n -returns \n{FORMULA}\n"),
        ("own.yaml", f"- {FORMULA}\n- text: -returns\n"),
        ("own.json", json.dumps([FORMULA, "-returns"])),
    ],
)
def test_plain_lists(tmp_path: Path, name: str, text: str) -> None:
    rows = read_seeds(write(tmp_path, name, text))
    assert [row["text"] for row in rows] == [FORMULA, "-returns"]
    assert {row["direction"] for row in rows} == {1}


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(LibraryFileError) as caught:
        read_seeds(write(tmp_path, "own.yaml", "- {text: x, direction: 2}\n- {formula: y}\n- 3\n"))
    assert caught.value.field == "steer.seed_library"
    for place in ("0.direction", "1.text", "1.formula", "2."):
        assert place in caught.value.message


@pytest.mark.parametrize(
    ("name", "text"), [("own.yaml", "3"), ("own.yaml", "- ["), ("own.txt", "# nothing"), ("own.json", "{}")]
)
def test_what_is_no_list_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(LibraryFileError):
        read_seeds(write(tmp_path, name, text))
    with pytest.raises(LibraryFileError, match="cannot be read"):
        read_seeds(tmp_path / "absent.txt")


def test_an_exported_library_is_read_without_what_was_retired(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "w", clock=clock) as ledger:
        evaluator = Lab.open(ledger, "run", market(), SMALL).evaluator
        expression = evaluator.read(FORMULA)
        row = LibraryRow(expression.id, FORMULA, expression.shown, "h", "run", {"fields": ["returns"], "rank_ic": 0.02})
        ledger.library.add(row)
        path = write(tmp_path, "library.json", json.dumps(export_library(ledger)))
    (only,) = read_seeds(path)
    assert (only["text"], only["direction"]) == (FORMULA, 1)
    body = json.loads(path.read_text())
    body["factors"][0]["status"] = "retired"
    with pytest.raises(LibraryFileError, match="0 formulas"):
        read_seeds(write(tmp_path, "retired.json", json.dumps(body)))
