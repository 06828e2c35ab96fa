"""Branches that are slow, fail, or fail for good: what is asked again, what is given up, and what stops the search."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from alphaloom.agents import AgentsConfig
from alphaloom.agents.errors import NodeTimedOut
from alphaloom.router import AccessRefused, ModelFailed, NoModel, Reply, RequestRefused, Task

from .doubles import Lab, Model

Maker = Callable[..., Lab]
QUICK = AgentsConfig(rounds=2, hypotheses=4, candidates=2, steps=1, node_timeout_seconds=2, node_backoff_seconds=0)
FOREVER = 1_000


@dataclass
class Faulty(Model):
    """A model with a fault for some branches, so many times each; counts how many are asked at once."""

    fault: Callable[[], Any] = lambda: None
    branches: tuple[str, ...] = ()
    times: int = FOREVER
    met: dict[str, int] = field(default_factory=dict)
    now: int = 0
    most: int = 0

    async def ask(self, task: Task) -> Reply[Any]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.001)
            await self.stumble(task)
            return await super().ask(task)
        finally:
            self.now -= 1

    async def stumble(self, task: Task) -> None:
        context = json.loads(task.messages[1].content)
        branch = context.get("hypothesis", {}).get("id", "idea")
        key = f"{branch} {context['task']} {context['request'].get('step')}"
        if branch in self.branches and self.met.get(key, 0) < self.times:
            self.met[key] = self.met.get(key, 0) + 1
            found = self.fault()
            if found is not None:
                await found


def fails(error: Exception) -> Callable[[], None]:
    def fault() -> None:
        raise error

    return fault


def faulty(lab: Lab, fault: Callable[[], Any], *branches: str, times: int = FOREVER) -> Lab:
    lab.model = Faulty(lab.fuse, fault=fault, branches=branches, times=times)
    return lab


def kept(lab: Lab, *but: str) -> dict[tuple[str, str], str]:
    return {place: body for place, body in lab.journal.kept.items() if place[0] not in but}


def failures(lab: Lab) -> list[str]:
    return sorted(key for kind, key in lab.journal.kept if kind == "failure")


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, dict[str, Any]]:
    """Return a campaign in which nothing failed."""
    lab = Lab(tmp_path_factory.mktemp("still"), config=QUICK)
    return lab, lab.run()


DOWN = ModelFailed("no reply from qwen: 503")
PASSING = {"it fails": fails(DOWN), "it is slow": lambda: asyncio.sleep(60)}


@pytest.mark.parametrize("name", PASSING)
def test_what_time_heals_is_asked_again_and_changes_no_result(
    lab: Maker, still: tuple[Lab, dict[str, Any]], name: str
) -> None:
    campaign = faulty(lab(config=QUICK), PASSING[name], "idea", "r01/h02", times=1)
    assert campaign.run() == still[1]
    assert kept(campaign, "failure") == kept(still[0])
    assert len(failures(campaign)) == 2 + 1 + 1  # two rounds of ideas, a proposal, a critique
    assert failures(campaign)[0].endswith("/1")
    assert sorted(campaign.model.replies) == sorted(still[0].model.replies)


def test_a_branch_that_fails_for_good_costs_that_branch_and_says_so(lab: Maker) -> None:
    campaign = faulty(lab(config=QUICK), fails(DOWN), "r01/h01")
    state = campaign.run()
    assert state["finished"]
    assert failures(campaign) == [f"factor/r01/h01/s0/a0/{number}" for number in (1, 2, 3)]
    given_up = json.loads(campaign.journal.kept["proposal", "r01/h01/s0/a0"])
    assert given_up == {"items": [], "failed": str(DOWN), "given_up": True}
    assert ("given up", {"branch": "r01/h01/s0/a0", "reason": str(DOWN)}) in campaign.shown
    branches = {key[:7] for kind, key in campaign.journal.kept if kind == "score"}
    assert {"r01/h00", "r01/h02", "r02/h01"} <= branches
    assert "r01/h01" not in branches


def test_a_request_that_is_refused_is_not_sent_again(lab: Maker) -> None:
    campaign = faulty(lab(config=QUICK), fails(RequestRefused("too long")), "r01/h01")
    assert campaign.run()["finished"]
    assert failures(campaign) == ["factor/r01/h01/s0/a0/1"]


@pytest.mark.parametrize("error", [DOWN, AccessRefused("the key is wrong"), RequestRefused("bad field")])
@pytest.mark.parametrize("branches", [("idea",), ("r01/h00", "r01/h01", "r01/h02", "r01/h03")])
def test_where_no_branch_is_answered_the_search_stops_and_can_be_resumed(
    lab: Maker, still: tuple[Lab, dict[str, Any]], error: Exception, branches: tuple[str, ...]
) -> None:
    campaign = faulty(lab(config=QUICK), fails(error), *branches)
    for _ in range(2):
        with pytest.raises(type(error)):
            campaign.run(resume=True)
    campaign.model = Model(campaign.fuse, replies=campaign.model.replies)
    assert campaign.run(resume=True) == still[1]
    assert kept(campaign, "failure") == kept(still[0])


def test_a_search_that_stops_hears_out_what_is_under_way(lab: Maker, still: tuple[Lab, dict[str, Any]]) -> None:
    campaign = faulty(lab(config=QUICK), fails(AccessRefused("the key is wrong")), "r01/h00")
    with pytest.raises(AccessRefused):
        campaign.run()
    assert {key[:7] for kind, key in campaign.journal.kept if kind == "drafts"} == {"r01/h01", "r01/h02", "r01/h03"}
    paid = campaign.model.replies
    campaign.model = Model(campaign.fuse, replies=dict(paid))
    assert campaign.run(resume=True) == still[1]
    assert len(campaign.model.tasks) + len(paid) == len(still[0].model.replies)


def test_a_branch_that_failed_alone_after_the_others_were_heard_is_given_up_when_resumed(lab: Maker) -> None:
    campaign = faulty(lab(config=QUICK), fails(NoModel("no key yet")), "r01/h00")
    with pytest.raises(NoModel):
        campaign.run()
    campaign.model = Faulty(campaign.fuse, replies=campaign.model.replies, fault=fails(DOWN), branches=("r01/h00",))
    assert campaign.run(resume=True)["finished"]
    assert json.loads(campaign.journal.kept["proposal", "r01/h00/s0/a0"])["given_up"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_are_asked_at_once_than_the_settings_say(lab: Maker, most: int) -> None:
    campaign = faulty(lab(config=QUICK.model_copy(update={"max_concurrency": most})), lambda: None)
    assert campaign.run()["finished"]
    assert isinstance(campaign.model, Faulty)
    assert campaign.model.most == most


def test_a_late_answer_names_the_setting(lab: Maker) -> None:
    config = QUICK.model_copy(update={"node_timeout_seconds": 0.05, "node_retries": 0})
    campaign = faulty(lab(config=config), lambda: asyncio.sleep(60), "idea")
    with pytest.raises(NodeTimedOut, match=r"no answer to idea/r01 within 0\.05 seconds") as caught:
        campaign.run()
    assert caught.value.field == "agents.node_timeout_seconds"
    assert isinstance(campaign.model, Faulty)
    assert campaign.model.now == 0
