"""Files as tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from alphaloom.market import read_table


def test_the_row_numbers_that_pandas_stores_are_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"date": ["2020-01-01"] * 3, "symbol": list("ABC"), "close": [1.0, 2.0, 3.0]})
    frame[frame["close"] > 1].to_parquet(tmp_path / "part.parquet")
    assert set(read_table(tmp_path / "part.parquet").columns) == {"date", "symbol", "close"}
