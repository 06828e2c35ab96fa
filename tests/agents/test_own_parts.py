"""What a person brings along: formulas, hypotheses, prompt pages, an agent of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from alphaloom.agents import AgentsConfig, Own, Steer, View
from alphaloom.agents.errors import AgentError
from alphaloom.agents.own_parts import OwnHypotheses, Seed, find_agent
from alphaloom.agents.prompt import PROMPT_FOLDER, read_folder
from alphaloom.agents.records import round_for_prompt
from alphaloom.agents.schemas import Hypothesis
from alphaloom.ledger import read_settings

from .doubles import TARGET, Crash, Lab
from .test_diversity import BUSY, CALM

Maker = Callable[..., Lab]
SMALL = AgentsConfig(rounds=2, hypotheses=2, candidates=2, steps=1)
SEEDS = ("rank(volume / ts_mean(volume, 20))", "ts_mean(returns, 5", "ts_std(returns, 30) * -1")
SEEN: list[View] = []


async def good(view: View) -> Mapping[str, Any]:
    """Propose one hypothesis a round with a formula, and remember what was seen."""
    SEEN.append(view)
    said = CALM | {"mechanism": f"mine {view.round}", "statement": f"{view.round} " * 3 + f"seed{view.seed}"}
    return {"hypotheses": [said | {"candidates": [{"text": f"ts_mean(volume, {view.round + 11})"}]}]}


async def raises(_view: View) -> Mapping[str, Any]:
    """Fail."""
    raise ValueError("no luck")


async def sleeps(_view: View) -> Mapping[str, Any]:
    """Think for too long."""
    await asyncio.sleep(30)
    return {}


async def babbles(_view: View) -> Mapping[str, Any]:
    """Say what fits no schema."""
    return {"hypotheses": [{"mechanism": "mine", "trials": 100}]}


def blocking(_view: View) -> Mapping[str, Any]:
    """Be no async function."""
    return {}


def branches(campaign: Lab) -> dict[str, dict[str, Any]]:
    return {key: json.loads(body) for (kind, key), body in campaign.journal.kept.items() if kind == "hypothesis"}


def scored(campaign: Lab) -> list[str]:
    return [arguments["text"] for name, arguments in campaign.servers.calls if name == "score_factor"]


# Formulas to begin with.


def test_seeds_are_scored_first_and_are_parents(lab: Maker) -> None:
    campaign = lab(config=SMALL, own=Own(seeds=tuple(Seed(text=text) for text in SEEDS)))
    state = campaign.run()
    assert scored(campaign)[:3] == list(SEEDS)
    assert {"r00/h0000", "r00/h0001", "r00/h0002"} < {*branches(campaign)}
    assert branches(campaign)["r00/h0000"]["fields"] == ["volume"]
    asked = next(task for task in campaign.model.tasks if task.role == "factor")
    elite = json.loads(asked.messages[1].content)["record"]["elite"]
    assert {row["text"] for row in elite} == {SEEDS[0], SEEDS[2]}
    assert state["finished"]


def test_a_seed_that_is_known_already_is_a_parent_and_never_sent(lab: Maker) -> None:
    own = Own(seeds=(Seed(text=TARGET), Seed(text=SEEDS[0])))
    campaign = lab(config=SMALL, own=own)
    plain = campaign.servers.score_factor

    def score(
        text: str, hypothesis: dict[str, Any], key: str, description: str = "", refuter: str = ""
    ) -> dict[str, Any]:
        known = [{"code": "known", "message": "nearly Alpha 1", "value": None}] if text == TARGET else []
        return {
            **(answer := plain(text, hypothesis, key, description, refuter)),
            "weaknesses": [*answer.get("weaknesses", []), *known],
        }

    campaign.servers.score_factor = score  # type: ignore[method-assign]
    state = campaign.run()
    best = state["elite"][0]
    assert best[2] == "r00/h0000/s0/c0/a0"
    sent = [*campaign.servers.looks, *campaign.servers.looks.get("set", [])]
    assert sent
    assert best[1] not in sent


# Hypotheses.


def test_own_hypotheses_are_worked_on_before_the_agents_own(lab: Maker) -> None:
    own = tuple(Hypothesis.model_validate(claim) for claim in (CALM, BUSY, CALM | {"direction": 1}))
    campaign = lab(config=SMALL, own=Own(hypotheses=own))
    campaign.run()
    found = branches(campaign)
    assert [found[key]["mechanism"] for key in ("r01/h00", "r01/h01", "r02/h00")] == [
        "calm_names",
        "busy_names",
        "calm_names",
    ]
    assert [found[key].get("source") for key in sorted(found)] == ["own hypotheses"] * 3 + [None]
    asked = [json.loads(t.messages[1].content)["request"] for t in campaign.model.tasks if t.role == "idea"]
    assert asked == [{"count": 1, "round": 2, "spent": 0.0, "survey_share": 0.2}]


# Prompt pages.


def test_an_own_page_replaces_the_shipped_one_and_is_named_in_every_call(lab: Maker, tmp_path: Path) -> None:
    (tmp_path / "idea.md").write_text("---\nversion: mine 3\n---\nThink of calm names only.\n")
    own = Own(prompts=read_folder(tmp_path))
    campaign = lab(config=SMALL, own=own)
    campaign.run()
    digest = sha256((tmp_path / "idea.md").read_bytes()).hexdigest()
    shipped = sha256((PROMPT_FOLDER / "factor.md").read_bytes()).hexdigest()
    used = {task.role: task.prompt for task in campaign.model.tasks}
    assert (used["idea"], used["factor"]) == (digest, shipped)
    idea = next(task for task in campaign.model.tasks if task.role == "idea")
    assert idea.messages[0].content == "Think of calm names only.\n"
    assert own.record()["prompts"]["idea"] == {"version": "mine 3", "digest": digest, "whose": "own"}
    assert own.record()["prompts"]["eval"]["whose"] == "shipped"


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("ideas.md", "---\nversion: 1\n---\nx", "ideas replaces no page"),
        ("idea.md", "Think.", "has no version"),
        ("idea.md", "---\nversion: 1\n---\n", "holds"),
        ("notes.txt", "x", "holds no page"),
    ],
)
def test_a_page_that_cannot_be_used_is_refused(tmp_path: Path, name: str, body: str, said: str) -> None:
    (tmp_path / name).write_text(body)
    with pytest.raises(AgentError, match=said) as caught:
        read_folder(tmp_path)
    assert caught.value.code == "prompt"


# An agent of one's own.


def guests(function: str, **settings: Any) -> dict[str, Any]:
    return {"config": SMALL, "own": Own(agent=f"{__name__}:{function}"), "steer": Steer(agent_hypotheses=1, **settings)}


def test_an_own_agent_proposes_in_each_round_and_its_formulas_are_scored(lab: Maker) -> None:
    SEEN.clear()
    campaign = lab(**guests("good", goal="calm"))
    campaign.run()
    assert [(view.key, view.round, view.count, view.goal) for view in SEEN] == [
        ("r01", 1, 1, "calm"),
        ("r02", 2, 1, "calm"),
    ]
    mine = [key for key, each in branches(campaign).items() if each.get("source") == "own agent"]
    assert mine == ["r01/h00", "r02/h00"]
    assert {"ts_mean(volume, 12)", "ts_mean(volume, 13)"} < {*scored(campaign)}
    asked = [json.loads(t.messages[1].content)["request"]["count"] for t in campaign.model.tasks if t.role == "idea"]
    assert asked == [1, 1]


def test_an_own_agent_sees_what_the_idea_agent_sees_and_can_change_nothing(lab: Maker) -> None:
    SEEN.clear()
    campaign = lab(**guests("good"))
    campaign.run()
    said = [json.loads(t.messages[1].content)["record"] for t in campaign.model.tasks if t.role == "idea"][-1]
    view = SEEN[-1]
    assert isinstance(view.record, MappingProxyType)
    shown = [dict(row) for row in view.record["factors"]]
    assert all(row.pop("merit") for row in shown)
    assert round_for_prompt(shown) == said["factors"]
    with pytest.raises(TypeError):
        view.record["factors"][0]["t"] = 99.0
    with pytest.raises(AttributeError):
        view.count = 64  # type: ignore[misc]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("raises", "ValueError: no luck"),
        ("babbles", "hypotheses.0.statement: Field required"),
        ("sleeps", "no answer within"),
    ],
)
def test_an_error_of_an_own_agent_costs_its_share_of_the_round(lab: Maker, function: str, said: str) -> None:
    campaign = lab(**guests(function, agent_timeout_s=0.05))
    assert campaign.run()["finished"]
    assert sorted(branches(campaign)) == ["r01/h00", "r02/h00"]
    kept = [json.loads(body)["failed"] for (kind, _), body in campaign.journal.kept.items() if kind == "own_agent"]
    assert len(kept) == 2
    assert all(said in prompt for prompt in kept)
    assert [figures["failed"] for event, figures in campaign.shown if event == "own_agent"] == kept


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_crash_repeats_no_answer_of_an_own_agent(lab: Maker, share: float) -> None:
    steady = lab(**guests("good"))
    state = steady.run()
    campaign = lab(**guests("good"))
    campaign.fuse.at = max(1, round(share * steady.fuse.count))
    SEEN.clear()
    with pytest.raises(Crash):
        campaign.run()
    assert campaign.run(resume=True) == state
    assert campaign.journal.kept == steady.journal.kept
    assert len(SEEN) <= 3  # once a round, and once more only where it stopped before the answer was kept


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module_here:f", "cannot be imported"),
        ("json:no_such", "cannot be imported"),
        (f"{__name__}:blocking", "no async function"),
        ("nowhere/mine.py:f", "cannot be imported"),
    ],
)
def test_an_agent_that_cannot_be_used_is_told_before_the_search(name: str, said: str) -> None:
    with pytest.raises(AgentError, match=said) as caught:
        find_agent(name)
    assert caught.value.code == "own_part"


def test_the_example_of_hypotheses_is_what_the_reader_takes() -> None:
    path = Path(__file__).resolve().parents[2] / "examples" / "own_hypotheses.yaml"
    read = read_settings(path, OwnHypotheses).hypotheses
    assert [hypothesis.direction for hypothesis in read] == [-1, 1]


def test_a_page_whose_header_names_another_page_is_refused(tmp_path: Path) -> None:
    (tmp_path / "eval.md").write_text("---\nname: factor\nversion: 1\n---\nWrite formulas.\n")
    with pytest.raises(AgentError, match="says that it is the page 'factor'") as caught:
        read_folder(tmp_path)
    assert caught.value.code == "prompt"
