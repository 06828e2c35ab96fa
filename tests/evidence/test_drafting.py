"""Drafts are judged by all that was scored, whoever asks at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from alphaloom.evidence.drafting import choose_drafts
from alphaloom.evidence.foresight import Foresight, Scored

from .lab import Lab, claim_of

SCORED = "ts_kurt(volume, 17) * ts_skew(returns, 31)"
DRAFTS = ["ts_kurt(volume, 18) * ts_skew(returns, 30)", "ts_skew(returns, 35)", "ts_rank(open, 30)"]


def test_forecasts_that_another_thread_made_meanwhile_are_not_asked(
    lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that ask first may each make forecasts, since a cached property has no lock from Python 3.12 on."""
    desk = lab()
    desk.scored(SCORED)
    evaluator, claim, learn = desk.evaluator, claim_of(SCORED), Foresight.learn
    expected = choose_drafts(evaluator, DRAFTS, claim, 2)
    assert any(one["known"] > 0.3 for one in expected["forecasts"])

    def overtaken(self: Foresight, scored: Mapping[str, Scored]) -> None:
        learn(self, scored)
        vars(evaluator)["foresight"] = Foresight.of(evaluator.panel, evaluator.windows.search)

    monkeypatch.setattr(Foresight, "learn", overtaken)
    assert choose_drafts(evaluator, DRAFTS, claim, 2) == expected
