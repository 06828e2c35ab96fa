"""The news server gives texts known at the time, marks them as foreign words, and withholds what is held back."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from mcp import Client, MCPError

from alphaloom.evaluation import Budget, Evaluator
from alphaloom.ledger import canonical_json
from alphaloom.mcp_servers import open_own_sessions
from alphaloom.mcp_servers.access import Caller
from alphaloom.mcp_servers.answers import MAX_ANSWER_BYTES
from alphaloom.mcp_servers.served_caller import CallerEntry, ServedCaller
from alphaloom.mcp_servers.tools import build_server
from alphaloom.mcp_servers.tools.news import MAX_ITEMS_PER_PAGE, MAX_TEXT_CHARS_SHOWN, NOTE
from alphaloom.news import NEWS_FOLDER, NewsItem, NewsStore
from alphaloom.news.screening.crowd import MIN_BURST_VOICES

from ..evidence.lab import SMALL, Lab, market, read
from .opened import clock, served_to, unrecorded
from .shelves import LAST_DAY, MANY, ORDER, shelved, text

RUMOUR = "zorvex gets secret takeover offer at forty dollars a share says insider"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with read(tmp_path_factory.mktemp("news") / "workspace") as ledger:
        yield Lab.open(ledger, "run", market(), SMALL, Budget(evaluations=8, trials=2)).evaluator


def asked(served: ServedCaller, ask: Callable[[Client], Awaitable[Any]]) -> Any:
    async def talk() -> Any:
        async with Client(build_server("news", served)) as client:
            return await ask(client)

    return asyncio.run(talk())


def called(served: ServedCaller, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers, a refusal too."""
    return dict(asked(served, lambda client: client.call_tool(tool, arguments)).structured_content)


def on(run: Evaluator, shelf: NewsStore | None, last_day: date | None = None, *scopes: str) -> ServedCaller:
    """Return what the server of a caller stands on; without scopes it may do everything."""
    served = replace(served_to(run), news=shelf)
    caller = Caller("ann", frozenset(scopes)) if scopes else served.entry.caller
    return replace(served, entry=CallerEntry(caller, unrecorded, last_day))


def test_the_shelves_of_these_tests_end_with_the_search_window(run: Evaluator) -> None:
    assert run.windows.search.last_day == str(LAST_DAY)


def test_a_text_comes_with_where_it_is_from_and_a_mark_that_it_is_data(run: Evaluator, tmp_path: Path) -> None:
    (item,) = items = (text("Acme opens a plant in Ohio.", title="A plant"),)
    with shelved(tmp_path, *items) as shelf:
        found = called(on(run, shelf), "search_news", query="OHIO plant", symbols=["B.AKJ"], since="2010-10-01")
        whole = called(on(run, shelf), "get_news", id=item.id)
    assert found["items"] == [whole["item"]]
    assert (found["total"], found["next_cursor"], found["note"], whole["note"]) == (1, "", NOTE, NOTE)
    assert whole["item"] == {
        "id": item.id, "kind": "news", "source": "wire", "symbols": ["B.AKJ"], "credibility": 0.5,
        "published": "2010-10-21T12:00:00.000000Z", "known": "2010-10-21T12:00:00.000000Z",
        "provenance": {"file": "made.jsonl", "record": 1, "sha256": "0" * 64},
        "untrusted_title": "A plant", "untrusted_text": "Acme opens a plant in Ohio.", "characters": 27, "cut": False,
    }  # fmt: skip  # a table


def test_pages_follow_one_another_and_questions_narrow_them(run: Evaluator, tmp_path: Path) -> None:
    with shelved(tmp_path, *MANY) as shelf:
        served, seen, cursor = on(run, shelf), list[str](), ""
        while cursor or not seen:
            page = called(served, "search_news", query="acme", limit=2, cursor=cursor)
            assert page["total"] == 5
            seen += [item["untrusted_title"] for item in page["items"]]
            cursor = page["next_cursor"]
        assert seen == [f"Plant {number}" for number in range(1, 6)]
        assert called(served, "search_news", query="nobody")["total"] == 0
        assert called(served, "search_news", symbols=["OTHER"])["items"] == []
        assert called(served, "search_news", since="2010-10-20")["total"] == 2


ROWS = st.tuples(
    st.sampled_from(["acme opens a plant in ohio", "beta beats", RUMOUR, ORDER]),
    st.integers(-40, 40),
    st.integers(0, 9),
    st.sampled_from(["ACME", "BETA"]),
)


