"""How a run's combination is shown."""

from __future__ import annotations

from typing import Any

from alphaloom.desk.cli.evidence.combine import Comparison, compare_combiners
from alphaloom.evaluation.closing import Results

from .example import results

ROW = {"rank_ic": 0.031, "t": 3.2, "turnover": 0.1, "gross_sharpe": 2.0, "net_sharpe": 1.1, "half_life_days": 6.0,
       "capacity": {"at_10_percent_of_volume": 31_400_000.0, "break_even": 640_000.0}}  # fmt: skip  # a table
TOLD = {"mean": 0.002, "low": 0.001, "high": 0.003, "days": 900, "tie": False}
EARNED = {"mean": 0.00004, "low": -0.0001, "high": 0.0002, "days": 900, "tie": True}


def compared_of(record: dict[str, Any]) -> Comparison | None:
    return compare_combiners(Results.read(record))


def made(**changed: Any) -> dict[str, Any]:
    window = {
        "combiners": {"adaptive": ROW, "equal": ROW},
        "differences": [{"of": "adaptive", "less": "equal", "rank_ic": TOLD, "net_return": EARNED}],
    }
    compared = {"note": "All flatter alike.", "trading_rate": {"adaptive": 0.5, "equal": 1.0}, "search": window}
    combination = {
        "file": "combination.parquet",
        "combiner": "adaptive",
        "chosen": "named",
        "trading_rate": 0.5,
        "compared": compared,
    }
    return results() | {"combination": combination} | changed


def test_the_table_names_the_chosen_one_and_says_what_is_a_tie() -> None:
    found = compared_of(made())
    assert found is not None
    assert found.sentence == "Combined by adaptive weights (named), traded 50 % of the way each day."
    assert [(chosen, line[:2]) for chosen, line in found.lines] == [
        (True, ["search", "adaptive"]),
        (False, ["search", "equal"]),
        (True, ["sealed", "adaptive"]),
    ]
    assert {len(line) for _, line in found.lines} == {len(found.heads)}
    assert found.lines[0][1][8:] == ["640k", "31m", "0.50"]
    (said,) = found.differences
    assert "RankIC +0.0020 (+0.0010 to +0.0030, significant)" in said
    assert "after costs +0.40" in said
    assert said.endswith("not significant) bp a day")


def test_the_tested_combination_has_lines_of_its_own() -> None:
    record = made()
    members = record["accepted"][2]["members"]
    record["combination"] |= {"tested": True, "factors": members}
    found = compared_of(record)
    assert found is not None
    assert [(chosen, line[:2]) for chosen, line in found.lines] == [
        (True, ["search", "adaptive, as tested"]),
        (False, ["search", "adaptive"]),
        (False, ["search", "equal"]),
        (True, ["selection", "adaptive, as tested"]),
        (True, ["sealed", "adaptive, as tested"]),
    ]
    assert {len(line) for _, line in found.lines} == {len(found.heads)}


def test_sealed_days_stand_there_only_once_they_were_opened() -> None:
    found = compared_of(made(sealed=None))
    assert found is not None
    assert {line[0] for _, line in found.lines} == {"search"}


def test_a_run_of_before_there_was_a_choice_has_no_table() -> None:
    assert compared_of(results()) is None
