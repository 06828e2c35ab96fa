"""Servers answer before their data are open: what they are, and what they have; only what needs the data waits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import PromptReference

from alphaloom.evaluation import Budget, Evaluator
from alphaloom.factors import MarketSettings, PlantSettings
from alphaloom.ledger import Ledger
from alphaloom.ledger.calls import CallOutcome, ToolCall
from alphaloom.market import MarketError, Panel, SyntheticConfig
from alphaloom.mcp_servers import callers as callers_module
from alphaloom.mcp_servers.access import EVERY_SCOPE, Caller
from alphaloom.mcp_servers.callers import CallerContexts, ServerSetup
from alphaloom.mcp_servers.errors import McpServerError, ServersEnd, ToolError
from alphaloom.mcp_servers.handles import Handles
from alphaloom.mcp_servers.jobs import Jobs
from alphaloom.mcp_servers.served_caller import CallerEntry, ServedCaller
from alphaloom.search.constraints import SearchConstraints

from ..evidence.lab import SMALL, market
from .opened import opened_to, unrecorded


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def served(folder: Path, opening: Any) -> ServedCaller:
    return ServedCaller(opening, CallerEntry(Caller("ann", EVERY_SCOPE), unrecorded), Handles(folder, clock), Jobs())


def test_all_is_listed_before_the_data_are_open_and_a_call_waits_for_them(evaluator: Evaluator, tmp_path: Path) -> None:
    ready = Event()

    def opening() -> Evaluator:
        assert ready.wait(60)
        return evaluator

    async def ask() -> dict[str, Any]:
        async with opened_to(served(tmp_path, opening)) as sessions:
            for session in sessions.values():
                assert await session.tools()
                assert (await session.client.list_resources()).resources
            await sessions["factors"].client.list_prompts()
            ready.set()
            return await sessions["evaluation"].call("get_budget", {})

    assert asyncio.run(ask())["trials_left"] == evaluator.meter.trials_left()


def test_what_cannot_be_opened_is_told_by_each_tool_that_needs_it(tmp_path: Path) -> None:
    def opening() -> Evaluator:
        raise MarketError("There are no such days.", field="as_of")

    async def ask() -> Any:
        async with opened_to(served(tmp_path, opening)) as sessions:
            for session, name in (("market", "search_fields"), ("news", "search_news"), ("evaluation", "get_budget")):
                with pytest.raises(ToolError, match="There are no such days"):
                    await sessions[session].call(name, {})
            return (await sessions["factors"].client.read_resource("alphaloom://operators")).contents

    assert "ts_mean" in str(asyncio.run(ask())), "what needs no data is there"


def test_rooms_that_close_while_they_are_opened_leave_no_run(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, clock=clock) as ledger:

        def opening() -> tuple[Panel, str]:
            rooms.__exit__(None, None, None)
            return market(), "late"

        rooms = CallerContexts(ServerSetup(opening, ledger, SMALL, Budget(), SearchConstraints(), clock, unrecorded))
        with pytest.raises(ServersEnd):
            _ = rooms.serve(Caller("ann", EVERY_SCOPE)).evaluator
        assert ledger.runs.all() == []


def test_a_call_under_way_ends_on_record_before_anything_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        callers_module, "CLOSING_GRACE_S", 60
    )  # a busy machine takes longer over the call than servers wait
    calls: list[ToolCall] = []
    with Ledger.open(tmp_path, clock=clock) as ledger:
        began, go = Event(), Event()

        def opening() -> tuple[Panel, str]:
            began.set()
            assert go.wait(60)
            return market(), "slow"

        rooms = CallerContexts(ServerSetup(opening, ledger, SMALL, Budget(), SearchConstraints(), clock, calls.append))
        caller = rooms.serve(Caller("ann", EVERY_SCOPE))

        async def ask() -> None:
            async with opened_to(caller) as sessions:
                await sessions["evaluation"].call("get_budget", {})
                with pytest.raises(ToolError, match="The servers end"):
                    await sessions["evaluation"].call("get_budget", {})

        def close() -> None:
            assert began.wait(60)
            Timer(0.5, go.set).start()
            rooms.__exit__(None, None, None)

        closing = Thread(target=close)
        closing.start()
        asyncio.run(ask())
        closing.join()
        with pytest.raises(ServersEnd):
            rooms.serve(Caller("bob", EVERY_SCOPE))
    assert [(call.tool, call.outcome) for call in calls] == [("get_budget", CallOutcome.OK)]


def test_a_completion_that_cannot_be_made_is_refused_in_words_and_on_record(tmp_path: Path) -> None:
    calls: list[ToolCall] = []

    def opening() -> Evaluator:
        raise MarketError("There are no such days.", field="as_of")

    told = ServedCaller(
        opening, CallerEntry(Caller("ann", EVERY_SCOPE), calls.append), Handles(tmp_path, clock), Jobs()
    )

    async def ask() -> None:
        async with opened_to(told) as sessions:
            prompt = PromptReference(type="ref/prompt", name="review_factor")
            with pytest.raises(MCPError, match="There are no such days"):
                await sessions["factors"].client.complete(prompt, {"name": "id", "value": "f"})

    asyncio.run(ask())
    assert [(call.tool, call.code) for call in calls] == [("completion/complete", MarketError.code)]


def test_a_formula_is_checked_before_the_market_is_open(tmp_path: Path) -> None:
    settings = MarketSettings(synthetic=SyntheticConfig(days=80, names=30), plants=PlantSettings(count=0))
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ground = ServerSetup(
            lambda: pytest.fail("the market was opened"),
            ledger,
            SMALL,
            Budget(),
            SearchConstraints(("close", "volume")),
            clock,
            unrecorded,
            columns=settings.columns,
        )
        caller = CallerContexts(ground).serve(Caller("ann", EVERY_SCOPE))

        async def ask() -> list[dict[str, Any]]:
            async with opened_to(caller) as sessions:
                call = sessions["factors"].call
                return [
                    await call("check_factor", {"text": "rank(ts_mean(close, 5))"}),
                    await call("check_factor", {"text": "rank(clsoe)"}),
                    await call("check_factor", {"text": "rank(open)"}),
                    await call("explain_factor", {"text": "rank(close)"}),
                    await call("translate_factor", {"text": "Mean($close, 5)", "source": "qlib"}),
                ]

        sound, unknown, forbidden, plain, carried = asyncio.run(ask())
    assert (sound["ok"], sound["warmup"]) == (True, 4)
    assert "Did you mean close?" in unknown["errors"][0]["hint"]
    assert "may not be used here" in forbidden["errors"][0]["message"]
    assert plain["id"]
    assert carried["ok"]
    panel = settings.open(7)[0]
    assert settings.columns is not None
    assert [{*names} for names in settings.columns] == [{*panel.fields}, {*panel.groups}]


def test_a_call_that_would_wait_too_long_for_the_market_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alphaloom.mcp_servers.callers.OPENING_WAIT_S", 0.01)
    began, go = Event(), Event()

    def opening() -> tuple[Panel, str]:
        began.set()
        assert go.wait(60)
        return market(), "slow"

    with (
        Ledger.open(tmp_path, clock=clock) as ledger,
        CallerContexts(ServerSetup(opening, ledger, SMALL, Budget(), SearchConstraints(), clock, unrecorded)) as opened,
    ):
        caller = opened.serve(Caller("ann", EVERY_SCOPE))
        first = Thread(target=lambda: caller.evaluator)
        first.start()
        assert began.wait(60)
        with pytest.raises(McpServerError, match="still being opened") as told:
            _ = caller.evaluator
        assert told.value.code == "opening"
        go.set()
        first.join()
        assert caller.evaluator.panel.days
    assert "Ask again" in told.value.hint
