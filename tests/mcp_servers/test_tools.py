"""What each tool answers, what it refuses, and what no tool may say."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alphaloom.evaluation import Budget, BudgetMeter, Evaluator
from alphaloom.evidence.gate import UNTRADABLE
from alphaloom.ledger import AlphaloomError, Ledger, LedgerConflict
from alphaloom.ledger.database.protocol import workspace_error
from alphaloom.ledger.errors import DamagedObject
from alphaloom.mcp_servers import Session, server
from alphaloom.mcp_servers.access import EVERY_SCOPE, Caller
from alphaloom.mcp_servers.callers import CallerContexts, ServerSetup
from alphaloom.mcp_servers.errors import ToolError
from alphaloom.mcp_servers.served_caller import ServedCaller
from alphaloom.mcp_servers.tools import SERVERS
from alphaloom.search.constraints import SearchConstraints

from ..evidence.lab import SMALL, Lab, market
from .opened import clock, opened_to, served_to, unrecorded

Call = Callable[..., dict[str, Any]]
ONE, TWO = "rank(ts_skew(volume, 30)) * rank(open)", "ts_kurt(high / low, 25)"
THREE = "rank(ts_argmax(volume, 12)) - rank(ts_argmin(low, 15))"

TOOLS = {
    "evaluation": {
        "choose_drafts": True,
        "get_budget": True,
        "get_job": True,
        "list_formulas": True,
        "measure_decay": True,
        "score_factor": False,
        "stress_factor": True,
        "submit_to_gate": False,
    },
    "factors": {
        "check_factor": True,
        "explain_factor": True,
        "find_similar": True,
        "get_factor": True,
        "recall_attempts": True,
        "register_factor": False,
        "search_library": True,
        "translate_factor": True,
    },
    "market": {
        "describe_universe": True,
        "get_calendar": True,
        "get_history": True,
        "preview_panel": True,
        "search_fields": True,
    },
    "news": {"get_news": True, "search_news": True},
}
"""Each server's tools, and whether they only read."""


SPENDING: dict[str, list[str]] = {"evaluation": ["submit_to_gate"], "factors": [], "market": [], "news": []}


def hypothesis(**changed: Any) -> dict[str, Any]:
    said = {
        "id": "h1",
        "mechanism": "control",
        "statement": "a formula of the tests",
        "direction": 1,
        "horizon_days": 5,
        "fields": ["high", "low", "open", "volume"],
    }
    return said | changed


def asked(evaluator: Evaluator, text: str, key: str = "k", **changed: Any) -> dict[str, Any]:
    """Return the arguments that score a formula with a hypothesis that it keeps."""
    direction = -1 if evaluator.score(text)["rank_ic"] < 0 else 1
    return {"text": text, "key": key, "hypothesis": hypothesis(direction=direction, **changed)}


def test_each_server_has_these_tools_and_says_what_they_do(talk: Callable[..., Any]) -> None:
    async def ask(sessions: dict[str, Session]) -> dict[str, dict[str, bool]]:
        found: dict[str, dict[str, bool]] = {}
        for name, session in sessions.items():
            tools = (await session.client.list_tools()).tools
            assert await session.tools() == sorted(tool.name for tool in tools)
            assert all(tool.description for tool in tools)
            marks = {tool.name: tool.annotations for tool in tools}
            assert [tool for tool, mark in marks.items() if mark and mark.destructive_hint] == SPENDING[name]
            assert not [tool for tool, mark in marks.items() if not mark or mark.open_world_hint]
            assert all(mark and mark.idempotent_hint for mark in marks.values())
            found[name] = {tool: bool(mark and mark.read_only_hint) for tool, mark in marks.items()}
        return found

    assert talk(ask) == TOOLS
    assert set(SERVERS) == set(TOOLS)


def test_every_argument_is_described_and_every_text_is_limited(talk: Callable[..., Any]) -> None:
    async def ask(sessions: dict[str, Session]) -> list[str]:
        wanting = []
        for session in sessions.values():
            tools = (await session.client.list_tools()).tools
            assert len(tools) <= 8
            for tool in tools:
                for name, said in tool.input_schema.get("properties", {}).items():
                    spelled = json.dumps(said)
                    bounded = any(word in spelled for word in ("maxLength", "enum", "pattern", '"format"'))
                    described = "description" in said or "$ref" in said
                    wanting += [] if described and (bounded or '"string"' not in spelled) else [f"{tool.name}.{name}"]
        return wanting

    assert talk(ask) == []


