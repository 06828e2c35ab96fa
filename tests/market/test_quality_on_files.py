"""What is known to be wrong in real panels is found in them, and little else."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pa_parquet
import pytest
from numpy.typing import NDArray

from alphaloom.market import Panel, PanelSource, read_panel
from alphaloom.market.quality.jumps import find_splits
from alphaloom.market.quality.moves import LogMoves

from .planted import found

pytestmark = pytest.mark.integration

DATA = Path(os.environ.get("ALPHALOOM_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
MEMBERS, CRAWL = "us_sp500_2008_2017.parquet", "us_crawl_top1500_2015_2017.parquet"
BIG = np.log(1.4)


def file(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not on this machine; set ALPHALOOM_DATA to its folder")
    return DATA / name


@cache
def members() -> Panel:
    return read_panel(PanelSource(file(MEMBERS)))


@cache
def crawl() -> Panel:
    return read_panel(PanelSource(file(CRAWL), derive={"prices": "adj_factor"}))


def test_todays_members_are_survivors_whose_levels_and_volumes_know_later_splits() -> None:
    said = found(members())
    assert {"survivorship", "back-adjusted levels", "adjusted volume"} <= set(said)
    assert said["survivorship"].observation.startswith("all 494 names still trade on the last day")
    assert said["twin names"].cases == ("GOOG = GOOGL",)


def test_a_panel_whose_names_vanish_is_not_taken_for_survivors_nor_its_quoted_volume_for_adjusted() -> None:
    said = found(crawl())
    assert "back-adjusted levels" in said
    assert not {"survivorship", "adjusted volume", "stale prices", "shifted names", "shifted columns"} & set(said)


def test_rows_of_other_securities_and_splits_that_the_crawl_missed_are_found() -> None:
    said = found(crawl())
    assert said["bad ticks"].cases == ("NEE 2016-11-21 (4 days)", "MS 2017-02-14 (2 days)")
    jumps = {f"{crawl().symbols[name]} {crawl().dates[day]}" for day, name, _ in find_splits(LogMoves(crawl()))}
    assert {"NFLX 2015-07-14", "HLT 2017-01-04", "CF 2015-06-18", "NEE 2016-06-09"} <= jumps
    assert len(jumps) <= 20


def true_splits() -> dict[tuple[str, str], float]:
    """Return the splits of the vendor's list by symbol and day, new shares for an old one."""
    rows = pa_parquet.read_table(file("us_sp500_2008_2017_actions.parquet")).to_pylist()
    return {(row["symbol"], str(row["date"].date())): row["split"] for row in rows if row["split"] not in (None, 1.0)}


def test_of_a_hundred_true_splits_nine_in_ten_are_found_in_quoted_prices() -> None:
    panel, known = members(), true_splits()
    ratio = panel.fields["close_raw"] / panel.fields["close"]
    later: NDArray[np.float64] = np.ones(ratio.shape)
    for (symbol, day), shares in known.items():
        later[: np.searchsorted(panel.dates, np.datetime64(day)), panel.symbols.index(symbol)] *= shares
    fields = {name: panel.fields[name] * ratio for name in ("open", "high", "low", "close")}
    quoted = Panel.build(panel.dates, panel.symbols, {**fields, "volume": panel.fields["volume"] / later})
    seen = {(quoted.symbols[name], str(quoted.dates[day])) for day, name, _ in find_splits(LogMoves(quoted))}
    big = {place for place, shares in known.items() if abs(np.log(shares)) > BIG}
    assert len(big) > 100
    assert len(big & seen) > 0.9 * len(big)
    assert len(seen - set(known)) < 25  # spin-offs, nearly all of them
