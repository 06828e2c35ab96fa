from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.ledger import Ledger, Run


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "workspace", clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        ledger.start_run(Run("one", {"seed": 1}, 1, "data", "2026-01-02"))
        yield ledger
