"""The Idea agent reads outside texts only where a person asks for it, apart from all else and reproducibly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from alphaloom.agents.nodes.idea_agent import NEWS_ITEM_KEYS
from alphaloom.agents.prompt import load_prompts
from alphaloom.agents.schemas import Ideas
from alphaloom.router import Task

from .doubles import SMALL, Crash, Fuse, Lab

Maker = Callable[..., Lab]
NEWS = SMALL.model_copy(update={"news": 2})


def text(number: int) -> dict[str, Any]:
    said = {"untrusted_title": f"Plant {number}", "untrusted_text": "Acme opens it.", "source": "wire", "symbols": []}
    beside = {"kind": "news", "published": "2015-01-30", "credibility": 0.5, "cut": False, "provenance": {"file": "a"}}
    return {"id": f"{number:064x}", **said, **beside}


def ideas(campaign: Lab) -> list[tuple[Task, dict[str, Any]]]:
    tasks = [task for task in campaign.model.tasks if task.schema is Ideas]
    return [(task, json.loads(task.messages[1].content)) for task in tasks]


def test_nobody_asks_for_texts_unless_a_person_does(lab: Maker) -> None:
    campaign = lab()
    campaign.servers.texts = [text(1)]
    campaign.run()
    assert "search_news" not in {name for name, _ in campaign.servers.calls}
    assert {task.prompt for task, _ in ideas(campaign)} == {load_prompts("idea").digest}
    assert not any("untrusted_news" in body for _, body in ideas(campaign))


def test_the_newest_texts_stand_apart_under_keys_that_say_what_they_are(lab: Maker) -> None:
    campaign = lab(config=NEWS)
    campaign.servers.texts = [text(number) for number in range(5)]
    campaign.run()
    asked = [arguments for name, arguments in campaign.servers.calls if name == "search_news"]
    assert asked == [{"limit": 2}] * NEWS.rounds
    for task, body in ideas(campaign):
        assert [item["untrusted_title"] for item in body["untrusted_news"]] == ["Plant 0", "Plant 1"]
        assert all({*item} == {*NEWS_ITEM_KEYS} for item in body["untrusted_news"])
        assert task.prompt == load_prompts("idea", "news").digest
    others = [task for task in campaign.model.tasks if task.role != "idea"]
    assert others
    assert not any("Plant" in task.messages[1].content for task in others)


def test_a_workspace_without_texts_changes_no_prompt_and_says_so(lab: Maker) -> None:
    plain, told = lab(), lab(config=NEWS)
    plain.run()
    told.run()
    assert [task.messages for task, _ in ideas(told)] == [task.messages for task, _ in ideas(plain)]
    assert ("no_news", {"round": 1}) in told.shown


def test_a_campaign_that_is_gone_on_with_reads_what_it_read_before(lab: Maker) -> None:
    calm = lab(config=NEWS)
    calm.servers.texts = [text(1)]
    calm.run()
    broken = lab(config=NEWS, fuse=Fuse(at=14))
    broken.servers.texts = [text(1)]
    try:
        broken.run()
    except Crash:
        broken.servers.texts = [text(2)]
    assert json.loads(broken.journal.kept["recall", "r01"])["news"] == [text(1)]
    broken.run(resume=True)
    assert [body["untrusted_news"][0]["untrusted_title"] for _, body in ideas(broken)] == ["Plant 1", "Plant 2"]
    assert ideas(broken)[0][0].messages == ideas(calm)[0][0].messages
