"""The measurement of reading runs."""

from __future__ import annotations

import pytest

from bench.reading import main


@pytest.mark.integration
def test_both_readers_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--days", "20", "--symbols", "3", "--processes", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["prices.csv", "prices.parquet"]
    assert all("times the memory" in line for line in lines)
