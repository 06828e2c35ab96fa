"""The pages on paper books: the same facts as the commands, every reason of a refusal, and orders of two people."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from alphaloom.campaign import (
    BookData,
    PlanRequest,
    Settings,
    execute_session,
    find_book,
    list_orders,
    list_steps,
    read_trading_mode,
    step_book,
)
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.facts.books import StepLine
from alphaloom.desk.users import Users
from alphaloom.desk.web import Desk, build_app
from alphaloom.desk.web.access import LoginLimit
from alphaloom.desk.web.books import trading_state
from alphaloom.desk.web.books.orders import render_progress
from alphaloom.desk.web.books.shelf import StepShelf
from alphaloom.desk.web.live import LiveRequest

from .books import BOOK, EMPTY, LATER, MARKET, ORDERED, PLANTED, STEPS, lay_books, plant
from .workspace import HERE, NOON, SAME

PLACE = f"/books/{BOOK}"
PARTS = ("", "/positions", "/orders", "/refusals", "/stress?scenario=crash")


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("books")
    lay_books(folder)
    return folder


@pytest.fixture
def desk(laid: Path, tmp_path: Path) -> Desk:
    return Desk(Path(shutil.copytree(laid, tmp_path / "workspace")), lambda: NOON)


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run_command([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_pages_say_what_the_commands_say(
    desk: Desk, client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--workspace", str(desk.workspace)]
    shown = client.get(f"{PLACE}.json").json()
    facts = run_json(capsys, "book", "show", BOOK, *place)
    assert shown["facts"] == facts
    assert facts["steps"] == STEPS
    assert facts["waiting_orders"]
    assert len(shown["meters"]) == len(facts["limits"]) > 20
    (line,) = [one for one in client.get("/books.json").json()["books"] if one["book"] == BOOK]
    assert (line["day"], line["equity"], line["refused"]) == tuple(
        facts["last"][name] for name in ("day", "equity", "refused")
    )
    assert line["state"] == "reductions only"
    stressed = client.get(f"{PLACE}/stress.json?scenario=crash").json()
    assert stressed["facts"] == run_json(capsys, "book", "stress", BOOK, "--scenario", "crash", *place)
    page = client.get(PLACE).text
    assert f"{facts['exposures']['gross']:.1%}".replace("%", " %") in page
    positions = client.get(f"{PLACE}/positions.json").json()
    assert {one["symbol"]: one["weight"] for one in positions["rows"]} == facts["holdings"]
    refusals = client.get(f"{PLACE}/refusals.json").json()
    assert refusals["total"] == facts["last"]["refused"] > 0
    counted = [rule["rule"] for row in refusals["rows"] for rule in row["rules"]]
    assert {row["rule"]: row["refused"] for row in facts["last_refusals"]} == {
        rule: counted.count(rule) for rule in counted
    }
    assert run_command(["book", "show", BOOK, *place]) == 0
    assert "ordered" in capsys.readouterr().out


def test_head_room_is_that_of_the_recorded_decision(desk: Desk, client: TestClient) -> None:
    with desk.open() as ledger:
        body = list_steps(ledger, f"book-{BOOK}")[-1]
    limits = {row["rule"]: row for row in client.get(f"{PLACE}.json").json()["facts"]["limits"]}
    gross = next(check for check in body["decision"]["book"] if check["rule"] == "gross")
    assert limits["gross"]["used"] == pytest.approx(gross["actual"] / gross["limit"])
    widest = max(
        max(abs(ruling["signal"]["lo_e8"]), abs(ruling["signal"]["hi_e8"])) for ruling in body["decision"]["rulings"]
    )
    assert limits["single_name"]["actual"] == pytest.approx(widest / 1e4)
    assert limits["single_name"]["symbol"]
    assert limits["sector"]["used"] is None


def test_no_name_in_a_book_becomes_markup(client: TestClient) -> None:
    for book in (BOOK, PLANTED, EMPTY, ORDERED):
        for part in PARTS:
            answer = client.get(f"/books/{book}{part}")
            assert answer.status_code == 200, (book, part)
            assert "<script>alert" not in answer.text, (book, part)
            assert "<img src" not in answer.text, (book, part)
    assert "&lt;script&gt;" in client.get(f"/books/{PLANTED}").text
    assert "&lt;script&gt;" in client.get(PLACE).text


def test_a_scenario_names_no_file_and_an_error_stays_on_the_page(desk: Desk, client: TestClient) -> None:
    (desk.workspace / "moves.csv").write_text("symbol,move\n*,-0.5\n")
    for scenario in (str(desk.workspace / "moves.csv"), "moves.csv", "1999-01"):
        page = client.get(f"{PLACE}/stress.json", params={"scenario": scenario}).json()
        assert page["facts"] is None, scenario
        assert page["problem"]["message"], scenario
    assert "holds nothing" in client.get(f"/books/{EMPTY}/stress?scenario=crash").text
    assert client.get("/books/none/stress.json").json()["code"] == "unknown_book"


def test_the_blotter_is_that_of_the_command_and_a_cancelled_order_is_not_sent(
    desk: Desk, client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    def read() -> Any:
        facts = run_json(capsys, "orders", ORDERED, "--workspace", str(desk.workspace))
        page = client.get(f"/books/{ORDERED}/orders.json").json()
        assert page["facts"] | {"orders": facts["orders"]} == facts
        assert sorted(page["facts"]["orders"], key=str) == sorted(facts["orders"], key=str)
        return facts

    first = read()["orders"][0]["id"]
    form = {"session": read()["session"], "cancel": first}
    assert client.post(f"/books/{ORDERED}/orders", headers=SAME, data=form | {"cancel": "nothing"}).status_code == 409
    assert client.post(f"/books/{ORDERED}/orders", headers=SAME, data=form).status_code == 303
    page = client.get(f"/books/{ORDERED}/orders").text
    assert f"ada asked to cancel {first}" in page
    assert "Planned, nothing sent yet" in page
    scope = {"type": "http", "path_params": {"book": ORDERED}, "query_string": f"session={form['session']}".encode()}
    live = LiveRequest(desk.open, desk.workspace, lambda: True, Request(scope))
    assert "Planned, nothing sent yet" in render_progress(live)
    with desk.open() as ledger:
        settings = Settings.model_validate({"market": MARKET})
        panel, dataset = settings.market.open(settings.seed)
        execute_session(ledger, ORDERED, BookData(plant(panel), dataset), PlanRequest("paper"), LATER)
    assert read()["status"] == "done"
    assert "All ended" in render_progress(live)  # it reads on from where it was
    (ended,) = [row for row in read()["orders"] if row["id"].startswith(first)]
    assert (ended["refusals"][0]["rule"], ended["filled"]) == ("cancelled", 0)
    assert ended["refusals"][0]["times"] == len(ended["children"]) > 1
    page = client.get(f"/books/{ORDERED}/orders").text
    assert "Cancel all" not in page
    assert "schedule vwap" in page
    assert "mean by volume" in page
    assert client.get(f"/books/{ORDERED}/orders.json?q={ended['id']}").json()["matches"] == 1


def test_one_person_halts_and_two_resume(desk: Desk, client: TestClient) -> None:
    def send(**form: str) -> int:
        return client.post(PLACE, headers=SAME, data={"reason": "odd prices", **form}).status_code

    assert send(mode="other") == 409
    assert send(mode="halted", reason=" ") == 409
    assert send(mode="halted") == 303
    assert send(mode="reducing") == 409
    assert send(mode="active", second="ADA") == 409
    with desk.open() as ledger:
        assert read_trading_mode(ledger, f"book-{BOOK}")[1] == "halted"
    assert send(mode="active", second="bo") == 303
    with desk.open() as ledger:
        last = list_orders(ledger, f"book-{BOOK}")[-1]
    assert (last.mode, last.by, last.second, last.reason) == ("active", "ada", "bo", "odd prices")


def test_the_second_person_of_a_workspace_with_users_gives_a_password_and_needs_the_scope(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = Users(desk.workspace)
    password = "four words and more"
    for name, scopes in (("ada", ["risk:approve"]), ("bo", ["risk:approve"]), ("cy", ["review:decide"])):
        users.add(name, scopes, password, NOON)
    with TestClient(build_app(desk), base_url=HERE, follow_redirects=False) as client:
        client.post("/login", headers=SAME, data={"name": "ada", "password": password})
        assert 'name="second_password"' in client.get(PLACE).text
        form = {"mode": "active", "reason": "checked", "second": "bo"}
        tried = [{**form, "second_password": "wrong"}, form, {**form, "second": "cy", "second_password": password}]
        assert [client.post(PLACE, headers=SAME, data=one).status_code for one in tried] == [409, 409, 403]
        assert client.post(PLACE, headers=SAME, data={**form, "second_password": password}).status_code == 303
        spent = LoginLimit(lambda: 0.0)
        assert [bool(spent.take("bo")) for _ in range(6)] == [False] * 5 + [True]
        monkeypatch.setattr(trading_state, "_TRIES", spent)
        answer = client.post(PLACE, headers=SAME, data={**form, "second_password": password})
        assert "Too many tries" in answer.text
    with TestClient(build_app(desk), base_url=HERE, follow_redirects=False) as other:
        other.post("/login", headers=SAME, data={"name": "cy", "password": password})
        assert other.post(PLACE, headers=SAME, data={"mode": "halted", "reason": "no right"}).status_code == 403
        assert "lacks" in other.get(PLACE).text


def test_steps_are_read_once_and_anew_where_the_record_is_another(desk: Desk, tmp_path: Path) -> None:
    shelf = StepShelf()
    with desk.open() as ledger:
        book = find_book(ledger, BOOK)[0]
        first = shelf.read(ledger, book)
        assert first == [StepLine.of(body) for body in list_steps(ledger, book)]
        settings = Settings.model_validate({"market": MARKET})
        panel, dataset = settings.market.open(settings.seed)
        step_book(ledger, EMPTY, BookData(panel, dataset), lambda: LATER)
        assert shelf.read(ledger, book)[0] is first[0]
        (kept,) = shelf.kept.values()
        kept.ends = ((first[0].facts["day"], "another time"),)
        anew = shelf.read(ledger, book)
        assert anew == first
        assert anew[0] is not first[0]
        assert len(shelf.read(ledger, f"book-{EMPTY}")) == 1
