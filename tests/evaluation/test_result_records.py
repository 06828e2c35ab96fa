"""What `results.json`, `curves.json` and a case hold is what their typed records say: no key more, no value changed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from alphaloom.evaluation import CampaignResult, ResultsBuilder
from alphaloom.evaluation.closing import Curves, DailyRankIC, Results, ReviewCase
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


def test_a_result_becomes_a_table_with_the_sealed_figures_first(tmp_path: Path) -> None:
    record = example.results()
    name, member = record["accepted"][0]["id"], record["rejected"][0]["id"]
    figures = {"sign": -1, "days": 200, "rank_ic": 0.012, "t": 1.5, "net_sharpe": 0.4, "p_value": 0.07}
    record["sealed"] = {"opened": True, "number": 1, "factors": {name: figures, member: figures}}
    frame = CampaignResult("r", tmp_path, record, None).to_frame()
    assert list(frame.columns[:4]) == ["verdict", "sealed_days", "sealed_rank_ic", "sealed_t"]
    assert frame.loc[name, "sealed_net_sharpe"] == frame.loc[member, "sealed_net_sharpe"] == 0.4
    search = record["accepted"][0]["metrics"]["search"]
    assert frame.loc[name, "search_turnover"] == search["turnover"]
    tested = [entry["id"] for word in ("accepted", "watchlist", "rejected") for entry in record[word] if entry["trial"]]
    assert {*frame.index} == {*tested, member}
    assert list(frame["verdict"].unique()) == ["accepted", "watchlist", "rejected"]
    assert frame.loc[record["watchlist"][0]["id"]].filter(like="sealed").isna().all()
    assert list(frame["members"][:3]) == [1, 1, 2]


def test_without_a_test_the_table_is_empty_and_keeps_its_columns(tmp_path: Path) -> None:
    full = CampaignResult("r", tmp_path, example.results(), None).to_frame()
    empty = CampaignResult("r", tmp_path, {"format": 1}, None).to_frame()
    assert len(empty) == 0
    assert list(empty.dtypes.items()) == list(full.dtypes.items())


def test_a_day_without_a_rank_ic_is_nan_in_the_table() -> None:
    frame = DailyRankIC(dates=("2020-01-02", "2020-01-03"), rank_ic=(None, 0.25)).to_frame()
    assert (frame.index.name, list(frame.columns), str(frame["rank_ic"].dtype)) == ("date", ["rank_ic"], "float64")
    assert frame["rank_ic"].isna().tolist() == [True, False]
    assert len(DailyRankIC().to_frame()) == 0
