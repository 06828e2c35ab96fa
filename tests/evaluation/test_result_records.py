"""What `results.json`, `curves.json` and a case hold is what their typed records say: no key more, no value changed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from alphaloom.evaluation import ResultsBuilder
from alphaloom.evaluation.closing import Curves, Results, ReviewCase
from alphaloom.market import Panel

from ..desk import example
from ..evidence.lab import KNOWN, Lab

ARCHIVE = Path(__file__).parents[1] / "golden" / "b756a02.tar.xz"
Make = Callable[..., Lab]
Kind = type[Results] | type[Curves] | type[ReviewCase]


def spell(record: Any) -> str:
    """Return the bytes of a file as text: `1` and `1.0` differ in it."""
    return json.dumps(record, sort_keys=True, allow_nan=False)


def assert_typed(record: dict[str, Any], kind: Kind = Results) -> None:
    """Check each value against its type without conversion, and that the records are written as they were read."""
    kind.model_validate_json(spell(record), strict=True)
    assert spell(kind.read(record).record()) == spell(record)


@pytest.mark.parametrize("record", [example.results(), example.nothing_accepted()], ids=["full", "nothing accepted"])
def test_the_example_of_a_run_is_typed(record: dict[str, Any]) -> None:
    assert_typed(record)


def test_the_example_of_curves_is_typed() -> None:
    curves = example.curves()
    assert spell(Curves.read(curves).record()) == spell(curves)


def test_a_run_of_version_b756a02_is_typed() -> None:
    with tarfile.open(ARCHIVE) as archive:
        names = [name for name in archive.getnames() if name.endswith(("results.json", "curves.json"))]
        files = {Path(name).name: json.load(archive.extractfile(name) or pytest.fail(name)) for name in names}
    assert_typed(files["results.json"])
    assert spell(Curves.read(files["curves.json"]).record()) == spell(files["curves.json"])


def test_what_is_built_is_typed(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    run.judged(KNOWN)
    builder = ResultsBuilder(run.evaluator)
    record = builder.record()
    assert_typed(record)
    (name,) = [entry["id"] for entry in record["accepted"]]
    assert_typed(builder.case(name), ReviewCase)


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(ValidationError, match="trials"):
        Results.read({"trials": "many"})


def test_an_unknown_key_is_left_out() -> None:
    assert Results.read({"trials": 2, "of a later version": 1}).record() == {"trials": 2}


def test_the_parts_of_a_run_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Results().trials = 3
