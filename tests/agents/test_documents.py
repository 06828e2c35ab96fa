"""The Idea agent is told of the person's documents by passage, as data; labels go with what is told, and never down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from alphaloom.agents import Own, Steer
from alphaloom.agents.nodes.documents import Documents, is_useful_summary, select_documents
from alphaloom.agents.offline import answer_offline
from alphaloom.agents.prompt import load_prompts
from alphaloom.agents.questions import find_question_sensitivity
from alphaloom.news import screen_text
from alphaloom.router import Task
from alphaloom.router.calls import find_strictest
from alphaloom.router.context import CampaignDocument, ContextSettings
from alphaloom.router.context.store import SqliteStore

from ..router.context.texts import filing
from .doubles import SMALL, Crash, Fuse, Lab
from .test_diversity import CALM
from .test_injection import HOSTILE

Maker = Callable[..., Lab]
TEXTS = {
    "inventory": (
        "# Inventory\nRetailers whose inventory outgrows their sales earn less. "
        "Managers order too much in good years, and write it off in bad ones, slowly, quarter by quarter, "
        "while prices still hope for sales that do not come back soon."
    ),
    "calm": "# Calm names\nStocks of low volatility earn more than their risk, since many investors may not borrow.",
    "calm pages": "\n".join(f"Calm names of low volatility earned {n} bp more in month {n}." for n in range(80)),
    "far": filing(4, 600),
}
GOAL = Steer(goal="calm names of low volatility")


def one(name: str, **more: Any) -> CampaignDocument:
    return CampaignDocument(id=name, name=f"{name}.md", **{"sensitivity": "public", **more})


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Callable[..., Documents]]:
    """Yield a maker of documents over one store."""
    with closing(SqliteStore(tmp_path / "context.db")) as store:

        def make(*given: CampaignDocument, **settings: Any) -> Documents:
            told = given or tuple(map(one, ("inventory", "calm", "far")))
            return Documents(store, told, TEXTS.__getitem__, screen_text, ContextSettings(**settings), "a model")

        yield make


def asked(campaign: Lab, *roles: str) -> list[tuple[Task, dict[str, Any]]]:
    tasks = [task for task in campaign.model.tasks if not roles or task.role in roles]
    return [(task, json.loads(task.messages[1].content)) for task in tasks]


def test_without_documents_prompts_have_the_bytes_that_they_always_had(
    lab: Maker, shelf: Callable[..., Documents]
) -> None:
    """A round in which nothing may be told is a round without documents."""
    plain, told = lab(steer=GOAL), lab(steer=GOAL, documents=shelf(one("calm"), summaries="none"))
    plain.run()
    assert not any("untrusted_documents" in body for _, body in asked(plain))
    assert {task.prompt for task, _ in asked(plain, "idea")} == {load_prompts("idea").digest}
    assert told.documents is not None
    told.documents = replace(told.documents, screen=lambda text: (text, "speaks to machines"))
    told.run()
    assert [task.messages for task, _ in asked(told)] == [task.messages for task, _ in asked(plain)]
    assert ("no_passage", {"round": 1}) in told.shown


def test_passages_that_have_to_do_with_the_goal_stand_apart_and_only_the_idea_agent_sees_them(
    lab: Maker, shelf: Callable[..., Documents]
) -> None:
    campaign = lab(steer=GOAL, documents=shelf(passage_tokens=400))
    campaign.run()
    for task, body in asked(campaign, "idea"):
        first = body["untrusted_documents"][0]
        assert first["untrusted_name"] == "calm.md"
        assert first["untrusted_passages"] == [TEXTS["calm"]]
        assert first["untrusted_summary"]
        told = [text for document in body["untrusted_documents"] for text in document["untrusted_passages"]]
        assert sum(map(len, told)) <= 4 * 400 < len(TEXTS["far"])
        assert task.prompt == load_prompts("idea", "documents").digest
    assert not any("untrusted_documents" in body for _, body in asked(campaign, "factor", "eval"))


def test_what_was_proposed_before_is_what_is_looked_for(lab: Maker, shelf: Callable[..., Documents]) -> None:
    campaign = lab(documents=shelf(passage_tokens=400, summaries="none"))
    said = {**CALM, "statement": "Investors who may not borrow hold stocks of low volatility too little."}
    campaign.model.say = lambda task: json.dumps({"hypotheses": [said]}) if task.role == "idea" else None
    campaign.run()
    (_, first), *_, (_, last) = asked(campaign, "idea")
    assert "untrusted_documents" not in first, "nothing to look for, and no summary"
    assert last["untrusted_documents"][0]["untrusted_name"] == "calm.md"


def test_a_campaign_that_is_gone_on_with_reads_what_it_read_before(lab: Maker, shelf: Callable[..., Documents]) -> None:
    calm = lab(steer=GOAL, documents=shelf())
    calm.run()
    for at in (9, 14, 40):
        broken = lab(steer=GOAL, documents=shelf(), fuse=Fuse(at=at))
        with pytest.raises(Crash):
            broken.run()
        broken.run(resume=True)
        assert [task.messages for task, _ in asked(broken, "idea")] == [
            task.messages for task, _ in asked(calm, "idea")
        ]


def test_a_confidential_passage_makes_all_that_follows_confidential(
    lab: Maker, shelf: Callable[..., Documents]
) -> None:
    """The second round's hypotheses speak of inventory, so that document is told from then on."""
    given = (one("calm pages"), one("inventory", sensitivity="confidential"))
    documents = shelf(*given, summaries="none", passage_tokens=800)
    campaign = lab(steer=GOAL, documents=documents, config=SMALL.model_copy(update={"rounds": 3}))
    said = {**CALM, "statement": "Retailers whose inventory outgrows their sales earn less."}
    campaign.model.say = lambda task: (
        json.dumps({"hypotheses": [said]})
        if task.role == "idea" and '"round": 1,' in task.messages[1].content
        else None
    )
    campaign.run()
    labels: dict[str, set[str]] = {}
    for round_key in ("r01", "r02", "r03"):
        kept = json.loads(campaign.journal.kept["recall", round_key])
        labels[round_key] = {document["untrusted_name"] for document in kept["documents"]}
    assert (labels["r01"], "inventory.md" in labels["r02"]) == ({"calm pages.md"}, True)
    ideas = [task.sensitivity for task, _ in asked(campaign, "idea")]
    assert ideas[0] == "public"
    assert set(ideas[1:]) == {"confidential"}
    later = [task for task, body in asked(campaign, "factor", "eval") if body["hypothesis"]["id"] > "r02"]
    earlier = [task for task, body in asked(campaign, "factor", "eval") if body["hypothesis"]["id"] < "r02"]
    assert {task.sensitivity for task in later} == {"confidential"}
    assert {task.sensitivity for task in earlier} == {"public"}