def test_fields_are_found_by_a_word(call: Call) -> None:
    names = [row["name"] for row in call("market.search_fields")["fields"]]
    assert names == sorted(market().fields)
    assert [row["name"] for row in call("market.search_fields", query=" SHARES traded ")["fields"]] == ["volume"]
    assert [group["name"] for group in call("market.search_fields")["groups"]] == sorted(market().groups)


def test_the_universe_is_that_of_the_search_window(call: Call, evaluator: Evaluator) -> None:
    window = evaluator.windows.search
    present = market().universe[window.start : window.stop]
    said = call("market.describe_universe")
    assert said["window"] == window.record()
    assert said["names"] == present.any(axis=0).sum() < market().names
    assert (said["names_per_day"]["least"], said["names_per_day"]["most"]) == (
        present.sum(axis=1).min(),
        present.sum(axis=1).max(),
    )


def test_no_tool_says_what_a_note_on_the_whole_panel_says(ledger: Ledger) -> None:
    notes = (
        "vwap: typical",
        "bad ticks suspected: AAA and 16 more",
        "synthetic market, seed 1, null: nothing is in it",
    )
    run = Lab.open(ledger, "run", replace(market().rows(0, 417), notes=notes), SMALL)

    async def ask() -> list[dict[str, Any]]:
        async with opened_to(run.evaluator) as sessions:
            scored = await sessions["evaluation"].call("score_factor", asked(run.evaluator, ONE))
            assert scored["ok"]
            return [scored, await sessions["market"].call("describe_universe", {})]

    answers = asyncio.run(ask())
    assert answers[1]["notes"] == ["vwap: typical"]
    assert not [text for text in texts(answers) if "bad ticks" in text or "synthetic" in text]


def test_a_preview_shows_the_last_search_days_of_names_that_were_there(call: Call, evaluator: Evaluator) -> None:
    window, panel = evaluator.windows.search, market()
    said = call("market.preview_panel", field=" close ", rows=3)
    assert said["dates"] == [str(day) for day in panel.dates[window.stop - 3 : window.stop]]
    assert len(said["symbols"]) == 10
    there = panel.universe[: window.stop].sum(axis=0)
    assert min(int(there[panel.symbols.index(symbol)]) for symbol in said["symbols"]) > 0
    column = panel.symbols.index(said["symbols"][4])
    assert [row[4] for row in said["values"]] == pytest.approx(
        panel.fields["close"][window.stop - 3 : window.stop, column]
    )


def test_a_formula_is_checked_explained_and_compared(call: Call, evaluator: Evaluator) -> None:
    checked = call("factors.check_factor", text="-1 * rank(close)")
    assert checked["ok"]
    assert checked["id"] == evaluator.read("-rank(close)").id
    wrong = call("factors.check_factor", text="rank(clsoe)")
    (mistake,) = wrong["errors"]
    assert (wrong["ok"], mistake["stage"], mistake["at"]) == (False, "parse", 5)
    assert "close" in mistake["hint"]
    assert call("factors.explain_factor", text="ts_std(returns, 20)")["warmup"] == 20
    similar = call("factors.find_similar", text="rank(ts_std(returns, 21))", top=2)
    assert similar["similar"][0]["ratio"] == 1
    assert len(similar["similar"]) == 2
    assert similar["most_allowed"] == SMALL.max_similarity


