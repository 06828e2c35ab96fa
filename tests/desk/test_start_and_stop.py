"""A campaign that is started, stopped and resumed at the desk: the form, the file that it writes, and its process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, strategies as st
from starlette.testclient import TestClient

from alphaloom.campaign import Settings
from alphaloom.desk.errors import DeskError
from alphaloom.desk.launch import CampaignLaunch, Launches, find_error, read_begin, read_tail
from alphaloom.desk.web import Desk, build_app
from alphaloom.desk.web.control import MAX_FILES_OFFERED, CampaignDraft, FormOptions
from alphaloom.ledger import Ledger, Run as LedgerRun, compute_digest, read_json, read_settings, write_json
from alphaloom.ledger.files import parse_settings

from ..campaign import markets
from .workspace import NOON, SCRIPT, lay

HERE = "http://127.0.0.1:8000"
SAME = {"sec-fetch-site": "same-origin"}
TYPED = {
    "name": "calm-names", "seed": "7", "panel": "", "sectors": "", "goal": "calm names", "hypotheses": "",
    "rounds": "8",
    "evaluations": "240", "trials": "10", "horizon": "5", "approve": "yes", "models": "", "usd": "",
}  # fmt: skip  # a table
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by /proc")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace with two files in its data folder, and links to a file outside and to a folder outside."""
    place = tmp_path / "workspace"
    (place / "data" / "daily").mkdir(parents=True)
    (place / "data" / "daily" / "prices.parquet").write_bytes(b"none")
    (place / "data" / "ideas.yaml").write_text("[]")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "prices.csv").write_text("secret")
    (place / "data" / "link.csv").symlink_to(tmp_path / "elsewhere" / "prices.csv")
    (place / "data" / "folder").symlink_to(tmp_path / "elsewhere")
    lay(place)
    return place


@pytest.fixture
def client(workspace: Path) -> Iterator[TestClient]:
    with enter(workspace) as made:
        yield made


def enter(workspace: Path, person: str = "ada") -> TestClient:
    """Return a browser that has entered the desk of a workspace, by the clock of this machine."""
    desk = Desk(workspace, lambda: datetime.now(UTC))
    made = TestClient(build_app(desk), base_url=HERE, follow_redirects=False)
    assert made.get(f"/enter/{desk.issue_launch(person)}").status_code == 200
    return made


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that would have been run, each replaced by one that says so and sleeps."""
    commands: list[list[str]] = []
    real = subprocess.Popen

    def spawn(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        commands.append(command)
        sleep = "import time; print('here', flush=True); time.sleep(60)"
        return real([sys.executable, "-c", sleep, *command[2:]], **options)

    monkeypatch.setattr(subprocess, "Popen", spawn)
    return commands


def review(client: TestClient, **typed: str) -> dict[str, Any]:
    """Return what the form says of values."""
    found: dict[str, Any] = client.get(f"/runs/new.json?{urlencode(TYPED | typed)}").json()
    return found


def start(client: TestClient, **typed: str) -> Any:
    """Start what was shown."""
    return client.post("/runs/new", headers=SAME, data={**TYPED, **typed, "shown": review(client, **typed)["shown"]})


def wait(until: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return the first true value of a function."""
    end = time.monotonic() + seconds
    while not (found := until()):
        assert time.monotonic() < end
        time.sleep(0.25)
    return found


def test_the_form_writes_the_file_that_a_person_would_write(client: TestClient) -> None:
    found = review(
        client, panel="daily/prices.parquet", sectors="daily/prices.parquet", hypotheses="ideas.yaml", horizon="20"
    )
    assert found["problems"] == []
    assert found["text"] == (
        "name: calm-names\nseed: 7\n\nmarket:\n"
        '  panel: "../data/daily/prices.parquet"\n  sectors: "../data/daily/prices.parquet"\n\n'
        'steer:\n  goal: calm names\n  hypotheses: "../data/ideas.yaml"\n\n'
        "budget:\n  evaluations: 240\n  trials: 10\n\nagents:\n  rounds: 8\n\nevidence:\n  horizon_days: 20\n\n"
        "approve: true\n"
    )
    assert found["command"].startswith("alphaloom run /")
    assert found["options"]["panels"] == ["daily/prices.parquet"]


@given(goal=st.text(max_size=80), seed=st.integers(0, 10**9), approve=st.booleans())
def test_the_file_reads_back_as_what_was_typed(goal: str, seed: int, approve: bool) -> None:
    typed = TYPED | {"goal": goal, "seed": str(seed), "approve": "yes" if approve else "no"}
    draft = CampaignDraft.of(typed, Path("/nowhere"), FormOptions([], [], [], ""))
    assert draft.problems == []
    read = parse_settings(draft.text, Settings, "the text")
    expected = Settings(name="calm-names", seed=seed, approve=approve)
    steer = expected.steer.model_copy(update={"goal": " ".join(goal.split())})
    assert read == expected.model_copy(update={"steer": steer})


