"""Accepted factors come back to a person, in the inbox and on the command line; the library's pages over time."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.revalidation import read_revalidation_dates
from alphaloom.desk.web import Desk, build_app
from alphaloom.evaluation import add_accepted, add_by_hand
from alphaloom.factors import parse
from alphaloom.ledger import Ledger
from alphaloom.library import find_entry
from alphaloom.risk import Policy, compare_policies, digest_policy

from . import test_library
from .test_library import KEPT, OWN, WATCHED, days_since, told
from .workspace import HERE, SAME, SCRIPT

Capture = pytest.CaptureFixture[str]
NAME = parse(KEPT).id
PLACE = f"/library/{NAME}"
DUE = datetime(2027, 1, 1, tzinfo=UTC)
"""The library took the factor in on the first day of 2026."""
elsewhere = test_library.elsewhere
ledger = test_library.ledger


@pytest.fixture
def kept(ledger: Ledger) -> Ledger:
    """Return a ledger that accepted a factor, with two quarters of new days and a bit; another was put in by hand."""
    add_accepted(ledger, "one", NAME)
    add_by_hand(ledger, parse(OWN), "2026-01-01")
    days_since(ledger, KEPT, 0.03)
    days_since(ledger, WATCHED, 0.06)
    return ledger


def enter(ledger: Ledger, now: datetime = DUE) -> TestClient:
    desk = Desk(ledger.workspace, lambda: now)
    client = TestClient(build_app(desk), base_url=HERE, follow_redirects=False)
    assert client.get(f"/enter/{desk.sessions.issue_launch('ada')}").status_code == 200
    return client


def list_kinds(client: TestClient) -> list[tuple[str, str]]:
    return [(one["kind"], one["href"]) for one in client.get("/inbox.json").json()["waiting"]]


def test_a_factor_waits_from_its_day_on_and_not_before(kept: Ledger) -> None:
    assert list_kinds(enter(kept, datetime(2026, 12, 31, tzinfo=UTC))) == []
    client = enter(kept)
    assert list_kinds(client) == [("revalidate", PLACE)]
    assert "taken in on 2026-01-01" in client.get("/inbox").text
    assert "due to be looked at again" in client.get(PLACE).text
    (kept.workspace / "policy.yaml").write_text("revalidate_after_days: null\n")
    assert list_kinds(client) == []
    (kept.workspace / "policy.yaml").write_text("revalidate_after_days: 400\n")
    assert list_kinds(client) == []
    assert read_revalidation_dates(kept)[NAME].due == "2027-02-05"


def test_a_person_says_that_it_stays_and_the_days_count_anew(kept: Ledger, capsys: Capture) -> None:
    client = enter(kept)
    shown = re.search(r'name="shown" value="(\w+)"', client.get(PLACE).text)
    assert shown
    form = {"choice": "revalidate", "reason": SCRIPT, "shown": shown[1]}
    for wrong in ({"reason": " "}, {"choice": "x"}, {"shown": "other"}):
        assert client.post(PLACE, headers=SAME, data={**form, **wrong}).status_code == 409
    answer = client.post(PLACE, headers=SAME, data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/inbox")
    assert list_kinds(client) == []
    (event,) = kept.events.of("one", "revalidation")
    assert event.body == {
        "by": "ada", "reason": SCRIPT, "at": DUE.isoformat(), "status": "live", "digest": shown[1],
    }  # fmt: skip  # a table
    assert read_revalidation_dates(kept)[NAME].due == "2028-01-01"
    page = client.get(PLACE).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert find_entry(kept, NAME).status == "live"
    assert len(find_entry(kept, NAME).history) == 0
    assert told(capsys, "show", NAME)["revalidation"]["last"]["by"] == "ada"


def test_the_command_line_says_it_too_with_the_digest_of_the_same_facts(kept: Ledger, capsys: Capture) -> None:
    shown = enter(kept).get(f"{PLACE}.json").json()["shown"]
    said = told(capsys, "revalidate", NAME[:6], "--reason", "the days since hold", "--by", "bo")
    assert (said["id"], said["last"]["by"], said["last"]["digest"]) == (NAME, "bo", shown)
    for refused in (parse(OWN).id, parse(WATCHED).id):
        assert told(capsys, "revalidate", refused, "--reason", "no", code=2)["code"] == "revalidation"
    assert run_command(["library", "revalidate", NAME, "--reason", " "]) == 2
    assert told(capsys, "revalidate", NAME, "--reason", "again", "--by", "cy")["last"]["by"] == "cy"
    told(capsys, "retire", NAME, "--reason", "crowded")
    assert told(capsys, "revalidate", NAME, "--reason", "no", code=2)["code"] == "revalidation"
    assert read_revalidation_dates(kept) == {}


def test_a_factor_that_does_not_stay_is_retired_on_the_same_page(kept: Ledger) -> None:
    client = enter(kept)
    form = {"choice": "retire", "reason": "crowded", "shown": client.get(f"{PLACE}.json").json()["shown"]}
    assert client.post(PLACE, headers=SAME, data=form).status_code == 303
    assert find_entry(kept, NAME).history[-1].reason == "crowded (ada)"
    assert list_kinds(client) == []


def test_the_setting_is_no_limit_of_the_gate_and_fewer_days_are_tighter() -> None:
    year, month, never = (Policy(revalidate_after_days=days) for days in (365, 30, None))
    assert digest_policy(year) == digest_policy(month) == digest_policy(never)
    changes = [compare_policies(month, year), compare_policies(year, never), compare_policies(never, month)]
    assert [change.change for (change,) in changes] == ["tighter", "tighter", "looser"]


def test_the_library_pages_say_what_the_commands_say(kept: Ledger, capsys: Capture) -> None:
    client = enter(kept)
    listed, page = told(capsys, "list")["factors"], client.get("/library.json").json()
    assert page["factors"] == listed
    assert page["statuses"] == {"live": 2, "watchlist": 1}
    by_id = dict(zip((one["id"] for one in listed), page["sparks"], strict=True))
    assert "line limit" in by_id[NAME]
    assert by_id[parse(OWN).id] == ""
    assert [one["id"] for one in client.get("/library.json?status=watchlist").json()["factors"]] == [parse(WATCHED).id]
    entry, shown = client.get(f"{PLACE}.json").json(), told(capsys, "show", NAME)
    assert entry["facts"] == shown
    assert [title for title, _, _ in entry["charts"]] == ["Evidence on new days", "Decay", "RankIC since, added up"]
    assert "line limit" in entry["charts"][1][1]


def test_windows_have_the_intervals_of_their_days(kept: Ledger) -> None:
    entry = enter(kept).get(f"{PLACE}.json").json()
    windows: dict[str, Any] = {row["window"]: row for row in entry["windows"]}
    assert list(windows)[:4] == ["search", "selection", "sealed", "since"]
    assert windows["search"]["half"] == pytest.approx(1.96 * 0.04 / 5.0)
    assert windows["sealed"]["rank_ic"] is None
    assert len(windows) == 6
    first = [one["rank_ic"] for one in entry["facts"]["daily"][:63]]
    row = windows[f"to {entry['facts']['daily'][62]['day']}"]
    assert row["rank_ic"] == pytest.approx(np.mean(first), rel=1e-4)
    assert row["half"] == pytest.approx(1.96 * np.std(first) / np.sqrt(63), rel=0.6)
