"""Users of a workspace: who is admitted in a browser and on the command line, and what each may do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from alphaloom.desk import users as module
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.users import PERSON_SCOPES, Users
from alphaloom.desk.web import Desk, build_app
from alphaloom.desk.web.access.login import LOGINS_IN_ALL, LOGINS_PER_NAME, LoginLimit
from alphaloom.ledger import SettingsError
from alphaloom.mcp_servers.access import EVERY_SCOPE

from .workspace import CASE, HERE, LEAK, NOON, SAME, lay

SECRET, OTHER_SECRET = "correct horse battery", "staple of another kind"
CASE_PLACE, ALARM_PLACE = f"/runs/r1/cases/{CASE}", f"/runs/r1/alarms/{LEAK}"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCRYPT_LOG_N", 10)
    monkeypatch.setattr(module, "NOBODY", f"scrypt$10$8$3${'0' * 32}${'0' * 64}")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    lay(tmp_path)
    users = Users(tmp_path)
    users.add("ada", ["review:decide"], SECRET, NOON)
    users.add("bo", ["risk:approve"], OTHER_SECRET, NOON)
    return Desk(tmp_path, lambda: NOON)


@pytest.fixture
def browser(desk: Desk) -> Iterator[TestClient]:
    with TestClient(build_app(desk), base_url=HERE, follow_redirects=False) as made:
        yield made


def log_in(browser: TestClient, name: str = "ada", password: str = SECRET) -> int:
    return browser.post("/login", headers=SAME, data={"name": name, "password": password}).status_code


def test_no_scope_of_a_person_is_one_of_a_caller() -> None:
    assert not {*PERSON_SCOPES} & EVERY_SCOPE


def test_a_browser_needs_name_and_password(desk: Desk, browser: TestClient) -> None:
    assert browser.get("/inbox").status_code == 401
    assert 'name="password"' in browser.get("/login").text
    assert browser.get("/inbox.json").status_code == 401
    for name, password in (("ada", OTHER_SECRET), ("nobody", SECRET), ("ada", ""), ("", "")):
        assert log_in(browser, name, password) == 401
    assert not browser.cookies
    assert log_in(browser) == 303
    assert browser.get("/inbox").status_code == 200
    assert SECRET not in (desk.workspace / "desk/users.yaml").read_text()


def test_a_login_begins_a_new_session_and_ends_the_planted_one(desk: Desk, browser: TestClient) -> None:
    planted = desk.sessions.begin("bo", desk.users.all()[1].mark)
    browser.cookies.set(desk.cookie, planted, domain="127.0.0.1")
    assert browser.get("/inbox").status_code == 200
    assert log_in(browser) == 303
    assert browser.cookies[desk.cookie] != planted
    assert desk.find_signer(planted) is None
    forged = TestClient(build_app(desk), base_url=HERE, cookies={desk.cookie: "forged"})
    assert forged.get("/inbox").status_code == 401


def test_a_session_ends_with_the_user_the_password_or_the_first_user(desk: Desk, browser: TestClient) -> None:
    log_in(browser)
    desk.users.change("ada", {"scopes": []})
    assert browser.get("/inbox").status_code == 200
    desk.users.change("ada", {"password": OTHER_SECRET})
    assert browser.get("/inbox").status_code == 401
    assert log_in(browser, password=OTHER_SECRET) == 303
    desk.users.remove("ada")
    assert browser.get("/inbox").status_code == 401
    desk.users.remove("bo")
    assert browser.get("/inbox").status_code == 401  # without users an old session still opens nothing
    alone = desk.sessions.enter(desk.issue_launch("ada"))
    assert alone
    assert desk.find_signer(alone)
    desk.users.add("ada", [], SECRET, NOON)
    assert desk.find_signer(alone) is None


def test_a_launch_address_admits_users_alone(desk: Desk, browser: TestClient) -> None:
    assert browser.get(f"/enter/{desk.issue_launch('eve')}").status_code == 401
    assert browser.get(f"/enter/{desk.sessions.issue_launch('ada')}").status_code == 401
    assert browser.get(f"/enter/{desk.issue_launch('ada')}").status_code == 200
    assert "<span>ada</span>" in browser.get("/inbox").text


def test_each_change_takes_its_scope_and_no_other_form_is_shown(browser: TestClient) -> None:
    log_in(browser)
    assert "data-decide" in browser.get(CASE_PLACE).text
    page = browser.get(ALARM_PLACE).text
    assert "data-decide" not in page
    assert "risk:approve" in page
    refused = browser.post(ALARM_PLACE, headers=SAME, data={"reason": "looked"})
    assert (refused.status_code, "ada lacks the scope risk:approve" in refused.text) == (403, True)
    log_in(browser, "bo", OTHER_SECRET)
    assert browser.post(CASE_PLACE, headers=SAME, data={"choice": "approve"}).status_code == 403
    assert browser.post(ALARM_PLACE, headers=SAME, data={"reason": "looked"}).status_code == 303


def test_guessing_is_slowed_for_a_name_and_in_all(browser: TestClient) -> None:
    for _ in range(LOGINS_PER_NAME):
        assert log_in(browser, password="a guess of twelve") == 401
    assert log_in(browser) == 429
    assert log_in(browser, "bo", OTHER_SECRET) == 303
    now = [0.0]
    limit = LoginLimit(lambda: now[0])
    waits = [limit.take(f"name {number}") for number in range(LOGINS_IN_ALL + 1)]
    assert waits.count(0) == LOGINS_IN_ALL
    now[0] += waits[-1] + 0.001
    assert limit.take("ada") == 0


def test_a_file_that_others_may_read_admits_nobody(desk: Desk, browser: TestClient) -> None:
    log_in(browser)
    file = desk.workspace / "desk/users.yaml"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o644)
    assert browser.get("/inbox").status_code == 503
    assert log_in(browser) == 503
    with pytest.raises(SettingsError, match="others may use this file"):
        desk.users.all()
    file.chmod(0o600)
    file.write_text(f"users: [{{name: x, scopes: [], password: {SECRET}, created: 2026-01-01T00:00:00Z}}]")
    file.chmod(0o600)
    with pytest.raises(SettingsError) as wrong:
        desk.users.all()
    assert SECRET not in str(wrong.value)
    file.unlink()
    file.symlink_to("nowhere")
    with pytest.raises(SettingsError):
        desk.users.all()


def test_the_command_line_signs_as_a_user(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{OTHER_SECRET}\n")
    file.chmod(0o600)
    place = ["--workspace", str(desk.workspace)]
    command = ["evidence", "acknowledge", "r1", LEAK, "--reason", "looked", *place]
    assert run_command([*command, "--by", "bo"]) == 1  # nobody can be asked
    monkeypatch.setenv("ALPHALOOM_PASSWORD_FILE", str(file))
    for name in ("ada", "eve"):  # another's password, and nobody's name
        assert run_command([*command, "--by", name]) == 1
        assert "no user of this name and password" in capsys.readouterr().err
    assert run_command(["review", "r1", CASE, "--approve", "--by", "bo", *place]) == 1
    assert "bo lacks the scope review:decide" in capsys.readouterr().err
    file.chmod(0o640)
    assert run_command([*command, "--by", "bo"]) == 2
    file.chmod(0o600)
    assert run_command([*command, "--by", "bo"]) == 0


def test_users_are_kept_by_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(tmp_path)
    file = tmp_path / "password"
    file.write_text(SECRET)
    file.chmod(0o600)
    place = ["--workspace", str(tmp_path)]
    add = ["desk", "user", "add", "ann", "--password-file", str(file), *place, "--scopes"]
    assert run_command([*add, "review:decide,rule:all"]) == 2
    assert run_command([*add, "review:decide, supervise"]) == 0
    assert run_command([*add, ""]) == 2  # there is one already
    assert Users(tmp_path).admit("ann", SECRET)
    capsys.readouterr()
    assert run_command(["desk", "user", "list", "--json", *place]) == 0
    listed = capsys.readouterr().out
    assert '"scopes": ["review:decide", "supervise"]' in listed
    assert "scrypt" not in listed
    file.write_text("short")
    assert run_command(["desk", "user", "password", "ann", "--password-file", str(file), *place]) == 2
    assert run_command(["desk", "user", "remove", "ann", *place]) == 0
    assert Users(tmp_path).all() == ()
    assert run_command(["desk", "--by", "x" * 200, *place]) == 2  # bare, it opens the desk
