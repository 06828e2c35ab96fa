"""The days on which a run screens code: kept by the run, known to no author."""

from pathlib import Path

import pytest

from alphaloom.evidence.values.sandbox_settings import note_screening_seed, read_screening_seed
from alphaloom.ledger import Ledger, Run
from alphaloom.ledger.errors import LedgerConflict

from .lab import clock


def test_a_run_keeps_the_seed_that_was_drawn_for_it(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("one", {}, 7, "data", "2026-01-01"))
        assert read_screening_seed(ledger, "one") is None
        note_screening_seed(ledger, "one", 123)
        assert read_screening_seed(ledger, "one") == 123
        with pytest.raises(LedgerConflict):
            note_screening_seed(ledger, "one", 124)
