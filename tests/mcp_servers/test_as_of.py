"""No tool tells a caller anything of days after its last one: the same bytes as if they had never come."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.evaluation import Budget
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.settings import WindowSettings
from alphaloom.ledger import Ledger, LibraryRow
from alphaloom.market import MarketError, Panel
from alphaloom.market.actions import Actions
from alphaloom.mcp_servers.access import EVERY_SCOPE, Caller
from alphaloom.mcp_servers.callers import CallerContexts, ServerSetup
from alphaloom.mcp_servers.errors import McpServerError, ToolError
from alphaloom.mcp_servers.served_caller import PANELS_FOLDER
from alphaloom.mcp_servers.tools.known_factors import KnownFactors
from alphaloom.news import NEWS_FOLDER
from alphaloom.search.constraints import SearchConstraints

from ..market.vendor import SPLITS, Draw, Vendor
from .opened import opened_to, unrecorded
from .shelves import LAST_DAY, shelved, text

pytestmark = pytest.mark.integration

VENDOR = Vendor.of(420, 40, comes=390)
EVENTS: list[Draw] = [(200, 3, 20, 2.0), (330, 5, 0, 1.5)]
ACTIONS = VENDOR.actions(EVENTS)
FORMULAS = (
    "rank(ts_std(returns, 20))",
    "close / delay(close, 5)",
    "close",
    "-ts_mean(volume, 5) / ts_mean(volume, 40)",
)
SETTINGS = EvidenceSettings(
    windows=WindowSettings(search=0.45, selection=0.3, min_search_days=40, min_selection_days=40, min_sealed_days=40)
)
CLAIM = {
    "id": "h1",
    "mechanism": "control",
    "statement": "a formula of the tests",
    "direction": 1,
    "horizon_days": 5,
    "fields": ["close", "returns", "volume"],
}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("market.search_fields", {}),
    ("market.describe_universe", {}),
    ("market.preview_panel", {"field": "tomorrow"}),
    *(
        ("market.preview_panel", {"field": name, "rows": 20})
        for name in ("close", "close_raw", "volume", "vwap", "amount")
    ),
    *(("market.get_history", {"field": name}) for name in ("close", "volume", "returns")),
    ("market.get_calendar", {}),
    *(("factors.check_factor", {"text": text}) for text in FORMULAS),
    *(("factors.find_similar", {"text": text}) for text in FORMULAS),
    *(
        ("evaluation.score_factor", {"text": text, "hypothesis": CLAIM, "key": f"k{at}"})
        for at, text in enumerate(FORMULAS)
    ),
    ("evaluation.choose_drafts", {"texts": [*FORMULAS, "ts_skew(returns, 30)"], "hypothesis": CLAIM}),
    ("evaluation.list_formulas", {"which": "unexplored", "limit": 5}),
    ("evaluation.list_formulas", {"which": "leaders"}),
    ("factors.recall_attempts", {}),
    ("factors.search_library", {}),
    ("evaluation.get_budget", {}),
    ("news.search_news", {"query": "plant", "limit": 20}),
]


def told(panel: Panel, actions: Actions, caller: Caller, folder: Path) -> list[str]:
    """Return what every tool answers a caller, as it stands on the wire."""

    async def ask(rooms: CallerContexts) -> list[str]:
        async with opened_to(rooms.serve(caller)) as sessions:
            answers = []
            for name, arguments in ASKED:
                server, _, tool = name.partition(".")
                try:
                    answer: Any = await sessions[server].call(tool, arguments)
                except ToolError as refused:
                    answer = refused.record()
                answers.append(json.dumps([name, answer], sort_keys=True))
            first = min(rooms.serve(caller).evaluator.scores.lines)
            for kind in ("measure_decay", "stress_factor"):
                job = (await sessions["evaluation"].call(kind, {"id": first}))["job"]
                while (state := await sessions["evaluation"].call("get_job", {"job": job, "wait_s": 20}))[
                    "status"
                ] != "done":
                    assert state["status"] in {"waiting", "running"}
                answers.append(json.dumps([kind, state], sort_keys=True))
            for server, session in sessions.items():
                there = (await session.client.list_resources()).resources
                assert there
                for uri in sorted(str(resource.uri) for resource in there):
                    answers.append(f"{server} {uri} {(await session.client.read_resource(uri)).model_dump_json()}")
            return answers

    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    (folder / PANELS_FOLDER).mkdir(parents=True)
    (folder / PANELS_FOLDER / "key").write_bytes(bytes(32))  # or handles would differ
    days = [(day - LAST_DAY).days for day in panel.dates.astype(object)]
    texts = [text(f"Acme opens plant {place}.", day) for place, day in enumerate(days)]
    with Ledger.open(folder, clock=clock) as ledger, shelved(folder / NEWS_FOLDER, *texts) as news:
        ground = ServerSetup(
            lambda: (panel, "sold"),
            ledger,
            SETTINGS,
            Budget(),
            SearchConstraints(),
            clock,
            unrecorded,
            actions,
            "adjusted",
            news=news,
        )
        with CallerContexts(ground) as rooms:
            return asyncio.run(ask(rooms))


@settings(max_examples=3)
@given(stop=st.integers(260, 410), split=st.sampled_from(SPLITS), cents=st.integers(1, 60))
def test_answers_are_those_of_data_that_end_on_the_callers_last_day(
    tmp_path_factory: pytest.TempPathFactory, stop: int, split: float, cents: int
) -> None:
    """Whatever day that is, and though a split and a dividend come after it."""
    folder = tmp_path_factory.mktemp("as_of")
    later = [(stop + 2, 3, cents, 1.0), (stop + 5, 5, 0, split), (stop + 7, 0, cents, split)]
    actions = VENDOR.actions([*EVENTS, *later])
    caller = Caller("ann", EVERY_SCOPE, as_of=VENDOR.raw.dates[stop - 1].astype(object))
    of_all = told(VENDOR.sold(420, actions), actions, caller, folder / "all")
    then = VENDOR.until(actions, stop)
    of_then = told(VENDOR.sold(stop, then), then, caller, folder / "then")
    assert of_all == of_then
    assert sum('"rank_ic"' in answer for answer in of_all) >= 3, "there is something to tell"
    assert any(answer.count('"untrusted_text":') == 20 for answer in of_all)


def test_an_earlier_ceiling_of_the_server_holds_for_every_caller(tmp_path: Path) -> None:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    day, later = (VENDOR.raw.dates[row].astype(object) for row in (350, 400))
    with Ledger.open(tmp_path, clock=clock) as ledger:
        panel = VENDOR.sold(420, ACTIONS)
        ground = ServerSetup(
            lambda: (panel, "sold"),
            ledger,
            SETTINGS,
            Budget(),
            SearchConstraints(),
            clock,
            unrecorded,
            ACTIONS,
            "adjusted",
        )
        with CallerContexts(ground, ceiling=day) as rooms:
            ann, bob = rooms.serve(Caller("ann", as_of=later)), rooms.serve(Caller("bob"))
            assert ann.evaluator.panel.dates[-1] == panel.dates[350]
            assert ann.evaluator.panel is bob.evaluator.panel
            assert ann.evaluator.run != bob.evaluator.run
            narrow = rooms.serve(Caller("eve", fields=frozenset({"close", "returns"})))
            assert narrow.evaluator.mandate.fields == ("close", "returns")


def test_a_library_factor_that_later_days_judged_is_not_there_yet(tmp_path: Path) -> None:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    panel = VENDOR.sold(420, ACTIONS)
    early, late = (panel.dates[row].astype(object) for row in (300, 400))
    judged = {
        "horizon_days": 5, "returns": "residual", "sign": 1, "judged_to": str(panel.dates[350]), "rank_ic": 0.02,
        "deviation": 0.1, "sectors": True, "names": list(panel.symbols), "label_scale": "none",
    }  # fmt: skip  # a table
    kept = LibraryRow(
        "f" + "1" * 16, "rank(volume)", "rank(volume)", "h", "elsewhere", {}, "imported", {"judged": judged}
    )
    by_hand = LibraryRow("f" + "2" * 16, "rank(close)", "rank(close)", "h", "by hand", {}, "by_hand")
    with Ledger.open(tmp_path, clock=clock) as ledger:
        for row in (kept, by_hand):
            ledger.library.add(row)
        ground = ServerSetup(
            lambda: (panel, "sold"),
            ledger,
            SETTINGS,
            Budget(),
            SearchConstraints(),
            clock,
            unrecorded,
            ACTIONS,
            "adjusted",
        )
        with CallerContexts(ground) as rooms:
            seen = {
                day: {
                    row["id"] for row in KnownFactors(rooms.serve(Caller(str(day), EVERY_SCOPE, as_of=day))).search("")
                }
                for day in (early, late, None)
            }
            narrow = KnownFactors(rooms.serve(Caller("eve", EVERY_SCOPE, frozenset({"close", "returns"})))).search("")
    assert seen == {early: set(), late: {kept.factor_id}, None: {kept.factor_id, by_hand.factor_id}}
    assert {row["id"] for row in narrow} == {by_hand.factor_id}, "what it may not read is not told of"


def test_what_is_marked_is_not_there_without_the_label(tmp_path: Path) -> None:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    labels = {"vwap": ["confidential"], "amount": ["confidential", "jurisdiction:CH"]}
    with Ledger.open(tmp_path, clock=clock) as ledger:
        panel = VENDOR.sold(420, ACTIONS)
        ground = ServerSetup(
            lambda: (panel, "sold"), ledger, SETTINGS, Budget(), SearchConstraints(), clock, unrecorded, labels=labels
        )
        with CallerContexts(ground) as rooms:

            def fields(*scopes: str) -> set[str]:
                return set(rooms.serve(Caller(str(scopes), frozenset(scopes))).evaluator.panel.fields) & {*labels}

            assert fields() == set()
            assert fields("data:confidential") == {"vwap"}
            assert fields("data:confidential", "data:jurisdiction:DE") == {"vwap"}
            assert fields("data:confidential", "data:jurisdiction:CH") == {"vwap", "amount"}
        whole = replace(ground, labels={"*": ["jurisdiction:CH"]})
        with CallerContexts(whole) as rooms:
            with pytest.raises(McpServerError, match="may not be shown") as caught:
                rooms.serve(Caller("ann", frozenset({"data:read"})))
            assert caught.value.code == "forbidden"
            assert rooms.serve(Caller("bob", frozenset({"data:jurisdiction:CH"}))).evaluator.panel.fields
        one = CallerContexts(replace(ground, labels={"close": ["confidential"]}))
        with one, pytest.raises(MarketError, match="Label all of it"):
            _ = one.serve(Caller("eve")).evaluator


def check_no_field(rooms: CallerContexts, fields: frozenset[str]) -> None:
    """Check that a caller who may see these fields alone is refused."""
    with pytest.raises(McpServerError, match="No field") as caught:
        _ = rooms.serve(Caller("ann", EVERY_SCOPE, fields)).evaluator
    assert caught.value.code == "forbidden"


def test_fields_that_meet_nowhere_are_none_and_not_all(tmp_path: Path) -> None:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    with Ledger.open(tmp_path, clock=clock) as ledger:
        mandate = SearchConstraints(("close", "returns"))
        panel = VENDOR.sold(420, ACTIONS)
        ground = ServerSetup(lambda: (panel, "sold"), ledger, SETTINGS, Budget(), mandate, clock, unrecorded)
        with CallerContexts(ground) as rooms:
            for fields in (frozenset({"volume"}), frozenset[str]()):
                check_no_field(rooms, fields)


def test_windows_of_who_knows_more_tell_nothing_and_nothing_is_fixed_by_who_knows_less(tmp_path: Path) -> None:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def searched(folder: str, *callers: Caller) -> list[Any]:
        with Ledger.open(tmp_path / folder, clock=clock) as ledger:
            panel = VENDOR.sold(420, ACTIONS)
            ground = ServerSetup(
                lambda: (panel, "sold"),
                ledger,
                SETTINGS,
                Budget(),
                SearchConstraints(),
                clock,
                unrecorded,
                ACTIONS,
                "adjusted",
            )
            with CallerContexts(ground) as rooms:
                return [rooms.serve(caller).evaluator.windows.search.record() for caller in callers]

    ann = Caller("ann", EVERY_SCOPE, as_of=VENDOR.raw.dates[330].astype(object))
    bob = Caller("bob", EVERY_SCOPE)
    alone = [searched("ann", ann)[0], searched("bob", bob)[0]]
    assert searched("bob first", bob, ann) == [alone[1], alone[0]]
    assert searched("ann first", ann, bob) == alone


def test_tokens_of_one_caller_that_see_the_same_share_one_run_and_its_budget(tmp_path: Path) -> None:
    def clock() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    with Ledger.open(tmp_path, clock=clock) as ledger:
        panel = VENDOR.sold(420, ACTIONS)
        ground = ServerSetup(
            lambda: (panel, "sold"), ledger, SETTINGS, Budget(), SearchConstraints(), clock, unrecorded
        )
        with CallerContexts(ground) as rooms:
            hours = [clock() + timedelta(hours=hour) for hour in range(3)]
            tokens = [Caller("ann", EVERY_SCOPE, expires=hour) for hour in hours] + [
                Caller("ann", frozenset({"data:read"}))
            ]
            told = [rooms.serve(token) for token in tokens]
            assert len({caller.evaluator.run for caller in told}) == 1
            assert [caller.entry.caller for caller in told] == tokens, "each may do what it may"
            assert rooms.serve(Caller("ann", EVERY_SCOPE, frozenset({"close"}))).evaluator.run != told[0].evaluator.run
