"""A request to open sealed days in the desk: who may decide, what is kept, and until when it may be changed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.users import PersonScope
from alphaloom.desk.web import Desk, build_app
from alphaloom.evaluation.closing import SealDecision, SealRequests
from alphaloom.evidence import ReviewRefused
from alphaloom.risk import Policy, RiskLimits, compare_policies, digest_policy

from .workspace import HERE, NOON, SAME, SCRIPT, ask_for_seal, lay, lay_seal

PLACE = "/runs/r2/seal"


@pytest.fixture
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    workspace = tmp_path_factory.mktemp("desk")
    lay(workspace)
    lay_seal(workspace)
    return Desk(workspace, lambda: NOON)


def shown(client: TestClient) -> str:
    found = re.search(r'name="shown" value="(\w+)"', client.get(PLACE).text)
    assert found
    return found[1]


def test_a_request_is_decided_with_what_was_on_the_screen_and_may_be_decided_anew(
    desk: Desk, client: TestClient
) -> None:
    assert ["seal", PLACE] in [[one["kind"], one["href"]] for one in client.get("/inbox.json").json()["waiting"]]
    assert client.get("/runs.json").json()["runs"][0]["state"] == "paused for review"
    assert PLACE in client.get("/runs/r2").text
    first = shown(client)
    for wrong in (
        {"choice": "agree", "shown": first},
        {"choice": "agree", "shown": "other", "reason": "x"},
        {"shown": first, "reason": "x"},
    ):
        assert client.post(PLACE, headers=SAME, data=wrong).status_code == 409
    form = {"choice": "refuse", "shown": first, "reason": SCRIPT}
    assert client.post(PLACE, headers=SAME, data=form).status_code == 303
    page = client.get(f"{PLACE}.json").json()
    assert page["open"]
    assert SCRIPT in page["decision"]
    assert "<script>alert" not in client.get(PLACE).text
    assert client.get("/runs.json").json()["runs"][0]["state"] == "reviewed"
    anew = {"choice": "agree", "shown": shown(client), "reason": "the search is over"}
    assert client.post(PLACE, headers=SAME, data=anew).status_code == 303
    with desk.open() as ledger:
        kept = SealRequests(ledger, "r2").decisions()
        assert [(one.agrees, one.by) for one in kept] == [(False, "ada"), (True, "ada")]
        assert (kept[0].shown, kept[0].request) == (first, page["digest"])
        with pytest.raises(ReviewRefused, match="This was decided already: ada agreed"):
            SealRequests(ledger, "r2").decide(kept[1])  # two tabs, or a second click
        with pytest.raises(ReviewRefused, match="It was decided already: ada agreed"):
            SealRequests(ledger, "r2").decide(replace(kept[1], by="bob"))
        ledger.runs.finish("r2", "running")
        with pytest.raises(ReviewRefused, match="paused"):
            SealRequests(ledger, "r2").decide(kept[1])


def test_the_command_line_decides_alike_and_both_need_the_scope(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def seal(*arguments: str) -> int:
        return run_command(["evidence", "seal", "r2", *arguments, "--workspace", str(desk.workspace)])

    secret = desk.workspace / "secret"
    secret.touch(mode=0o600)
    secret.write_text("four words that differ\n")
    monkeypatch.setenv("ALPHALOOM_PASSWORD_FILE", str(secret))
    for name, scope in (("ann", PersonScope.SEAL_OPEN), ("bob", PersonScope.REVIEW_DECIDE)):
        desk.users.add(name, [scope.value], "four words that differ", NOON)
    with TestClient(build_app(desk), base_url=HERE, follow_redirects=False) as bob:
        bob.get(f"/enter/{desk.issue_launch('bob')}")
        assert "seal:open" in bob.get(PLACE).text
        assert bob.post(PLACE, headers=SAME, data={"choice": "agree", "reason": "x"}).status_code == 403
    assert seal() == 0
    assert "first opening in this workspace" in " ".join(capsys.readouterr().out.split())
    assert seal("--agree", "--refuse", "--reason", "x") == 2
    assert seal("--reason", "x") == 2
    assert seal("--agree", "--by", "ann") == 1
    assert seal("--agree", "--reason", "x", "--by", "bob") == 1
    assert seal("--agree", "--reason", "it is time", "--by", "ann") == 0
    assert "ann agreed to open the sealed (hold-out) days: it is time" in " ".join(capsys.readouterr().out.split())
    assert run_command(["evidence", "seal", "r1", "--workspace", str(desk.workspace)]) == 1


def test_the_policy_alone_says_that_a_person_must_agree(desk: Desk) -> None:
    asks = Policy(approve_seal=True)
    assert digest_policy(asks) == digest_policy(Policy())  # no decision of the risk gate reads it
    assert [(one.name, one.change) for one in compare_policies(asks, Policy())] == [("approve_seal", "tighter")]
    with pytest.raises(ValueError, match="approve_seal"):
        RiskLimits.model_validate({"approve_seal": False})
    with desk.open() as ledger:
        request = SealRequests(ledger, "r2").request()
        assert request == ask_for_seal()
        other = SealDecision(agrees=True, reason="x", by="ann", at="", request="of another request")
        with pytest.raises(ReviewRefused, match="changed"):
            SealRequests(ledger, "r2").decide(other)
