"""The benchmark of the agents' memory runs, and shows what it says it shows."""

from __future__ import annotations

import pytest

from bench import memory


def test_what_agents_read_stops_growing(capsys: pytest.CaptureFixture[str]) -> None:
    memory.main(["--sizes", "60", "900", "1200"])
    rows = [line.replace(",", "").split() for line in capsys.readouterr().out.splitlines()[1:]]
    few, many, more = (int(row[1]) for row in rows)
    assert few < many
    assert more < 1.1 * many