def test_code_is_checked_and_compared_and_nothing_runs_it_without_a_sandbox(call: Call) -> None:
    code = 'def factor(panel):\n    return panel["returns"].rolling(21).std()  #' + " long" * 500
    checked = call("factors.check_factor", text=code)
    assert (checked["ok"], checked["amounts_to"]) == (True, "ts_std(returns, 21)")
    assert call("factors.find_similar", text=code, top=1)["similar"][0]["ratio"] == 1
    assert call("factors.check_factor", text="def factor(panel):\n    return (")["errors"][0]["stage"] == "python"
    own = code.replace(".std()", ".apply(lambda a: a[-1] - a.mean() + a[3])")
    with pytest.raises(ToolError, match="need the sandbox") as caught:
        call("evaluation.score_factor", text=own, key="k", hypothesis=hypothesis(fields=["returns"]))
    assert caught.value.record()["code"] == "needs_sandbox"


def test_every_mistake_is_told_at_once_and_other_languages_are_read(call: Call) -> None:
    wrong = call("factors.check_factor", text="rank(clsoe) + ts_meen(opn, 5)")
    assert [mistake["at"] for mistake in wrong["errors"]] == [5, 14]
    theirs = call("factors.check_factor", text="Mean($close, 5)", dialect="qlib")
    assert theirs["canonical"] == "ts_mean(close, 5, min_periods=1)"
    assert call("factors.explain_factor", text="Mean($close, 5)", dialect="qlib")["id"] == theirs["id"]


def test_a_factor_is_scored_submitted_and_recalled(call: Call, evaluator: Evaluator) -> None:
    scored = call("evaluation.score_factor", **asked(evaluator, ONE))
    assert scored["ok"]
    assert scored["sheet"]["window"]["name"] == "search"
    assert call("evaluation.score_factor", **asked(evaluator, ONE)) == scored
    verdict = call("evaluation.submit_to_gate", ids=[scored["id"]], key="s")
    assert verdict["key"] == "s"
    assert verdict["verdicts"][0]["verdict"] in {"accepted", UNTRADABLE, "watchlist", "rejected"}
    ids = [
        call("evaluation.score_factor", **asked(evaluator, text, key, id=key))["id"]
        for text, key in ((TWO, "k2"), (THREE, "k3"))
    ]
    stale = call("evaluation.submit_to_gate", ids=[scored["id"], ids[0]], key="t", as_set=True)["verdicts"][0]
    assert (stale["verdict"], [reason.partition(":")[0] for reason in stale["reasons"]]) == ("rejected", ["fresh"])
    assert call("evaluation.get_budget")["trials_left"] == 1
    (verdict,) = call("evaluation.submit_to_gate", ids=ids, key="u", as_set=True)["verdicts"]
    assert verdict["id"].startswith("f")
    assert call("evaluation.get_budget") == {"evaluations_left": 5, "trials_left": 0}
    assert {row["id"] for row in call("factors.recall_attempts")["factors"]} == {scored["id"], *ids}
    assert len(call("factors.recall_attempts", limit=1)["factors"]) == 1


def test_a_refused_proposal_is_an_answer_not_an_error(call: Call) -> None:
    said = call("evaluation.score_factor", text="close + volume", hypothesis=hypothesis(), key="k")
    assert (said["ok"], said["stage"]) == (False, "types")