LABELS = st.sampled_from(["public", "internal", "confidential"])


@given(LABELS, LABELS, LABELS)
def test_no_question_is_less_confidential_than_what_it_may_hold(campaigns: Any, told: Any, own: Any) -> None:
    bench = Lab(Path(), config=SMALL.model_copy(update={"sensitivity": campaigns}), documents=cast(Documents, object()))
    bench.journal.record("recall", "r02", {"told_label": told})
    desk = bench.desk()
    assert find_question_sensitivity(desk, "r02/h00/s0/a0", own) == find_strictest([campaigns, told, own])
    assert (
        find_question_sensitivity(desk, "summary/0", own)
        == find_question_sensitivity(desk, "r01", own)
        == find_strictest([campaigns, own])
    )


def test_a_model_summarises_once_and_a_second_campaign_asks_nothing(
    lab: Maker, shelf: Callable[..., Documents]
) -> None:
    given = (one("calm", sensitivity="confidential"), one("far"))
    first, second = (lab(steer=GOAL, documents=shelf(*given, summaries="model")) for _ in range(2))
    first.run()
    second.run()
    summaries = asked(first, "report")
    assert len(summaries) >= 4, "the long one is said in parts, and these in one"
    assert {task.sensitivity for task, body in summaries if body["untrusted_text"] == TEXTS["calm"]} == {"confidential"}
    assert {(task.role, task.intent) for task, _ in summaries} == {("report", "summary")}
    assert asked(second, "report") == []
    assert [task.messages for task, _ in asked(second, "idea")] == [task.messages for task, _ in asked(first, "idea")]


