"""Batches of formulas get the sheets of a campaign, here and by other processes; the file does not show restarts."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.evaluation.batches import (
    BenchParts,
    FormulaBench,
    FormulaRow,
    MeasuredFormula,
    RemoteSheets,
    SheetParts,
    SheetTable,
    read_sheet_facts,
)
from alphaloom.evaluation.batches.formula_bench import EXPOSURES, name_weaknesses
from alphaloom.evaluation.drafts import pick_drafts
from alphaloom.evidence import Window
from alphaloom.evidence.scoring.exposures import Exposures
from alphaloom.factors import Engine
from alphaloom.ledger import Ledger
from alphaloom.sandbox import Crew, SandboxUnavailable

from ..evidence.lab import KNOWN, SMALL, Lab, claim_of, market

FORMULAS = [KNOWN, "rank(close)", "-ts_std(returns, 20)", "rank(close) * 2", "ts_mean(volume, 5) / volume"]


class LocalCrew:
    """A crew without a cluster: a bench that travelled as bytes answers at once, or the cluster is gone."""

    workers = 2

    def __init__(self, parts: BenchParts, *, gone: bool = False) -> None:
        self.bench: FormulaBench = pickle.loads(pickle.dumps(parts)).build()
        self.gone = gone
        self.batches: list[list[str]] = []

    def submit(self, batch: list[str]) -> Future[list[MeasuredFormula]]:
        self.batches.append(batch)
        future: Future[list[MeasuredFormula]] = Future()
        if self.gone:
            future.set_exception(SandboxUnavailable("the workers died", field="workers"))
        else:
            future.set_result(self.bench(batch))
        return future


def on_crew(lab: Callable[..., Lab], run: str, *, gone: bool = False) -> tuple[Lab, list[LocalCrew]]:
    """Return a run whose formulas a crew scores, and the crews that were hired."""
    plain, crews = lab(run), list[LocalCrew]()
    evaluator = plain.evaluator
    window, published = evaluator.windows.search, evaluator.library.published_values

    def hire(parts: BenchParts) -> Crew:
        crews.append(LocalCrew(parts, gone=gone))
        return cast("Crew", crews[-1])

    remote = RemoteSheets(
        hire, lambda: BenchParts(evaluator.panel, evaluator.settings, window, published.pack_sketches())
    )
    return Lab(plain.ledger, replace(evaluator, remote=remote)), crews


def test_sheets_of_other_processes_are_those_of_this_one(lab: Callable[..., Lab]) -> None:
    here, (there, crews) = lab("here"), on_crew(lab, "there")
    claim = claim_of(FORMULAS[0])
    chosen = pick_drafts(there.evaluator, FORMULAS, claim, 3)["chosen"]
    assert sum(map(len, crews[0].batches)) == len(chosen) > 1
    for text in FORMULAS:
        expression = here.evaluator.read(text)
        assert there.evaluator.scoring.measure(expression) == here.evaluator.scoring.measure(expression)
    assert len(crews) == 1
    asked = [text for batch in crews[0].batches for text in batch]
    assert len(asked) == len({*asked}) == len(FORMULAS)  # what was asked ahead was not asked again


def test_a_cluster_that_is_gone_costs_time_only(lab: Callable[..., Lab]) -> None:
    here, (there, crews) = lab("here"), on_crew(lab, "there", gone=True)
    with pytest.warns(UserWarning, match="scored in this process"):
        first = there.evaluator.scoring.measure(there.evaluator.read(FORMULAS[0]))
    assert first == here.evaluator.scoring.measure(here.evaluator.read(FORMULAS[0]))
    there.evaluator.scoring.measure(there.evaluator.read(FORMULAS[1]))
    assert len(crews[0].batches) == 1


def test_what_cannot_be_read_or_computed_stops_no_other_formula(lab: Callable[..., Lab]) -> None:
    evaluator = lab().evaluator
    (score,) = [evaluator.scoring.open_bench("alphaloom")]
    texts = ["rank(", "rank(close)", "group_rank(close, subindustry)", "def factor(panel):\n    return panel['close']"]
    broken, fine, ungrouped, code = next(score(iter([texts])))
    assert (broken.factor_id, broken.sheet) == ("", None)
    assert "missing" in broken.error
    assert fine.sheet is not None
    assert fine.sheet["t"] == evaluator.scoring.measure(evaluator.read("rank(close)"))["t"]
    assert "subindustry" in ungrouped.error
    assert "FILE.py" in code.error


def make_rows(table: SheetTable, count: int) -> list[dict[str, Any]]:
    """Return rows, every third without a sheet."""
    bench = MeasuredFormula("f0123456789abcdef", SHEET)
    failed = MeasuredFormula("", None, "unknown operator")
    return [
        table.fill(FormulaRow(f"rank(close) + {i}", "" if i % 2 else f"n{i}"), failed if i % 3 == 0 else bench)
        for i in range(count)
    ]


FIGURES = ("rank_ic", "ic", "icir", "t", "turnover", "gross_sharpe", "net_sharpe", "coverage", "merit")
SHEET: dict[str, Any] = {
    **{name: 0.25 + place for place, name in enumerate(FIGURES)},
    "days": 100, "decay": {"1": 0.1, "20": None}, "quantile_returns": [0.1, 0.2, 0.3, 0.4, 0.5],
    "by_year": {"2010": 0.5}, "fields": ["close"], "weaknesses": [{"code": "weak"}],
    "warnings": [{"code": "data"}, {"code": "thin_coverage"}],
}  # fmt: skip  # a table
TABLE = SheetTable(Window("search", 0, 100, "2010-01-04", "2010-05-26"), ("2010",), 5)


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 2500), max_size=6), overlap=st.integers(0, 40))
def test_the_bytes_of_a_file_do_not_depend_on_its_parts(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], overlap: int
) -> None:
    folder, rows = tmp_path_factory.mktemp("sheets"), make_rows(TABLE, 2500)
    SheetParts(folder / "one", TABLE).add(0, rows)
    SheetParts(folder / "one", TABLE).assemble(folder / "one.parquet", {"formulas": 2500})
    parts = SheetParts(folder / "many", TABLE)
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 2500], strict=True):
        start = max(first - overlap, 0)  # another process may have written the same rows
        if start < last:
            parts.add(start, rows[start:last])
        assert parts.count_rows() == last
    parts.assemble(folder / "many.parquet", {"formulas": 2500})
    assert (folder / "many.parquet").read_bytes() == (folder / "one.parquet").read_bytes()
    assert not (folder / "many").exists()


def test_rows_after_a_gap_do_not_count(tmp_path: Path) -> None:
    parts, rows = SheetParts(tmp_path / "parts", TABLE), make_rows(TABLE, 30)
    parts.add(0, rows[:10])
    parts.add(20, rows[20:])
    assert parts.count_rows() == 10


def test_every_figure_is_a_typed_column_with_its_unit(tmp_path: Path) -> None:
    parts = SheetParts(tmp_path / "parts", TABLE)
    parts.add(0, make_rows(TABLE, 3))
    parts.assemble(tmp_path / "out.parquet", {"formulas": 3})
    table = pq.read_table(tmp_path / "out.parquet")
    assert read_sheet_facts(tmp_path / "out.parquet") == {"formulas": 3}
    first, second, _ = table.to_pylist()
    assert (first["error"], first["id"], first["t"]) == ("unknown operator", None, None)
    assert (second["error"], second["t"], second["quintile_5"], second["rank_ic_2010"]) == (None, 3.25, 0.5, 0.5)
    assert (second["rank_ic_1d"], second["rank_ic_20d"], second["warnings"]) == (0.1, None, ["thin_coverage"])
    figures = [field for field in table.schema if str(field.type) in {"double", "int32"}]
    assert {*FIGURES, "days"} <= {field.name for field in figures}
    assert all(field.metadata[b"unit"] and field.metadata[b"meaning"] for field in figures)


def test_a_sheet_has_no_figure_without_a_column(lab: Callable[..., Lab]) -> None:
    evaluator = lab().evaluator
    sheet = evaluator.scoring.measure(evaluator.read("rank(close)"))
    table = SheetTable.of(evaluator.panel, evaluator.windows.search, evaluator.settings)
    row = table.fill(FormulaRow("rank(close)"), MeasuredFormula("f", sheet))
    assert {*row} == {*table.schema.names}
    assert {*sheet} - {*row} == {"window", "horizon_days", "decay", "quantile_returns", "by_year"}


def test_sketches_that_travelled_are_those_of_the_panel(ledger: Ledger, lab: Callable[..., Lab]) -> None:
    evaluator = lab().evaluator
    published = evaluator.library.published_values
    parts = BenchParts(market(), SMALL, evaluator.windows.search, published.pack_sketches())
    values = Engine(market()).evaluate(["rank(close)"])[0]
    built = parts.build().published
    assert built.sketched().names == published.sketched().names
    assert np.array_equal(built.sketched().sketches.buckets, published.sketched().sketches.buckets)
    assert built.beyond(values, 0.7) == published.beyond(values, 0.7)


WINDOW = Window("search", 0, 60, "a", "b")
SOUND: dict[str, Any] = {
    "rank_ic": 0.03,
    "t": 4.0,
    "turnover": 0.1,
    "horizon_days": 5,
    "gross_sharpe": 2.0,
    "net_sharpe": 1.0,
    "decay": {"1": 0.04, "10": 0.03},
    "by_year": {"2010": 0.03, "2011": 0.04, "2012": 0.02},
}
RNG = np.random.default_rng(0)
FRAME = RNG.normal(size=(60, 40))
EXPOSED = Exposures(
    beta=RNG.normal(size=(60, 40)),
    size=RNG.normal(size=(60, 40)),
    volatility=RNG.normal(size=(60, 40)),
    momentum=RNG.normal(size=(60, 40)),
    price=RNG.normal(size=(60, 40)),
    sector=np.zeros(40, np.int16),
)


def named(values: np.ndarray[Any, np.dtype[np.float64]] = FRAME, **changed: Any) -> dict[str, Any]:
    weaknesses = name_weaknesses(SOUND | changed, values.astype(np.float32), EXPOSED, WINDOW)
    return {weakness["code"]: weakness["value"] for weakness in weaknesses}


def test_a_sound_factor_has_none() -> None:
    assert named() == {}


@pytest.mark.parametrize(
    ("code", "value", "changed"),
    [
        ("weak", 2.9, {"t": 2.9}),
        ("weak", -2.9, {"t": -2.9}),
        ("weak", 0.0, {"t": None}),
        ("turnover", 0.14, {"turnover": 0.14}),
        ("costs", -0.1, {"net_sharpe": -0.1}),
        ("decay", 0.25, {"decay": {"1": 0.04, "10": 0.01}}),
        ("decay", -0.5, {"decay": {"1": -0.04, "10": 0.02}}),
        ("one_year", 0.0, {"by_year": {"2010": 0.09, "2011": 0.01, "2012": -0.01}}),
        ("one_year", 0.0, {"rank_ic": -0.03, "by_year": {"2010": -0.09, "2011": 0.01, "2012": -0.01}}),
    ],
)
def test_a_figure_beyond_its_bound_is_named(code: str, value: float, changed: dict[str, Any]) -> None:
    assert named(**changed) == {code: pytest.approx(value)}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"t": 2.9}, "|t| = 2.9 in sample, below the screening threshold of 3"),
        ({"t": -0.7}, "|t| = 0.7 in sample, below the screening threshold of 3"),
        ({"t": None}, "t is undefined in sample"),
        ({"turnover": 0.14}, "14% of the book is traded each day (threshold 13%)"),
        ({"net_sharpe": -0.1}, "Sharpe +2.00 before costs, -0.10 after costs"),
        ({"decay": {"1": 0.04, "10": 0.01}}, "less than half of the one-day RankIC remains at ten days (25%)"),
        (
            {"by_year": {"2010": 0.09, "2011": 0.01, "2012": -0.01}},
            "less than half of the RankIC remains without the best year (0%)",
        ),
    ],
)
def test_a_weakness_states_its_figure_and_its_threshold(changed: dict[str, Any], said: str) -> None:
    (weakness,) = name_weaknesses(SOUND | changed, FRAME.astype(np.float32), EXPOSED, WINDOW)
    assert weakness["message"] == said


@pytest.mark.parametrize(
    "changed",
    [
        {"t": -3.1},
        {"turnover": None, "gross_sharpe": None, "net_sharpe": None},
        {"decay": {"1": None, "10": 0.01}},
        {"decay": {"1": 0.04, "10": None}},
        {"by_year": {"2010": 0.09, "2011": 0.0}},  # two years say nothing about one
        {"gross_sharpe": 0.2, "net_sharpe": -1.0},
    ],
)
def test_what_is_undefined_or_within_its_bound_is_not(changed: dict[str, Any]) -> None:
    assert named(**changed) == {}


@pytest.mark.parametrize("name", ["beta", "size", "volatility", "momentum", "price"])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_exposure_in_disguise_is_named(name: str, sign: int) -> None:
    disguised = sign * getattr(EXPOSED, name) + 0.5 * FRAME
    weaknesses = name_weaknesses(SOUND, disguised.astype(np.float32), EXPOSED, WINDOW)
    assert [weakness["code"] for weakness in weaknesses] == ["exposure"]
    assert weaknesses[0]["message"].startswith(f"exposure to {EXPOSURES[name]}: rank correlation ")
    assert weaknesses[0]["message"].endswith("(threshold 0.5)")
    assert np.sign(weaknesses[0]["value"]) == sign