@pytest.mark.parametrize(
    ("name", "arguments", "code", "field", "said"),
    [
        ("market.preview_panel", {"field": "rank(close)"}, "unknown_field", "field", "Only fields can be shown"),
        ("market.preview_panel", {"field": "clsoe"}, "formula", "", "unknown field 'clsoe'"),
        ("market.preview_panel", {"field": "close", "rows": 21}, "arguments", "rows", "less than or equal to 20"),
        ("market.preview_panel", {}, "arguments", "field", "field: must be given"),
        ("market.preview_panel", {"field": "close", "row": 2}, "arguments", "row", "takes no argument 'row'"),
        ("market.forecast", {}, "unknown_tool", "name", "no tool 'forecast'"),
        ("factors.explain_factor", {"text": "rank(clsoe)"}, "formula", "", "unknown field 'clsoe'"),
        ("factors.check_factor", {"text": "close", "dialect": "qlb"}, "arguments", "dialect", "'qlib' or"),
        ("factors.explain_factor", {"text": ""}, "arguments", "text", "at least 1 character"),
        ("factors.recall_attempts", {"limit": "many"}, "arguments", "limit", "must be a valid integer"),
        ("factors.find_similar", {"text": "close", "top": 0}, "arguments", "top", "greater than or equal to 1"),
        ("evaluation.submit_to_gate", {"ids": ["f12"], "key": "k"}, "arguments", "ids.0", "must match pattern"),
        ("evaluation.submit_to_gate", {"ids": ["f0123456789abcdef"], "key": "k"}, "unknown_factor", "id", "No factor"),
        (
            "evaluation.submit_to_gate",
            {"ids": ["f0123456789abcdef"], "key": "k", "as_set": True},
            "arguments",
            "ids",
            "2 to 10",
        ),
        (
            "evaluation.score_factor",
            {"text": ONE, "hypothesis": hypothesis(direction=0), "key": "k"},
            "arguments",
            "hypothesis.direction",
            "must be 1 or -1",
        ),
        (
            "evaluation.score_factor",
            {"text": ONE, "hypothesis": hypothesis(id="set-1"), "key": "k"},
            "evidence",
            "hypothesis.id",
            "may not be called 'set-1'",
        ),
    ],
)
def test_every_refusal_says_what_was_wrong_and_what_is_allowed(
    refused: Call, name: str, arguments: dict[str, Any], code: str, field: str, said: str
) -> None:
    refusal = refused(name, **arguments)
    assert {"code", "field", "got", "allowed", "hint", "message"} <= set(refusal)
    assert (refusal["code"], refusal["field"]) == (code, field)
    assert said in refusal["message"]
    assert refusal["allowed"] or refusal["hint"]
    for trace in ("pydantic", "Traceback", ".py", "site-packages", "input_type", "Error executing"):
        assert trace not in str(refusal)


@pytest.mark.parametrize(
    ("name", "arguments", "given", "meant", "also"),
    [
        ("evaluation.score_factor", {"formula": ONE}, "formula", "text", "hypothesis"),
        ("factors.check_factor", {"expr": ONE}, "expr", "text", ""),
        ("factors.find_similar", {"text": ONE, "top_k": 3}, "top_k", "top", ""),
        ("factors.get_factor", {"factor_id": "f0123456789abcdef"}, "factor_id", "id", ""),
        ("factors.search_library", {"search": "volume"}, "search", "query", ""),
        ("evaluation.submit_to_gate", {"factors": ["f0123456789abcdef"], "key": "k"}, "factors", "ids", ""),
        ("market.preview_panel", {"feild": "close"}, "feild", "field", ""),
        ("market.preview_panel", {"whatever": "close"}, "whatever", "field", ""),
        ("market.get_history", {"field": "close", "start_date": "2020-01-01"}, "start_date", "first_day", ""),
        ("news.search_news", {"tickers": ["A"]}, "tickers", "symbols", ""),
    ],
)
def test_an_argument_of_another_name_is_answered_with_the_name_that_was_meant(
    refused: Call, name: str, arguments: dict[str, Any], given: str, meant: str, also: str
) -> None:
    refusal = refused(name, **arguments)
    assert (refusal["code"], refusal["field"], refusal["got"]) == ("arguments", given, given)
    assert f"Did you mean {meant}?" in refusal["hint"]
    assert meant in refusal["allowed"]
    hint, _, example = refusal["hint"].partition(" Example: ")
    assert hint.partition("Also missing: ")[2] == (f"{also}." if also else "")
    assert example.startswith(f"{name.partition('.')[2]} {{")


def test_an_argument_that_nothing_resembles_is_answered_with_all_that_there_are(refused: Call) -> None:
    refusal = refused("factors.explain_factor", text=ONE, verbosity=2)
    assert refusal["got"] == "verbosity"
    assert refusal["allowed"] == ["dialect", "text"]
    assert refusal["hint"] == 'It takes dialect, text. Example: explain_factor {"text": "rank(close)"}'


def test_a_missing_argument_is_answered_with_the_names_given_and_the_names_taken(refused: Call) -> None:
    refusal = refused("factors.translate_factor", text="close")
    assert (refusal["field"], refusal["got"], refusal["allowed"]) == ("source", ["text"], ["source", "target", "text"])
    example = 'translate_factor {"text": "rank(close)", "source": "alphaloom"}'
    assert refusal["hint"] == f"Give source: Language of text. Example: {example}"


