"""The desk in a browser: who may open it, what waits, and what a decision leaves on record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.web import Desk, Sessions, build_app
from alphaloom.evaluation import Reviews

from .workspace import CASE, LEAK, NOON, SCRIPT, lay

HERE = "http://127.0.0.1:8000"
SAME = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    lay(tmp_path)
    return Desk(tmp_path, lambda: NOON)


@pytest.fixture
def client(desk: Desk) -> Iterator[TestClient]:
    """Return a browser that has entered."""
    with TestClient(build_app(desk), base_url=HERE, follow_redirects=False) as made:
        assert made.get(f"/enter/{desk.sessions.issue_launch('ada')}").status_code == 200
        yield made


def test_a_launch_address_opens_once_in_time_and_survives_a_restart(tmp_path: Path) -> None:
    now = [NOON]
    sessions = Sessions(tmp_path, lambda: now[0])
    launch, late = sessions.issue_launch("ada"), sessions.issue_launch("ada")
    secret = sessions.enter(launch)
    assert secret
    assert sessions.enter(launch) is None
    assert sessions.enter("x") is None
    found = Sessions(tmp_path, lambda: now[0]).find(secret)
    assert found
    assert found.person == "ada"
    kept = (tmp_path / "desk" / "sessions.json").read_text()
    assert secret not in kept
    assert launch not in kept
    now[0] += timedelta(minutes=11)
    assert sessions.enter(late) is None
    now[0] += timedelta(hours=12)
    assert sessions.find(secret) is None


def test_without_a_session_no_page_and_no_change_is_answered(desk: Desk) -> None:
    stranger = TestClient(build_app(desk), base_url=HERE, follow_redirects=False, cookies={desk.cookie: "forged"})
    for place in (
        "/inbox",
        "/inbox.json",
        "/runs",
        "/runs/r1",
        "/runs/r1/live",
        "/library",
        "/books",
        f"/runs/r1/cases/{CASE}",
    ):
        answer = stranger.get(place)
        assert answer.status_code == 401, place
        assert CASE not in answer.text
    assert stranger.post(f"/runs/r1/cases/{CASE}", headers=SAME, data={"choice": "approve"}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:8000"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({}, 403),
        ({**SAME, "content-length": "999999"}, 413),
    ],
)
def test_changes_from_elsewhere_are_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.post(f"/runs/r1/cases/{CASE}", headers=headers, data={"choice": "approve"}).status_code == status


def test_a_decision_is_recorded_with_what_was_on_the_screen_and_leads_to_what_waits_next(
    desk: Desk, client: TestClient
) -> None:
    place = f"/runs/r1/cases/{CASE}"
    page = client.get(place).text
    shown = re.search(r'name="shown" value="(\w+)"', page)
    assert shown
    assert client.post(place, headers=SAME, data={"choice": "approve", "shown": "other"}).status_code == 409
    answer = client.post(place, headers=SAME, data={"choice": "approve", "shown": shown[1], "comment": "clear reason"})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/runs/r1/alarms/{LEAK}"
    with desk.open() as ledger:
        decision = Reviews.of(ledger, ledger.runs.find("r1")).decision(CASE)
        assert decision
        assert (decision.by, decision.decision, decision.comment, decision.shown) == (
            "ada",
            "approve",
            "clear reason",
            shown[1],
        )
        assert decision.case in page
        assert CASE not in {row.factor_id for row in ledger.library.rows()}
        Reviews.of(ledger, ledger.runs.find("r1")).settle()  # as the run goes on
        assert CASE in {row.factor_id for row in ledger.library.rows()}
    assert client.post(place, headers=SAME, data={"choice": "reject", "shown": shown[1]}).status_code == 409


def test_an_alarm_is_acknowledged_with_a_reason(desk: Desk, client: TestClient) -> None:
    from alphaloom.risk import list_alarms, read_standings

    place = f"/runs/r1/alarms/{LEAK}"
    assert client.post(place, headers=SAME, data={"reason": " "}).status_code == 409
    with desk.open() as ledger:
        assert read_standings(ledger, LEAK)[LEAK].leak_alarm
    command = ["evidence", "acknowledge", "r1", LEAK[:6], "--by", "bo", "--workspace", str(desk.workspace), "--reason"]
    assert run_command([*command, " "]) == 2
    assert client.post(place, headers=SAME, data={"reason": "the fields are of the close"}).status_code == 303
    assert run_command([*command, "a second time"]) == 2
    with desk.open() as ledger:
        assert not list_alarms(ledger)
        assert not read_standings(ledger, LEAK)[LEAK].leak_alarm


def test_no_text_that_a_model_wrote_becomes_markup(client: TestClient) -> None:
    for place in (
        "/inbox",
        "/runs",
        "/runs/r1",
        "/library",
        f"/library/{LEAK}",
        f"/runs/r1/cases/{CASE}",
        f"/runs/r1/alarms/{LEAK}",
        f"/runs/{SCRIPT}",
    ):
        answer = client.get(place)
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert "<script>alert" not in answer.text, place
        assert "<img src" not in answer.text, place
    assert client.get("/inbox").text.count("&lt;script&gt;") >= 2


def test_every_page_is_a_record_too(client: TestClient) -> None:
    for place in ("/inbox", "/runs", "/runs/r1", "/library", f"/library/{LEAK}", "/books", f"/runs/r1/cases/{CASE}"):
        assert client.get(f"{place}.json").json(), place
    assert [one["kind"] for one in client.get("/inbox.json").json()["waiting"]] == ["alarm", "case"]
    assert client.get("/runs/none.json").json()["code"] == "unknown_run"