REFUSED = [
    ("name", "../../etc/cron"),
    ("name", ".."),
    ("name", "a/b"),
    ("name", ""),
    ("name", "a\nmarket: {panel: /etc/passwd}"),
    ("panel", "/etc/passwd"),
    ("panel", "../ledger.sqlite"),
    ("panel", "link.csv"),
    ("panel", "folder/prices.csv"),
    ("panel", "daily/prices.parquet\nsectors: x"),
    ("hypotheses", "../desk/users.yaml"),
    ("sectors", "daily/prices.parquet"),  # there is no file of prices
    ("models", "http://127.0.0.1:1/"),
    ("seed", "!!python/object/apply:os.system ['true']"),
    ("seed", "-1"),
    ("evaluations", "0"),
    ("evaluations", "9" * 400),
    ("trials", "1: 2"),
    ("horizon", "21"),
    ("rounds", "nan"),
    ("usd", "1e400"),
    ("approve", SCRIPT),
    ("goal", "x" * 2_001),
]


def test_a_value_that_cannot_be_used_is_refused_by_its_field_and_kept(
    client: TestClient, workspace: Path, spawned: list[list[str]]
) -> None:
    for field, value in REFUSED:
        refuse(client, field, value)
    assert not spawned
    assert not (workspace / "campaigns").exists()


def refuse(client: TestClient, field: str, value: str) -> None:
    """Check that the form refuses a value beside its field, keeps it, and starts nothing."""
    found = review(client, **{field: value})
    assert {one["field"] for one in found["problems"]} == {field}
    assert all(one["message"] for one in found["problems"])
    assert found["values"][field] == value.strip()
    assert found["text"] == ""
    page = client.get(f"/runs/new?{urlencode(TYPED | {field: value})}").text
    assert f'id="{field}-problem"' in page
    assert "<script>alert" not in page
    answer = client.post("/runs/new", headers=SAME, data={**TYPED, field: value, "shown": ""})
    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/runs/new")


def test_yaml_in_a_goal_stays_a_goal(client: TestClient) -> None:
    goal = "a: b # c\nmodels: {models: {x: {api_base: 'http://evil'}}}\n- !!python/name:os.system"
    text = review(client, goal=goal)["text"]
    settings = parse_settings(text, Settings, "the text")
    assert settings.steer.goal == " ".join(goal.split())
    assert settings.models == Settings().models


def test_models_come_from_a_router_file_whose_paths_start_from_the_campaign_file(
    client: TestClient, workspace: Path
) -> None:
    (workspace / "intents.jsonl").write_text("")
    router = "models:\n  own: {model: offline/researcher, tier: local, place: local}\n"
    (workspace / "router.yaml").write_text(f"{router}routing:\n  embedding: reader\nbudget: {{calls: 9}}\n")
    found = review(client, models="router", usd="2.5")
    assert found["options"]["models"] == ["own"]
    settings = parse_settings(found["text"], Settings, "the text")
    assert list(settings.models.models) == ["own"]
    assert (settings.models.budget.usd, settings.models.budget.calls) == (2.5, 9)
    assert str(settings.models.routing.embedding) == "../reader"
    (workspace / "router.yaml").write_text("models: 3\n")
    assert review(client, models="router")["problems"][0]["field"] == "models"


def test_who_lacks_the_scope_neither_sees_the_form_nor_starts_nor_stops(
    workspace: Path, spawned: list[list[str]]
) -> None:
    from alphaloom.desk.users import Users

    Users(workspace).add("bo", ["review:decide"], "four words of mine", NOON)
    with enter(workspace, "bo") as client:
        page = client.get("/runs/new.json?name=x").json()
        assert (page["values"], page["options"]["panels"]) == ({}, [])
        assert "takes the scope" in client.get("/runs/new").text
        assert "takes the scope" in client.get("/runs/r1").text or "Resume" not in client.get("/runs/r1").text
        for place in ("/runs/new", "/runs/r1", "/launches/x"):
            assert client.post(place, headers=SAME, data=TYPED | {"choice": "resume"}).status_code == 403
        assert client.post("/runs/new", headers={"sec-fetch-site": "cross-site"}, data=TYPED).status_code == 403
    assert not spawned