def test_every_wrong_argument_is_said_at_once_and_none_is_repeated_at_length(refused: Call) -> None:
    refusal = refused("evaluation.score_factor", text="x" * 9000, hypothesis={"direction": 2}, key="k" * 201)
    for field in ("text", "hypothesis.statement", "hypothesis.direction", "key"):
        assert f"{field}: must " in refusal["message"]
    assert len(refusal["got"]) < 200


def test_trials_end_with_a_refusal_that_says_so(refused: Call, call: Call, evaluator: Evaluator) -> None:
    texts = [f"ts_kurt(high / low, {number})" for number in (10, 30, 60)]
    ids = [
        call("evaluation.score_factor", **asked(evaluator, text, text, id=f"h{number}"))["id"]
        for number, text in enumerate(texts)
    ]
    for name in ids[:2]:
        call("evaluation.submit_to_gate", ids=[name], key=name)
    refusal = refused("evaluation.submit_to_gate", ids=[ids[2]], key="k")
    assert (refusal["code"], refusal["field"]) == ("trials_spent", "budget.trials")


def test_a_session_raises_the_refusal_as_it_came(call: Call) -> None:
    with pytest.raises(ToolError, match="Only fields can be shown") as caught:
        call("market.preview_panel", field="rank(close)")
    assert caught.value.record()["code"] == "unknown_field"
    assert caught.value.field == "field"


def test_an_error_inside_is_raised_as_it_is_and_closes_the_sessions(talk: Callable[..., Any]) -> None:
    async def fail(sessions: dict[str, Session]) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        talk(fail)


def test_a_bug_shows_no_text_of_its_own(talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: BudgetMeter) -> int:
        raise RuntimeError("/home/somebody/secret.py")

    monkeypatch.setattr(BudgetMeter, "trials_left", broken)
    result = talk(lambda sessions: sessions["evaluation"].client.call_tool("get_budget", {}))
    assert result.is_error
    assert "secret" not in str(result)


