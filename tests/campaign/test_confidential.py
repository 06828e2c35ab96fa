"""A whole campaign with one server of the house and one elsewhere: confidential text and keys stay in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from alphaloom import Campaign
from alphaloom.agents.offline import answer_offline
from alphaloom.evaluation import CampaignResult
from alphaloom.ledger import AlphaloomError, Ledger
from alphaloom.mcp_servers import Session
from alphaloom.router import Confidential
from alphaloom.sandbox import probe_sandbox
from alphaloom.sandbox.cluster import list_descendants

from ..router.served import Say, Served, chatting
from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

KEYS = {
    "NEAR_KEY": "sk-near-0123456789abcdef",
    "CLOUD_KEY": "sk-cloud-fedcba9876543210",
    "MY_DB_PASSWORD": "hunter2-hunter2",
}
MARKER = "zebrafish"
"""A word of the goal that nobody else would use."""
SMALL = [
    *markets.BRIEF, "seed=5", "agents.rounds=2", "agents.hypotheses=3", "budget.evaluations=14", "budget.trials=3",
    f"steer.goal={MARKER}", "market.labels={mood: [confidential]}", "agents.node_retries=0", "models.retries=0",
]  # fmt: skip  # a table


@dataclass
class Heard:
    """Record of a campaign: prompts to each server, answers of tools, the environments of all processes."""

    near: Served
    cloud: Served
    answers: list[str] = field(default_factory=list)
    environments: dict[int, str] = field(default_factory=dict)
    result: CampaignResult | None = None
    stored: bytes = b""

    def look(self) -> None:
        """Read the environments of all processes that this one has started, and those their own."""
        for pid in list_descendants(os.getpid())[1:]:
            try:
                self.environments[pid] = Path(f"/proc/{pid}/environ").read_text(errors="replace")
            except OSError:
                continue


def in_python() -> Say:
    """Return what answers as the offline researcher does, but with one Python factor, so that the sandbox has work."""
    code = ["def factor(panel):\n    return panel['close'].rolling(20).std()\n"]

    def say(messages: Sequence[Mapping[str, Any]], seed: int) -> str:
        said = json.loads(answer_offline(messages, seed))
        if said.get("candidates") and code:
            said["candidates"][0]["text"] = code.pop()
        return json.dumps(said)

    return say


def models(near: str, cloud: str) -> str:
    free = "input_cost_per_mtok: 0, output_cost_per_mtok: 0"
    return (
        f"models.models={{near: {{model: hosted_vllm/near, place: local, api_key_env: NEAR_KEY, api_base: '{near}'}}, "
        f"cloud: {{model: hosted_vllm/big, tier: frontier, api_key_env: CLOUD_KEY, api_base: '{cloud}', {free}}}}}"
    )


def hear(files: Files, folder: Path, *more: str, say: Say = answer_offline) -> Heard:
    """Run a campaign on two servers that both answer as the offline researcher does."""
    call = Session.call
    with chatting(say) as near, chatting(say) as cloud, pytest.MonkeyPatch.context() as patch:
        heard = Heard(near, cloud)

        async def listened(self: Session, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
            body = await call(self, name, arguments)
            heard.answers.append(json.dumps([name, body]))
            heard.look()
            return body

        for name, key in KEYS.items():
            patch.setenv(name, key)
        patch.setattr(Session, "call", listened)
        patch.setattr(Campaign, "render", None)
        ready = Campaign.from_yaml(
            files.campaign, workspace=folder, overrides=[*SMALL, models(near.address, cloud.address), *more]
        )
        heard.result = ready.run()
    heard.stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return heard


@pytest.fixture(scope="module")
def confidential(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Heard:
    folder, more = tmp_path_factory.mktemp("confidential"), ["agents.sensitivity=confidential"]
    if not probe_sandbox().available:
        return hear(files, folder, *more)
    return hear(files, folder, *more, "agents.python=true", "agents.drafts=1", say=in_python())


@pytest.fixture(scope="module")
def public(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Heard:
    return hear(files, tmp_path_factory.mktemp("public"))


def test_a_confidential_campaign_reaches_the_server_of_the_house_alone(confidential: Heard) -> None:
    assert confidential.result is not None
    assert confidential.result.record["evaluations"] > 5
    assert confidential.result.record["ended"] is None
    assert len(confidential.near.bodies) > 4
    assert confidential.cloud.bodies == []
    assert any(MARKER in body for body in confidential.near.bodies), "what may be seen is told"
    assert any("mood" in body for body in confidential.near.bodies), "a marked field need not be withheld from it"


def test_a_public_campaign_reaches_both_and_neither_is_told_of_what_is_marked(public: Heard) -> None:
    assert len(public.cloud.bodies) > 1
    assert any(MARKER in body for body in public.cloud.bodies)
    bodies = [*public.near.bodies, *public.cloud.bodies, *public.answers]
    assert not [body for body in bodies if '"mood' in body or "mood)" in body or "mood," in body]


@pytest.mark.parametrize("kind", ["confidential", "public"])
def test_no_key_reaches_a_prompt_the_ledger_a_tool_or_the_sandbox(kind: str, request: pytest.FixtureRequest) -> None:
    heard: Heard = request.getfixturevalue(kind)
    assert set(heard.near.keys) == {f"Bearer {KEYS['NEAR_KEY']}"}, "there was a key to lose"
    assert heard.answers
    texts = [*heard.near.bodies, *heard.cloud.bodies, *heard.answers]
    assert not [text for text in texts if any(key in text for key in KEYS.values())]
    assert not [key for key in KEYS.values() if key.encode() in heard.stored]
    assert b"near" in heard.stored


def test_no_process_of_the_sandbox_has_a_key_in_its_environment(confidential: Heard) -> None:
    if not probe_sandbox().available:
        pytest.skip(f"the sandbox cannot run here: {probe_sandbox().problem}")
    assert confidential.environments, "its server was there"
    assert not [text for text in confidential.environments.values() if any(key in text for key in KEYS.values())]


def test_a_process_with_a_key_would_be_seen(confidential: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary."""
    monkeypatch.setenv("NEAR_KEY", KEYS["NEAR_KEY"])
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()  # before it runs, the kernel tells no environment
        seen = Heard(confidential.near, confidential.cloud)
        seen.look()
        child.stdin.write(b"\n")
        child.stdin.close()
    assert KEYS["NEAR_KEY"] in seen.environments[child.pid]