@LINUX
def test_a_start_writes_the_file_once_and_outlives_the_desk(
    client: TestClient, workspace: Path, spawned: list[list[str]]
) -> None:
    shown = review(client)["shown"]
    changed = client.post("/runs/new", headers=SAME, data={**TYPED, "trials": "9", "shown": shown})
    assert "changed=yes" in changed.headers["location"]
    assert "no longer the one" in client.get(changed.headers["location"]).text
    assert not spawned
    assert start(client).headers["location"] == "/launches/calm-names"
    file = workspace.resolve() / "campaigns" / "calm-names.yaml"
    assert spawned == [
        [sys.executable, "-P", "-m", "alphaloom", "run", str(file), "--workspace", str(workspace.resolve())]
    ]
    assert read_settings(file, Settings).steer.goal == "calm names"
    assert review(client)["problems"][0]["message"].startswith("This campaign is starting")
    launch = Launches(workspace).find_pending("calm-names")
    assert launch
    assert os.getsid(launch.pid) == launch.pid
    with enter(workspace) as later:  # the desk of another start
        wait(lambda: later.get("/launches/calm-names.json").json()["lines"] == ["here"])
        assert [one["campaign"] for one in later.get("/runs.json").json()["starting"]] == ["calm-names"]
        discard = {"choice": "discard"}
        assert later.post("/launches/calm-names", headers=SAME, data=discard).status_code == 409
        assert later.post("/launches/calm-names", headers=SAME, data={"choice": "stop"}).status_code == 303
        wait(lambda: not launch.is_alive)
        assert "Traceback" not in later.get("/launches/calm-names").text
        assert review(later)["problems"] == []  # it left no run, so its settings may be changed
        assert later.post("/launches/calm-names", headers=SAME, data=discard).headers["location"] == "/runs"
        assert not file.exists()
        assert later.get("/launches/calm-names.json").json()["code"] == "unknown_launch"
        assert later.get("/launches/%2e%2e.json").status_code == 404


@LINUX
def test_a_file_that_a_person_wrote_or_changed_is_left_alone(
    client: TestClient, workspace: Path, spawned: list[list[str]]
) -> None:
    (workspace / "campaigns").mkdir()
    (workspace / "campaigns" / "calm-names.yaml").symlink_to(workspace / "policy.yaml")
    assert review(client)["problems"][0]["field"] == "name"
    start(client, name="other")
    launch = Launches(workspace).find_pending("other")
    assert launch
    Launches(workspace).interrupt(launch)
    wait(lambda: not launch.is_alive)
    file = workspace / "campaigns" / "other.yaml"
    file.write_text(file.read_text() + "# mine\n")
    assert review(client, name="other")["problems"][0]["field"] == "name"
    client.post("/launches/other", headers=SAME, data={"choice": "discard"})
    assert file.read_text().endswith("# mine\n")


@LINUX
def test_a_process_that_a_note_names_is_hit_only_if_it_is_that_of_the_launch(workspace: Path) -> None:
    other, launches = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]), Launches(workspace)
    note = CampaignLaunch("x", "", "ada", NOON.isoformat(), other.pid, read_begin(other.pid))
    try:
        assert note.is_alive
        for stale in (note, replace(note, began=str(int(note.began) - 1)), replace(note, pid=0)):
            with pytest.raises(DeskError, match="ended"):
                launches.interrupt(stale)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    with pytest.raises(DeskError, match="ended"):
        launches.interrupt(note)


def test_an_edited_note_and_a_linked_output_open_nothing(client: TestClient, workspace: Path, tmp_path: Path) -> None:
    place, secret = workspace / "desk" / "launches" / "new", tmp_path / "secret"
    place.mkdir(parents=True)
    secret.write_text("error: of another file\n")
    note = {"campaign": "c", "run": "", "by": "ada", "at": NOON.isoformat(), "pid": 0, "began": "", "digest": "x"}
    edits: tuple[dict[str, object], ...] = (
        {"pid": "1"}, {"pid": -1}, {"pid": True}, {"pid": None}, {"at": "x"}, {"at": "2026-01-01"}, {"offset": -1},
        {"form": "x"}, {"form": {"goal": {}}}, {"by": {}}, {"campaign": "../../policy"}, {"run": "r1"},
        {"log": str(secret)}, {"other": 1},
    )  # fmt: skip  # a table
    for edited in edits:
        write_json(place / "c.json", {**note, **edited})
        assert client.get("/runs.json").json()["starting"] == []
        assert client.get("/launches/c.json").status_code == 404
        assert client.post("/launches/c", headers=SAME, data={"choice": "stop"}).status_code == 404
    write_json(place / "c.json", {**note, "pid": 10**30, "offset": 10**30})
    (place / "c.log").symlink_to(secret)
    assert client.get("/launches/c.json").json()["lines"] == []
    assert client.post("/launches/c", headers=SAME, data={"choice": "stop"}).status_code == 409


