"""A person without a user account gives a name once: the record has it beside the account of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from alphaloom.desk.cli.options import signer_name
from alphaloom.desk.errors import DeskError
from alphaloom.desk.users import GivenNames
from alphaloom.desk.web import Desk, build_app
from alphaloom.evaluation import Reviews

from .workspace import CASE, HERE, NOON, SAME, lay

PLACE = f"/runs/r1/cases/{CASE}"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    lay(tmp_path)
    return Desk(tmp_path, lambda: NOON)


def open_browser(desk: Desk, person: str) -> TestClient:
    browser = TestClient(build_app(desk), base_url=HERE, follow_redirects=False)
    browser.get(f"/enter/{desk.issue_launch(person)}")
    return browser


def test_a_name_that_is_given_once_signs_in_the_browser_and_in_the_terminal(desk: Desk) -> None:
    browser = open_browser(desk, "root")
    assert "You sign as <b>root</b>" in browser.get(PLACE).text
    for back, place in ((PLACE, PLACE), ("//evil.example", "/inbox"), ("https://evil.example", "/inbox")):
        answer = browser.post("/name", headers=SAME, data={"name": " Ada  Lovelace ", "back": back})
        assert (answer.status_code, answer.headers["location"]) == (303, place)
    assert "You sign as" not in browser.get(PLACE).text
    shown = browser.get(f"{PLACE}.json").json()["shown"]
    assert browser.post(PLACE, headers=SAME, data={"choice": "approve", "shown": shown}).status_code == 303
    signed = "Ada Lovelace (account root)"
    with desk.open() as ledger:
        decision = Reviews.of(ledger, ledger.runs.find("r1")).decision(CASE)
    assert decision
    assert decision.by == signed
    for name, signs in ((None, signed), ("root", signed), ("ada lovelace", signed), ("bob", "bob")):
        assert signer_name(name, desk.workspace) == signs


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "Ada (account bob)", "a\x1b[31m"])
def test_a_name_that_could_pass_for_another_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(DeskError, check=lambda error: error.code == "no_name"):
        GivenNames(desk.workspace).give("root", name)
    assert signer_name(None, desk.workspace) == "root"


def test_who_is_named_already_gives_no_name(desk: Desk) -> None:
    browser = open_browser(desk, "ada")
    assert "You sign as" not in browser.get("/inbox").text
    assert browser.post("/name", headers=SAME, data={"name": "Bob"}).status_code == 409
    (desk.workspace / "desk" / "names.json").write_text("[1")
    assert signer_name(None, desk.workspace) == "root"