def everything(served: ServedCaller, ids: list[str]) -> str:
    """Return all that the server says to one caller, as it stands on the wire."""

    async def ask(client: Client) -> list[str]:
        said, cursor = list[str](), ""
        while cursor or not said:
            page = await client.call_tool("search_news", {"limit": 3, "cursor": cursor})
            said.append(page.model_dump_json())
            cursor = (page.structured_content or {})["next_cursor"]
        for narrowed in (
            {"query": "plant"},
            {"symbols": ["BETA"]},
            {"since": "2010-10-22"},
            {"query": "zorvex", "limit": 1},
        ):
            said.append((await client.call_tool("search_news", narrowed)).model_dump_json())
        said += [(await client.call_tool("get_news", {"id": id})).model_dump_json() for id in ids]
        said.append((await client.read_resource("alphaloom://news")).model_dump_json())
        said.append((await client.list_tools()).model_dump_json())
        return said

    return canonical_json(asked(served, ask))


@settings(max_examples=15)
@given(st.lists(ROWS, max_size=24), st.integers(-3, 1))
def test_answers_are_those_of_a_shelf_that_never_had_later_texts(
    run: Evaluator, rows: list[tuple[str, int, int, str]], early: int
) -> None:
    items = [text(body, hours / 24, "", (symbol,), f"s{voice}", 0.2) for body, hours, voice, symbol in rows]
    last_day = LAST_DAY + timedelta(days=early)
    then = [item for item in items if item.known.date() <= min(last_day, LAST_DAY)]
    ids = sorted({item.id for item in items})
    with (
        tempfile.TemporaryDirectory() as folder,
        shelved(Path(folder) / "all", *items) as full,
        shelved(Path(folder) / "then", *then) as past,
    ):
        assert everything(on(run, full, last_day), ids) == everything(on(run, past, last_day), ids)


def test_a_day_after_the_search_window_is_never_told_whoever_asks(run: Evaluator, tmp_path: Path) -> None:
    """Not without a last day, nor with a later one: the text would tell of days that factors are judged on."""
    with shelved(tmp_path, text("the last", 0.4), text("too late", 0.6), text("early", -9)) as shelf:
        for last_day, told in ((None, 2), (date(2011, 8, 12), 2), (LAST_DAY, 2), (date(2010, 10, 14), 1)):
            found = called(on(run, shelf, last_day), "search_news")
            assert (found["total"], len(found["items"])) == (told, told)
            assert "too late" not in json.dumps(found)


def held() -> list[NewsItem]:
    """Return texts that are held back: one speaks to machines in its text, one in its title, the others are shouted."""
    shouted = [
        text(f"{RUMOUR} {n % 3}", -3 + n / 1000, "", ("Z",), f"forum/{n}", 0.2) for n in range(MIN_BURST_VOICES + 1)
    ]
    return [text(ORDER, -4), text("Nothing happened.", -4, ORDER), *shouted]


def test_what_is_held_back_reaches_no_answer_and_is_not_counted(run: Evaluator, tmp_path: Path) -> None:
    good = text("Acme opens a plant in Ohio.")
    with shelved(tmp_path / "all", good, *held()) as all_of_it, shelved(tmp_path / "good", good) as only:
        ids = [good.id, *(item.id for item in held())]
        assert everything(on(run, all_of_it), ids) == everything(on(run, only), ids)
        for word in ("zorvex", "ignore", "happened"):
            assert called(on(run, all_of_it), "search_news", query=word)["total"] == 0
        refused = called(on(run, all_of_it), "get_news", id=held()[0].id)
        unknown = called(on(run, all_of_it), "get_news", id="0" * 64)
    assert refused | {"got": ""} == unknown | {"got": ""}
    assert refused["code"] == "unknown_text"


def test_what_a_person_released_is_told_and_still_marked(run: Evaluator, tmp_path: Path) -> None:
    order = text(ORDER)
    with shelved(tmp_path, order) as shelf:
        shelf.release(order.id, "ann", "a report about such texts", order.known)
        (told,) = called(on(run, shelf), "search_news")["items"]
    assert told["untrusted_text"] == ORDER
    assert "sign" not in json.dumps(told), "the words in which signs showed are for a person"