def test_a_campaign_that_began_while_no_desk_looked_is_not_paid_for_again(
    client: TestClient, workspace: Path, spawned: list[list[str]]
) -> None:
    shown = review(client)
    (workspace / "campaigns").mkdir()
    (workspace / "campaigns" / "calm-names.yaml").write_text(shown["text"])
    new = workspace / "desk" / "launches" / "new"
    new.mkdir(parents=True)
    (new / "calm-names.log").write_text("error: no more money\n")
    launch = CampaignLaunch("calm-names", "", "ada", NOON.isoformat(), 0, "", 0, {}, compute_digest(shown["text"]))
    write_json(new / "calm-names.json", asdict(launch))
    assert review(client)["problems"] == []
    with Ledger.open(workspace, clock=lambda: NOON) as ledger:
        settings = {**ledger.runs.find("r1").config["settings"], "name": "calm-names"}
        ledger.runs.start(LedgerRun("r9", {"settings": settings}, 1, "d", NOON.isoformat()))
    answer = client.post("/runs/new", headers=SAME, data={**TYPED, "shown": shown["shown"]})
    assert not spawned
    assert answer.status_code == 409
    assert review(client)["problems"][0]["message"].startswith("There is a campaign of this name")
    assert client.get("/runs/r9.json").json()["control"]["error"] == ["error: no more money"]


def test_files_that_cannot_be_used_hide_none_that_can(client: TestClient, workspace: Path) -> None:
    for number in range(MAX_FILES_OFFERED):
        (workspace / "data" / f"a{number:03}.txt").touch()
    (workspace / "data" / "loop.csv").symlink_to("loop.csv")
    options = client.get("/runs/new.json").json()["options"]
    assert (options["panels"], options["hypotheses"]) == (["daily/prices.parquet"], ["ideas.yaml"])


def test_a_failure_is_shown_in_the_words_of_the_command_without_its_stack(client: TestClient, workspace: Path) -> None:
    launches = workspace / "desk" / "launches"
    (launches / "new").mkdir(parents=True)
    stack = 'Traceback (most recent call last):\n  File "x.py", line 1\n    fail()\nValueError: deep\n'
    log = launches / "r1.log"
    log.write_text(
        f"error: of an earlier process\nsearching\n{stack}error: no such file {SCRIPT}\n  hint     mend it\n"
    )
    assert find_error(read_tail(log, 29)) == [f"error: no such file {SCRIPT}", "  hint     mend it"]
    assert "fail()" not in "".join(read_tail(log, 0))
    note = {"campaign": "c", "run": "r1", "by": "ada", "at": NOON.isoformat(), "pid": 0, "began": ""}
    write_json(launches / "r1.json", note)
    page = client.get("/runs/r1").text
    assert "error: no such file &lt;script&gt;" in page
    assert "<script>alert" not in page
    write_json(launches / "new" / "c.json", {**note, "run": "", "campaign": "c"})
    log.rename(launches / "new" / "c.log")
    assert "It could not start" in client.get("/launches/c").text


def test_a_run_that_waits_for_decisions_or_that_nothing_works_on_is_neither_resumed_nor_stopped(
    client: TestClient, spawned: list[list[str]]
) -> None:
    answer = client.post("/runs/r1", headers=SAME, data={"choice": "resume"})
    assert answer.status_code == 409
    assert "Decide on what waits for a person first." in answer.text
    for choice in ("stop", "close", "interrupt", "rm -rf"):
        assert client.post("/runs/r1", headers=SAME, data={"choice": choice}).status_code == 409
    assert not spawned


@LINUX
@pytest.mark.integration
def test_a_campaign_is_started_stopped_and_resumed_by_its_buttons(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    panel = markets.strong(days=450, names=24)
    markets.write(markets.tidy(panel), tmp_path / "data" / "prices.parquet")
    with enter(tmp_path) as client:
        assert start(client, name="small", panel="prices.parquet", goal="x: y").status_code == 303
        place = wait(lambda: client.get("/launches/small").headers.get("location"))

        def read() -> dict[str, Any]:
            found: dict[str, Any] = client.get(f"{place}.json").json()
            return found

        def press(choice: str) -> None:
            assert client.post(place, headers=SAME, data={"choice": choice}).status_code == 303

        assert read()["control"]["can_stop"]
        press("interrupt")
        wait(lambda: read()["control"]["can_resume"])
        assert read()["control"]["error"] == []
        press("resume")
        assert client.post(place, headers=SAME, data={"choice": "resume"}).status_code == 409
        wait(lambda: read()["standing"]["state"] == "running")
        press("stop")
        assert read()["control"]["stopping"] == "ada asked it to stop"
        press("interrupt")  # the step under way, the scores of published formulas, takes half a minute
        wait(lambda: not read()["control"]["can_stop"])
        words = [one["words"].split()[0] for one in read()["control"]["requests"]]
        assert words == ["asked", "asked", "set", "asked", "set"]
        assert read_json(tmp_path / "desk" / "launches" / f"{place.rpartition('/')[2]}.json")["by"] == "ada"
