"""What agents are reminded of: what matters, successes and failures, and never more than so much."""

from __future__ import annotations

import json
import random
from pathlib import Path

from hypothesis import given, settings, strategies as st

from alphaloom.evaluation import Budget, recall_facts
from alphaloom.evidence import Proposal
from alphaloom.ledger import Ledger
from alphaloom.search.memory import MAX_HYPOTHESES_REMINDED, HypothesisRecord, select_reminders, summarise_mechanisms

from ..evidence.lab import SMALL, Lab, claim_of, clock, market

WORDS = ("calm", "volume", "reversal", "sector", "stress", "drift", "overnight", "liquidity", "trend", "attention")


def history(size: int, seed: int = 1) -> list[HypothesisRecord]:
    """Make up hypotheses of random words, of which few worked."""
    draw = random.Random(seed)
    tales = []
    for number in range(size):
        text = " ".join(draw.choices(WORDS, k=6))
        t = draw.gauss(0.0, 1.3) if draw.random() < 0.8 else None
        word = "refused" if t is None else draw.choices(["scored", "rejected", "accepted"], [90, 8, 2])[0]
        tales.append(
            HypothesisRecord(f"r{number:05d}/h00", draw.choice(WORDS), text, t, word, 3 * (t is not None), {"parse": 1})
        )
    return tales


@given(st.integers(0, 300), st.sampled_from(["", "calm stress", "xylophone"]), st.integers(4, 60))
def test_never_more_than_asked_for_each_once_in_the_order_of_ids(size: int, query: str, most: int) -> None:
    tales = history(size)
    chosen = select_reminders(tales, query, most)
    ids = [tale.id for tale in chosen]
    assert len(ids) == min(size, most)
    assert ids == sorted({*ids})


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_nothing_hangs_on_the_order_of_arrival(draw: random.Random) -> None:
    tales = history(200)
    shuffled = draw.sample(tales, len(tales))
    assert select_reminders(shuffled, "calm stress") == select_reminders(tales, "calm stress")
    assert summarise_mechanisms(shuffled) == summarise_mechanisms(tales)


def test_both_successes_and_failures_that_speak_of_the_query_are_told() -> None:
    tales = [
        *history(500),
        HypothesisRecord("r00001/h99", "quiet_owner", "Zebra stripes calm the owner.", 4.0, "scored", 2),
    ]
    tales.append(HypothesisRecord("r00002/h99", "loud_owner", "Zebra stripes are loud.", 0.1, "rejected", 2))
    chosen = {tale.id for tale in select_reminders(tales, "zebra stripes")}
    assert {"r00001/h99", "r00002/h99", tales[499].id} <= chosen
    assert {tale.worked for tale in select_reminders(tales, "zebra stripes")} == {True, False}
    assert "r00002/h99" not in {tale.id for tale in select_reminders(tales, "calm")}


def test_no_try_is_forgotten_by_the_table_of_mechanisms() -> None:
    tales = history(1_000)
    rows = summarise_mechanisms(tales)
    assert sum(int(str(row["hypotheses"])) for row in rows) == 1_000
    assert [row["mechanism"] for row in rows] == sorted(WORDS)


def test_what_is_told_is_no_larger_after_ten_thousand() -> None:
    sizes = [
        len(json.dumps([tale.__dict__ for tale in select_reminders(history(size), "calm")])) for size in (100, 10_000)
    ]
    assert sizes[1] < 1.2 * sizes[0]
    assert len(select_reminders(history(10_000), "calm")) == MAX_HYPOTHESES_REMINDED


def test_a_hypothesis_of_which_nothing_was_scored_is_told_with_its_reasons(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:
        evaluator = Lab.open(ledger, "run", market(), SMALL, Budget(evaluations=9, trials=1)).evaluator
        good = "ts_mean(returns, 23) / ts_std(returns, 41)"
        evaluator.propose(Proposal("close + volume", claim_of(good, id="r01/h00", statement="Zebra."), "k0"))
        evaluator.propose(Proposal(good, claim_of(good, id="r01/h01"), "k1"))
        name = evaluator.read(good).id
        follow = claim_of(good, id="r02/h00", statement=f"Follow-up of {name}.")
        evaluator.propose(Proposal("ts_mean(returns, 3", follow, "k2"))
        facts = recall_facts(evaluator, 5, "zebra")
    rows = {row["id"]: row for row in facts["hypotheses"]}
    assert (rows["r01/h00"]["outcome"], rows["r01/h00"]["best_t"]) == ("refused", None)
    assert rows["r01/h00"]["fate"] == "nothing scored, 1 refused by types"
    assert rows["r01/h01"]["fate"] == "1 scored"
    assert {row["hypothesis"]: row["stage"] for row in facts["refusals"]} == {"r01/h00": "types", "r02/h00": "parse"}
    assert facts["factors"][0]["followed"] == 1
    assert facts["mechanisms"] == [{"mechanism": "control", "hypotheses": 3, "best_t": rows["r01/h01"]["best_t"]}]


def test_the_newest_are_those_of_the_highest_rounds() -> None:
    tales = [
        HypothesisRecord(f"r{number:02d}/h00", "calm", "Some words.", None, "refused", 0)
        for number in (8, 9, 10, 99, 100, 101)
    ]
    assert [reminder.id for reminder in select_reminders(tales, "", most=2)] == ["r100/h00", "r101/h00"]
