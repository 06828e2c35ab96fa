"""Drafts are judged by all that was scored, whoever asks at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from alphaloom.evaluation.closing import ResultsBuilder
from alphaloom.evaluation.drafts import pick_drafts
from alphaloom.ledger import LibraryRow
from alphaloom.search.surrogate.gaussian_process import ScoredFormula
from alphaloom.search.surrogate.model import SurrogateModel

from ..evidence.lab import Lab, claim_of

SCORED = "ts_kurt(volume, 17) * ts_skew(returns, 31)"
DRAFTS = ["ts_kurt(volume, 18) * ts_skew(returns, 30)", "ts_skew(returns, 35)", "ts_rank(open, 30)"]


def test_forecasts_that_another_thread_made_meanwhile_are_not_asked(
    lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that ask first may each make forecasts, since a cached property has no lock from Python 3.12 on."""
    desk = lab()
    desk.scored(SCORED)
    evaluator, claim, learn = desk.evaluator, claim_of(SCORED), SurrogateModel.learn
    expected = pick_drafts(evaluator, DRAFTS, claim, 2)
    assert any(one["known"] > 0.3 for one in expected["forecasts"])

    def overtaken(self: SurrogateModel, scored: Mapping[str, ScoredFormula]) -> None:
        learn(self, scored)
        vars(evaluator)["surrogate"] = SurrogateModel.of(
            evaluator.panel, evaluator.windows.search, tuple(evaluator.panel.fields)
        )

    monkeypatch.setattr(SurrogateModel, "learn", overtaken)
    assert pick_drafts(evaluator, DRAFTS, claim, 2) == expected


def test_what_promises_the_opposite_direction_is_turned_round(lab: Callable[..., Lab]) -> None:
    desk = lab()
    up = 1 if desk.evaluator.scores[desk.scored(SCORED)].sheet["rank_ic"] > 0 else -1
    drafts = ["-(ts_kurt(volume, 18) * ts_skew(returns, 30))", "ts_kurt(volume, 16) * ts_skew(returns, 33)"]
    against = replace(claim_of(SCORED), direction=-up)
    assert pick_drafts(desk.evaluator, drafts[1:], against, 1, either=True)["turned"] == [
        {"place": 0, "text": f"-({drafts[1]})"}
    ]
    with_it = replace(against, direction=up)
    assert pick_drafts(desk.evaluator, drafts[:1], with_it, 1, either=True)["turned"] == [
        {"place": 0, "text": drafts[0][2:-1]}
    ]
    assert pick_drafts(desk.evaluator, drafts[1:], with_it, 1, either=True)["turned"] == []


def test_a_library_formula_that_cannot_be_read_is_left_out_and_named(lab: Callable[..., Lab]) -> None:
    evaluator = lab().evaluator
    gone = "ts_removed_operator(close, 5)"
    evaluator.ledger.library.add(LibraryRow("f0000000000000001", gone, gone, "h", "r0", {"fields": ["close"]}))
    assert len(pick_drafts(evaluator, DRAFTS, claim_of(SCORED), 2)["chosen"]) == 2
    assert list(evaluator.library.values) == []
    assert "ts_removed_operator" in evaluator.library.unreadable["f0000000000000001"]
    messages = [note.message for note in ResultsBuilder(evaluator).warnings() if note.code == "library"]
    assert [message.partition(" ")[0] for message in messages] == ["f0000000000000001"]