def texts(value: object) -> Iterator[str]:
    """Return every text of a JSON value."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def test_no_tool_names_a_day_after_the_search_window(ledger: Ledger) -> None:
    import asyncio

    panel = market().rows(0, 418)
    noted = replace(panel, notes=(f"bad ticks suspected: AAA {panel.dates[-9]}, BBB {panel.dates[3]}",))
    run = Lab.open(ledger, "run", noted, SMALL)
    last = run.evaluator.windows.search.last_day

    async def everything() -> list[dict[str, Any]]:
        async with opened_to(run.evaluator) as sessions:
            market_, factors, evaluation = (sessions[name] for name in ("market", "factors", "evaluation"))
            scored = [
                await evaluation.call("score_factor", asked(run.evaluator, text, text, id=text)) for text in (ONE, TWO)
            ]
            ids = [answer["id"] for answer in scored]
            return [
                *scored,
                await evaluation.call("submit_to_gate", {"ids": ids, "key": "g"}),
                await evaluation.call("submit_to_gate", {"ids": ids, "key": "s", "as_set": True}),
                await evaluation.call("get_budget", {}),
                await factors.call("recall_attempts", {"limit": 100}),
                *[
                    await factors.call(name, {"text": ONE})
                    for name in ("check_factor", "explain_factor", "find_similar")
                ],
                await market_.call("search_fields", {}),
                await market_.call("describe_universe", {}),
                *[await market_.call("preview_panel", {"field": name, "rows": 20}) for name in sorted(panel.fields)],
            ]

    answers = asyncio.run(everything())
    days = {day for text in texts(answers) for day in re.findall(r"\d{4}-\d{2}-\d{2}", text)}
    assert len(run.trials()) >= 2  # the selection window was looked at
    assert max(days) == last
    years = {text for text in texts(answers) if re.fullmatch(r"(19|20)\d\d", text)}
    assert years == {last[:4]}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LedgerConflict("verdicts: another record", field="verdicts", got={"p_value": 0.01234}), "does not allow it"),
        (DamagedObject("/home/somebody/w/objects/ab does not hold it", got="ab"), "does not allow it"),
        (
            workspace_error(Path("/home/somebody/w"), OSError("No space left on device")),
            "no space is left for the workspace",
        ),
    ],
)
def test_what_the_ledger_refuses_is_told_without_records_and_folders(
    refused: Call, monkeypatch: pytest.MonkeyPatch, error: AlphaloomError, said: str
) -> None:
    def broken(self: BudgetMeter) -> int:
        raise error

    monkeypatch.setattr(BudgetMeter, "trials_left", broken)
    body = refused("evaluation.get_budget")
    assert said in body["message"]
    assert body["hint"]
    assert not [secret for secret in ("0.01234", "somebody", "objects") if secret in str(body)]


CODE = "def factor(panel):\n    return panel.{}\n"


@pytest.mark.parametrize("name", ["volume", "vollume", "high", "nothing"])
def test_a_token_for_some_fields_learns_of_no_other(ledger: Ledger, name: str) -> None:
    """A field that it may not read and one that is not there are refused in the same words."""
    panel = market()
    ground = ServerSetup(lambda: (panel, "market"), ledger, SMALL, Budget(), SearchConstraints(), clock, unrecorded)
    hidden = {*panel.fields} - {"close", "returns"}
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("factors", tool, {"text": text.format(name)})
        for tool in ("check_factor", "explain_factor", "find_similar")
        for text in ("rank({})", CODE)
    ]
    asked += [("market", tool, {"field": name}) for tool in ("preview_panel", "get_history")]
    asked += [("evaluation", "score_factor", {"text": f"rank({name})", "key": "k", "hypothesis": hypothesis()})]
    asked += [("factors", "translate_factor", {"text": f"rank(${name})", "source": "alphaagent"})]

    async def ask(served: ServedCaller) -> list[str]:
        async with opened_to(served) as sessions:
            calls = [await sessions[server].client.call_tool(tool, arguments) for server, tool, arguments in asked]
        return [json.dumps(call.structured_content) for call in calls]

    with CallerContexts(ground) as rooms:
        answers = asyncio.run(ask(rooms.serve(Caller("eve", EVERY_SCOPE, frozenset({"close", "returns"})))))
    for (_, tool, _), said in zip(asked, answers, strict=True):
        told = set(re.findall(r"[a-z_]+", said.replace(name, "")))
        assert not told & hidden, (tool, said)
        assert "may not be" not in said, (tool, said)


def test_any_number_of_unknown_arguments_is_refused_before_their_values_are_read(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    def counted(*given: Any, **options: Any) -> str:
        nonlocal read
        read += 1
        return json.dumps(*given, **options)

    monkeypatch.setattr(server, "json", SimpleNamespace(dumps=counted))
    with pytest.raises(ToolError, match="takes no argument 'a0'"):
        call("market.describe_universe", **{f"a{number}": 1 for number in range(10_000)})
    assert read < 10


def test_code_asks_for_the_right_to_read_the_panel_too(evaluator: Evaluator) -> None:
    """What code reads can leave it in the text of an error; a formula tells scores alone."""
    tells = 'def factor(panel):\n    raise ValueError(panel["close"].iloc[0, 0])\n    return panel["close"]'

    def scored(text: str, *scopes: str) -> Any:
        served = served_to(evaluator)
        may = replace(served.entry, caller=Caller("eve", frozenset(scopes)))

        async def ask() -> Any:
            async with opened_to(replace(served, entry=may)) as sessions:
                given = {"text": text, "key": text, "hypothesis": hypothesis()}
                return (await sessions["evaluation"].client.call_tool("score_factor", given)).structured_content

        return asyncio.run(ask())

    refused = scored(tells, "eval:run")
    assert (refused["code"], refused["allowed"], refused["field"]) == ("forbidden", "data:read", "scope")
    assert "data:read" in refused["hint"]
    assert not evaluator.ledger.attempts.of(evaluator.run)
    for text, scopes in ((tells, ("eval:run", "data:read")), (ONE, ("eval:run",))):
        assert scored(text, *scopes).get("code") != "forbidden"
        assert [attempt.text for attempt in evaluator.ledger.attempts.of(evaluator.run)][-1] == text