def test_long_texts_are_cut_and_say_so(run: Evaluator, tmp_path: Path) -> None:
    long = text('"🜁 é\n' * 40_000, title="long", symbols=tuple(f"S{n}" for n in range(500)))
    with shelved(tmp_path, long, text("short")) as shelf:
        found = called(on(run, shelf), "search_news", symbols=["S1"])["items"][0]
        result = asked(on(run, shelf), lambda client: client.call_tool("get_news", {"id": long.id}))
    whole = result.structured_content["item"]
    assert (found["cut"], found["untrusted_text"], found["characters"]) == (
        True,
        long.body[:MAX_TEXT_CHARS_SHOWN],
        len(long.body),
    )
    assert (whole["cut"], whole["characters"]) == (True, len(long.body))
    assert long.body.startswith(whole["untrusted_text"])
    assert 0.9 * MAX_ANSWER_BYTES < len(result.content[0].text.encode()) <= MAX_ANSWER_BYTES


def test_a_page_of_the_longest_texts_is_still_an_answer(run: Evaluator, tmp_path: Path) -> None:
    symbols = tuple(f"{n:03d}{'X' * 17}" for n in range(300))
    longest = [text("🜁" * 900, -n, "🜂" * 500, symbols, "🜃" * 400) for n in range(MAX_ITEMS_PER_PAGE)]
    with shelved(tmp_path, *longest) as shelf:
        found = asked(on(run, shelf), lambda client: client.call_tool("search_news", {"limit": MAX_ITEMS_PER_PAGE}))
    assert not found.is_error
    assert len(found.structured_content["items"]) == MAX_ITEMS_PER_PAGE


@pytest.mark.parametrize(
    "body",
    ["[1e400,'x','y']", "nonsense", '[1e400,"x","y"]', "[]", '[99e18,"aa","{digest}"]', '[1,"\\ud800","{digest}"]'],
)
def test_a_forged_cursor_is_refused(run: Evaluator, tmp_path: Path, body: str) -> None:
    with shelved(tmp_path, *MANY) as shelf:
        served = on(run, shelf)
        given = called(served, "search_news", limit=1)["next_cursor"]
        digest = json.loads(base64.urlsafe_b64decode(given))[2]
        forged = base64.urlsafe_b64encode(body.replace("{digest}", digest).encode()).decode()
        refusal = called(served, "search_news", limit=1, cursor=forged)
    assert (refusal["code"], refusal["field"]) == ("shelf", "cursor")


def test_without_the_scope_nothing_is_listed_told_or_read(run: Evaluator, tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        assert (await client.list_tools()).tools == []
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []
        for tool, arguments in (("search_news", {}), ("get_news", {"id": MANY[0].id})):
            refusal = (await client.call_tool(tool, arguments)).structured_content or {}
            assert (refusal["code"], refusal["allowed"]) == ("forbidden", "news:read")
        with pytest.raises(MCPError, match="does not allow"):
            await client.read_resource(f"alphaloom://news/{MANY[0].id}")

    with shelved(tmp_path, *MANY) as shelf:
        asked(on(run, shelf, None, "data:read", "factor:read", "eval:run"), ask)
        assert called(on(run, shelf, None, "news:read"), "search_news")["total"] == 5


def test_a_text_is_a_resource_too(run: Evaluator, tmp_path: Path) -> None:
    async def ask(client: Client) -> tuple[Any, Any]:
        one = await client.read_resource(f"alphaloom://news/{MANY[0].id}")
        for hidden in (MANY[-1].id, MANY[-2].id, "x", "%2e%2e"):
            with pytest.raises(MCPError, match=r"No text of this id|no such resource"):
                await client.read_resource(f"alphaloom://news/{hidden}")
        return json.loads(one.contents[0].model_dump()["text"]), (
            await client.call_tool("get_news", {"id": MANY[0].id})
        ).structured_content

    with shelved(tmp_path, *MANY) as shelf:
        resource, answer = asked(on(run, shelf), ask)
    assert resource == answer


def test_no_shelf_answers_like_an_empty_one(run: Evaluator, tmp_path: Path) -> None:
    with shelved(tmp_path) as empty:
        assert everything(on(run, empty), ["0" * 64]) == everything(on(run, None), ["0" * 64])


def test_a_campaigns_own_agents_read_the_workspaces_texts_and_make_no_folder(run: Evaluator) -> None:
    folder = run.ledger.workspace / NEWS_FOLDER

    async def found() -> list[str]:
        async with open_own_sessions(run, clock) as sessions:
            return [item["id"] for item in (await sessions["news"].call("search_news", {"limit": 1}))["items"]]

    assert asyncio.run(found()) == []
    assert not folder.exists()
    with shelved(folder, *MANY):
        assert asyncio.run(found()) == [MANY[0].id]
