"""The account of what a real campaign and a book decided, and what a model's words for it must not get wrong."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from alphaloom.desk.retelling import find_retelling_fault
from alphaloom.ledger.account import DecisionAccount, explain_record
from alphaloom.ledger.log import InclusionProof, KeyFolder, prove_row, read_signed_log
from alphaloom.risk.rules import ALL_RULES, EXPOSURE_RULES

from ..desk.books import BOOK, lay_books
from . import planted

if TYPE_CHECKING:
    from alphaloom.evaluation import CampaignResult

PLANTED = 100


@pytest.fixture(scope="module")
def place(finished: CampaignResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a finished campaign and a book whose signals the gate refused in part."""
    workspace = Path(shutil.copytree(finished.folder.parents[1], tmp_path_factory.mktemp("account") / "workspace"))
    lay_books(workspace)
    return workspace


@pytest.fixture(scope="module")
def results(finished: CampaignResult) -> dict[str, list[dict[str, object]]]:
    loaded: dict[str, list[dict[str, object]]] = json.loads((finished.folder / "results.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def accounts(place: Path, results: dict[str, list[dict[str, object]]]) -> list[DecisionAccount]:
    names = [str(row["id"]) for kind in ("accepted", "members", "rejected") for row in results[kind]]
    step = [f"{BOOK}/2011-03-{day}" for day in (22, 23)]
    return [
        explain_record(place, name) for name in (*names, "opening 1", *step, f"{step[0]}/H.PJF", f"{step[0]}/H.BJV")
    ]


def test_each_sentence_rests_on_leaves_and_its_values_are_in_it(accounts: list[DecisionAccount], place: Path) -> None:
    log = read_signed_log(place, KeyFolder.of_user())
    for account in accounts:
        assert account.changed == ()
        absent = [sentence.text for sentence in account.sentences if not sentence.leaves]
        assert all("not" in text or "No " in text for text in absent), absent
        assert {leaf for sentence in account.sentences for leaf in sentence.leaves} <= set(range(len(log.entries)))
        parts = account.responsible.record()
        assert parts["deployer"]
        assert all(one in account.text for part in parts.values() for one in part or ())


def test_a_rejection_names_its_trial_its_threshold_and_each_step(
    accounts: list[DecisionAccount], results: dict[str, list[dict[str, object]]]
) -> None:
    row = results["rejected"][0]
    account = next(one for one in accounts if one.subject == row["id"])
    failed = [sentence for sentence in account.sentences if "failed" in sentence.kept]
    assert [sentence.values["step"] for sentence in failed] == ["statistics"]
    assert failed[0].values["p_value"] > failed[0].values["level"]
    assert "The model offline/researcher wrote the hypothesis" in account.text
    assert "The record does not name a model vendor" in account.text
    assert account.responsible.provider == ("offline",)
    (leaf,) = account.sentences[0].leaves
    assert account.sentences[0].values["verdict"] == "rejected"
    assert leaf > 0


def test_a_refused_signal_has_its_rules_and_the_exceptions_of_its_evidence(accounts: list[DecisionAccount]) -> None:
    (account,) = (one for one in accounts if one.subject.endswith("H.PJF"))
    (refused,) = (sentence for sentence in account.sentences if sentence.text.startswith("The rule borrow refused"))
    assert {name: refused.values[name] for name in ("rule", "asset", "actual", "limit")} == {
        "rule": "borrow", "asset": "H.PJF", "actual": 1, "limit": 0,
    }  # fmt: skip  # a table
    excused = [sentence.values for sentence in account.sentences if "exception" in sentence.text]
    assert [(one["owner"], one["rule"], one["until"]) for one in excused] == [
        ("ann", "proven", "2200-01-01"), ("ann", "original", "2200-01-01"),
    ]  # fmt: skip  # a table
    (approved,) = (one for one in accounts if one.subject.endswith("H.BJV"))
    told = [sentence.values["rule"] for sentence in approved.sentences if sentence.text.startswith("The rule ")]
    assert told == [rule for rule in ALL_RULES if rule != "unexposed"]


def test_words_and_units_are_those_of_the_gate() -> None:
    from alphaloom.ledger.account.decision import EQUITY_RULES, RULE_WORDS

    assert (set(RULE_WORDS), EQUITY_RULES) == (set(ALL_RULES), EXPOSURE_RULES)


def test_wrong_figures_and_dropped_reasons_are_caught_and_honest_words_pass(accounts: list[DecisionAccount]) -> None:
    missed = []
    for number in range(PLANTED):
        draw = random.Random(number)
        account = draw.choice([one for one in accounts if any(sentence.kept for sentence in one.sentences)])
        told = planted.retell(account, draw)
        assert find_retelling_fault(" ".join(told), account) == ""
        for name, text in (
            ("figure", planted.plant_wrong_figure(told, draw)),
            ("reason", planted.plant_dropped_reason(account, told, draw)),
        ):
            missed += [] if find_retelling_fault(" ".join(text), account) else [(number, name, text)]
    assert missed == []


def test_invented_causes_are_caught_by_their_words_and_the_rate_is_printed(
    accounts: list[DecisionAccount], capsys: pytest.CaptureFixture[str]
) -> None:
    made, caught = Counter[str](), Counter[str]()
    for number in range(3 * PLANTED):
        draw = random.Random(number)
        account = draw.choice([one for one in accounts if any(sentence.kept for sentence in one.sentences)])
        kind, text = planted.plant_cause(planted.retell(account, draw), draw)
        made[kind] += 1
        caught[kind] += bool(find_retelling_fault(" ".join(text), account))
    with capsys.disabled():
        rates = ", ".join(f"{kind} {caught[kind]} of {made[kind]}" for kind in sorted(made))
        print(f"\ninvented causes that were caught: {rates}")
    strange = ("clause", "sentence", "word")
    assert [caught[kind] for kind in strange] == [made[kind] for kind in strange]
    assert caught["clause of its own words"] < made["clause of its own words"]  # the page says that these may pass


def test_an_account_of_a_row_that_was_changed_says_so_first(place: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(place, tmp_path / "workspace"))
    connection = sqlite3.connect(other / "ledger.sqlite")
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    (name,) = connection.execute("SELECT factor_id FROM verdicts WHERE body LIKE '%\"rejected\"%'").fetchone()
    connection.execute("UPDATE verdicts SET body = replace(body, '\"rejected\"', '\"accepted\"')")
    connection.commit()
    connection.close()
    account = explain_record(other, name)
    assert len(account.changed) == 1
    assert account.sentences[0].text.startswith("Warning")


def test_a_leaf_of_an_account_is_proven(accounts: list[DecisionAccount], place: Path) -> None:
    log = read_signed_log(place, KeyFolder.of_user())
    account = next(one for one in accounts if one.kind == "factor")
    row, proof = prove_row(log, account.subject)
    assert (row.table, proof.index) == ("verdicts", account.sentences[0].leaves[0])
    assert isinstance(proof, InclusionProof)