def test_every_call_keeps_the_label_under_which_it_was_routed(confidential: Heard) -> None:
    assert confidential.result is not None
    with Ledger.open(confidential.result.folder.parents[1], clock=lambda: markets.NOON) as ledger:
        routes = [event.body for event in ledger.events.of(confidential.result.run) if event.kind == "route"]
    assert len(routes) == len(confidential.near.bodies)
    assert {route["signals"]["sensitivity"] for route in routes} == {"confidential"}
    assert {route["model"] for route in routes} == {"near"}
    assert all("does not leave" in alternative["reason"] for route in routes for alternative in route["alternatives"])


def test_a_confidential_campaign_waits_for_a_server_that_is_down_and_says_for_which(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEAR_KEY", KEYS["NEAR_KEY"])
    monkeypatch.setenv("CLOUD_KEY", KEYS["CLOUD_KEY"])
    with chatting(answer_offline) as gone:
        down = gone.address
    with chatting(answer_offline) as cloud:
        settings = [*SMALL, models(down, cloud.address), "agents.sensitivity=confidential"]
        with pytest.raises(AlphaloomError, match="waits for a local or attested model") as caught:
            Campaign.from_yaml(files.campaign, workspace=tmp_path, overrides=settings).run()
    assert cloud.bodies == []
    assert caught.value.exit_code == 3
    assert f"near (local): {down}/models does not answer" in str(caught.value)
    assert "cloud (remote): confidential text does not leave" in str(caught.value)


@pytest.mark.parametrize("more", ["agents.sensitivity=confidential", "agents.jurisdiction=CH"])
def test_a_campaign_that_no_model_may_be_told_of_does_not_begin(more: str, files: Files, tmp_path: Path) -> None:
    elsewhere = "models.models={cloud: {model: hosted_vllm/big, region: EU, place: region}}"
    with pytest.raises(Confidential, match="no model of this campaign may be told") as caught:
        Campaign.from_yaml(files.campaign, workspace=tmp_path / "w", overrides=[*SMALL, elsewhere, more]).run()
    assert "cloud (region)" in str(caught.value)
    with Ledger.open(tmp_path / "w", clock=lambda: markets.NOON) as ledger:
        assert ledger.runs.all() == []