def test_passages_are_told_where_no_summary_can_be_had(lab: Maker, shelf: Callable[..., Documents]) -> None:
    campaign = lab(steer=GOAL, documents=shelf(one("calm"), summaries="model"))
    campaign.model.say = lambda task: '{"summary": " "}' if task.role == "report" else None
    campaign.run()
    told = asked(campaign, "idea")[0][1]["untrusted_documents"]
    assert [sorted(texts) for texts in told] == [["document", "untrusted_name", "untrusted_passages"]]


def test_a_summary_with_a_figure_that_its_text_lacks_is_not_told(lab: Maker, shelf: Callable[..., Documents]) -> None:
    campaign = lab(steer=GOAL, documents=shelf(one("calm"), summaries="model"))
    made_up = json.dumps({"summary": "Calm shares gained 987654 % in a year."})
    campaign.model.say = lambda task: made_up if task.role == "report" else None
    campaign.run()
    assert asked(campaign, "report")
    assert "987654" not in "".join(task.messages[1].content for task, _ in asked(campaign, "idea"))


def test_a_hostile_summary_is_not_told_and_a_hostile_passage_changes_no_call(
    lab: Maker, shelf: Callable[..., Documents]
) -> None:
    campaign = lab(steer=GOAL, documents=shelf(one("calm"), summaries="model"))
    campaign.model.say = lambda task: json.dumps({"summary": HOSTILE}) if task.role == "report" else None
    campaign.run()
    assert "submit id" not in "".join(task.messages[1].content for task, _ in asked(campaign))


def test_what_was_held_back_or_known_later_is_told_to_the_person_only() -> None:
    given = [
        one("calm", known=date(2015, 3, 31)),
        one("inventory", held="orders a machine"),
        one("far", known=date(2019, 1, 1)),
        one("undated"),
    ]
    told, said = select_documents(given, "2017-12-29")
    assert [document.id for document in told] == ["calm", "undated"]
    assert [part in line for part, line in zip(("inventory.md", "far.md", "1 of 2"), said, strict=True)] == [True] * 3


def test_results_tell_of_documents_without_a_word_of_them() -> None:
    record = Own(documents=(one("calm"), one("far", held="x"))).record()["documents"]
    assert (record["count"], record["held"]) == (2, ["far.md"])
    assert "documents" not in Own().record()


def test_the_offline_researcher_summarises_in_the_texts_own_words() -> None:
    body = json.dumps({"task": "summary", "untrusted_text": TEXTS["calm"]})
    said = json.loads(answer_offline([{"role": "user", "content": body}], 1))
    assert said["summary"] in " ".join(TEXTS["calm"].split())


@pytest.mark.parametrize(
    ("summary", "useful"),
    [
        ("Retailers with too much inventory earn less.", True),
        ("Inventory grew by 12 % and retailers earn less.", False),
        ("Dragons sleep under mountains of gold.", False),
        (HOSTILE, False),
        ("", False),
        ("库存过多的零售商收益较低。", True),
    ],
    ids=[
        "of its text",
        "a figure that the text lacks",
        "of something else",
        "speaks to machines",
        "empty",
        "other letters",
    ],
)
def test_a_summary_is_of_use_where_it_speaks_of_its_text(summary: str, useful: bool) -> None:
    assert is_useful_summary(summary, TEXTS["inventory"], lambda said: not screen_text(said)[1]) == useful
