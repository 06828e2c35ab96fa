"""Every look is counted, whatever fails between the count and the look, and however the data is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.ledger import Ledger
from alphaloom.market import Panel

from ..evidence.lab import SMALL, Lab, market, read

Make = Callable[..., Lab]
ROOT = Path(__file__).resolve().parents[2] / ".root"
JUNK = ("rank(ts_skew(volume, 30)) * rank(open)", "ts_kurt(high / low, 25)", "ts_rsquare(cap / volume, 21)")
WORKER = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom.evaluation import PanelContext, Budget
from alphaloom.evidence import Claim, EvidenceSettings, Proposal
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.ledger import Ledger
from alphaloom.market import SyntheticConfig
from alphaloom.market import simulate

score = Scorer.score
def dies(self, values, window, sign=None):
    if window.name == "selection":
        os.kill(os.getpid(), signal.SIGKILL)
    return score(self, values, window, sign)
Scorer.score = dies
panel = simulate(SyntheticConfig(seed=1, days=420, names=60), []).panel
ledger = Ledger.open(Path(sys.argv[2]), clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
bench = PanelContext.set_up(panel, ledger, EvidenceSettings.model_validate_json(sys.argv[3]), "small")
evaluator = bench.evaluator("killed", Budget(evaluations=9, trials=3))
text = sys.argv[4]
direction = -1 if evaluator.score(text)["rank_ic"] < 0 else 1
claim = Claim("h", "control", "of the tests", direction, 5, tuple(sorted(evaluator.read(text).fields)))
evaluator.submissions.submit([evaluator.propose(Proposal(text, claim, "k"))["id"]])
"""


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_kill_9_between_the_trial_and_the_look_hides_nothing(tmp_path: Path) -> None:
    with read(tmp_path) as ledger:
        Lab.open(ledger, "killed", market(), SMALL)
    command = [sys.executable, "-c", WORKER, str(ROOT), str(tmp_path), SMALL.model_dump_json(), JUNK[0]]
    died = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()[-1500:]
    with read(tmp_path) as ledger:
        (hidden,) = ledger.trials.all()
        assert (hidden.number, hidden.run, hidden.outcome) == (1, "killed", None)
        after = Lab.open(ledger, "after", market(), SMALL)
        second = after.judged(JUNK[1])  # somebody else's look, while that one is open
        assert second.trial == 2
        assert (second.selection or {})["level"] == pytest.approx(lond_level(2, 0), rel=1e-5)
        resumed = Lab.open(ledger, "killed", market(), SMALL)
        verdict = resumed.evaluator.submissions.submit([hidden.subject])[0]
        assert (verdict.trial, verdict.factor_id) == (1, hidden.subject)
        assert [trial.number for trial in ledger.trials.all()] == [1, 2]
        assert resumed.evaluator.meter.trials_spent() == 1
        assert all(trial.outcome is not None for trial in ledger.trials.all())


def without_one_name(panel: Panel) -> Panel:
    fields = {name: np.asarray(values)[:, :-1] for name, values in panel.fields.items() if name != "returns"}
    return Panel.build(panel.dates, panel.symbols[:-1], fields, panel.universe[:, :-1])


def test_one_more_day_or_one_name_fewer_begins_no_new_count(lab: Make) -> None:
    whole = market()
    first = lab("first", panel=whole.rows(0, whole.days - 1)).judged(JUNK[0])
    longer = lab("longer", panel=whole).judged(JUNK[1])
    fewer = lab("fewer", panel=without_one_name(whole))
    again = fewer.judged(JUNK[0])  # another market, so another look at the same formula
    assert [first.trial, longer.trial, again.trial] == [1, 2, 3]
    assert (again.selection or {})["level"] == pytest.approx(lond_level(3, 0), rel=1e-5)
    assert fewer.evaluator.windows.selection.first_day == lab("x", panel=whole).evaluator.windows.selection.first_day


def test_the_same_formula_in_other_words_is_answered_from_the_record(lab: Make, ledger: Ledger) -> None:
    first = lab("first").judged(JUNK[0])
    second = lab("second").judged("rank(open) * rank(ts_skew(volume, 30))")
    assert second == first
    assert [trial.number for trial in ledger.trials.all()] == [1]
