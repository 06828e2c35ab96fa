"""Code learns nothing of a day after search: panels that differ only there give the same bytes.

`make attacks` asks 330 probes of every family; the default suite a few of each.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation import Budget, PanelContext
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.errors import NeedsSandbox
from alphaloom.evidence.settings import ComplexitySettings, WindowSettings
from alphaloom.evidence.values.sandbox_settings import LazySandbox, SandboxSettings
from alphaloom.ledger import Ledger, Run
from alphaloom.market import Panel
from alphaloom.market.actions import Actions
from alphaloom.market.quality.back_adjustment import may_be_adjusted
from alphaloom.mcp_servers.errors import ToolError

from ..evidence.lab import clock, market
from .opened import opened_to
from .probes import HEAD, probes

pytestmark = pytest.mark.integration

DAYS, NAMES, STOP = 300, 24, 120
SETTINGS = EvidenceSettings(
    windows=WindowSettings(search=STOP / DAYS, selection=0.35, min_search_days=40, min_selection_days=40),
    complexity=ComplexitySettings(max_size=400, max_depth=100, max_constants=100, max_fields=20),
    max_similarity=1.0,
)
BY_TEXT = (
    "factors.check_factor",
    "factors.explain_factor",
    "factors.translate_factor",
    "factors.find_similar",
    "factors.register_factor",
)
AFTERWARDS: list[tuple[str, dict[str, Any]]] = [
    ("evaluation.get_budget", {}),
    ("evaluation.list_formulas", {"which": "leaders"}),
    ("evaluation.list_formulas", {"which": "unexplored", "limit": 5}),
    ("factors.recall_attempts", {"limit": 100, "query": "tells"}),
    ("factors.search_library", {"limit": 100}),
    ("market.search_fields", {}),
    ("market.describe_universe", {}),
    *(
        ("market.preview_panel", {"field": name, "rows": 20})
        for name in ("close", "close_raw", "volume", "vwap", "amount", "returns")
    ),
    *(("market.get_history", {"field": name}) for name in ("close", "volume", "returns")),
]
LEVELS = (
    "rank(ts_std(returns, 20)) + 0.001 * rank(where(close_raw > 30, close_raw / close, 0))",
    "where(close / delay(close, 1) > 1.05, close_raw / close, 0)",
    "rank(close)",
)


@cache
def panel(other: bool, *, quoted: bool = True, volume: str = "quoted") -> Panel:
    """Return a market as a vendor sells it: the same until search ends, and another one afterwards.

    Later prices are others, other names are split and pay, and in one of the two three names are listed in a sector of
    their own. What is sold is adjusted backwards, so that every earlier price, and perhaps volume, bears what came
    later.
    """
    raw = market(7, days=DAYS, names=NAMES + 3)
    fields = {name: values.copy() for name, values in raw.fields.items() if name != "returns"}
    late = np.arange(DAYS)[:, None] >= STOP
    if other:
        for name in ("open", "high", "low", "close", "vwap"):
            last = fields["close"][STOP - 1]
            fields[name] = np.where(late, last * (fields[name] / last) ** -0.7, fields[name])
    new = np.arange(NAMES + 3) % 9 == 4
    for values in fields.values():
        values[np.broadcast_to(new & ~late, values.shape)] = np.nan
    kept = np.flatnonzero(~new if other else np.ones(NAMES + 3, np.bool_))
    symbols = tuple(raw.symbols[place] for place in kept)
    fields = {name: np.round(values[:, kept], 2 if name != "cap" else 0) for name, values in fields.items()}
    prices, splits = _actions(other, symbols, raw).compute_factors(raw.dates, symbols, fields["close"])
    fields |= {"close_raw": fields["close"]} if quoted else {}
    fields |= {name: fields[name] * prices for name in ("open", "high", "low", "close", "vwap")}
    fields["volume"] = fields["volume"] * (splits if volume == "adjusted" else 1.0)
    fields["amount"] = fields.get("close_raw", fields["close"]) * fields["volume"]
    sectors = [f"{'a new' if new[place] else 's'}{place % 4}" for place in kept]
    made = Panel.build(raw.dates, symbols, fields, groups={"sector": sectors}, notes=(f"sold {other}",))
    return replace(made, back_adjusted=may_be_adjusted(made), volumes=volume if volume == "adjusted" else "")


def _actions(other: bool, symbols: tuple[str, ...], raw: Panel) -> Actions:
    there = [symbol for place, symbol in enumerate(raw.symbols) if place % 9 != 4 and symbol in symbols]
    known = [(40, there[1], 0.3, 1.0), (70, there[2], 0.0, 2.0)]
    later = [(STOP + 5 + at, symbol, 0.2, (7.0, 1.5, 0.1, 3.0)[at % 4]) for at, symbol in enumerate(there[other::2])]
    rows, names, paid, split = zip(*known, *later, strict=True)
    return Actions(raw.dates[list(rows)], names, np.array(paid), np.array(split))


@pytest.fixture(scope="module")
def jail() -> Iterator[LazySandbox]:
    with LazySandbox(SandboxSettings(workers=1, wall_s=2.0, memory_mb=512)) as made:
        try:
            made.ready(needed=True)
        except NeedsSandbox as error:
            pytest.skip(f"{error.field}: {error.message}")
        yield made


@dataclass
class Conversation:
    """Calls of the servers' tools, and what each answered on the wire."""

    sessions: dict[str, Any]
    answers: list[tuple[str, str]] = field(default_factory=list)

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool without noting its answer; a refusal is its record."""
        server, _, tool = name.partition(".")
        try:
            return await self.sessions[server].call(tool, arguments)
        except ToolError as refused:
            return refused.record()

    async def note(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool and note its answer."""
        answer = await self.call(name, arguments)
        self.answers.append((name, json.dumps([arguments, answer], sort_keys=True)))
        return answer

    async def note_scores(self, texts: Sequence[str], claim: dict[str, Any]) -> list[str]:
        """Score every text; return the ids of the code that has a score."""
        scored = []
        for place, text in enumerate(texts):
            arguments = {"text": text, "hypothesis": claim, "key": f"k{place}"}
            answer = await self.note("evaluation.score_factor", arguments)
            scored += [answer["id"]] if answer.get("ok") and "def factor" in text else []
        return scored

    async def note_texts(self, texts: Sequence[str], claim: dict[str, Any]) -> None:
        """Call the other tools that take a text."""
        for text in texts:
            for name in BY_TEXT:
                await self.note(name, {"text": text} | ({"source": "alphaloom"} if "translate" in name else {}))
            await self.note("evaluation.choose_drafts", {"texts": [text, "rank(close)"], "hypothesis": claim})

    async def note_job(self, kind: str, factor: str) -> None:
        """Begin a job, wait for its end, and note it."""
        begun = await self.call(f"evaluation.{kind}", {"id": factor})
        state = await self.call("evaluation.get_job", {"job": begun["job"], "wait_s": 20})
        while state["status"] in ("waiting", "running"):
            state = await self.call("evaluation.get_job", {"job": begun["job"], "wait_s": 20})
        await self.note("evaluation.get_job", {"job": begun["job"]})

    async def note_resources(self) -> None:
        """Read everything that the servers list."""
        for server, session in self.sessions.items():
            for uri in sorted(str(entry.uri) for entry in (await session.client.list_resources()).resources):
                body = (await session.client.read_resource(uri)).model_dump_json()
                self.answers.append((f"{server} {uri}", body))


async def ask(evaluator: Any, sold: Panel, texts: Sequence[str]) -> list[tuple[str, str]]:
    fields = sorted(sold.fields)
    claim = {
        "id": "h",
        "mechanism": "probe",
        "statement": "what code tells",
        "direction": 1,
        "horizon_days": 5,
        "fields": fields,
    }
    async with opened_to(evaluator) as sessions:
        talk = Conversation(sessions)
        scored = await talk.note_scores(texts, claim)
        await talk.note_texts(texts[:3], claim)
        for name in scored:
            await talk.note("factors.get_factor", {"id": name})
        for name in scored[:1] if "close_raw" in fields else ():
            await talk.note_job("measure_decay", name)
            await talk.note_job("stress_factor", name)
        if scored:  # without a trial nothing after search is looked at
            await talk.note("evaluation.submit_to_gate", {"ids": scored[:1], "key": "s"})
        for name, arguments in AFTERWARDS:
            await talk.note(name, arguments)
        await talk.note_resources()
    return talk.answers


def answers(sold: Panel, texts: Sequence[str], jail: LazySandbox, folder: Path) -> list[tuple[str, str]]:
    """Return the answers of every tool that takes code, then of the other tools, as they are on the wire."""
    with Ledger.open(folder, clock=clock) as ledger:
        bench = PanelContext.set_up(sold, ledger, SETTINGS, "sold", runner=jail)
        assert bench.windows.search.stop == STOP
        ledger.runs.start(Run("run", {}, 1, "sold", clock().isoformat()))
        ledger.events.record("run", "screening", "seed", 5)
        (folder / "panels").mkdir(parents=True)
        (folder / "panels" / "key").write_bytes(bytes(32))  # or handles would differ
        return asyncio.run(ask(bench.evaluator("run", Budget(evaluations=1000, trials=0)), sold, texts))


def unlike(sold: Sequence[Panel], texts: Sequence[str], jail: LazySandbox, folder: Path) -> list[tuple[str, str, str]]:
    """Return what two panels let tools say otherwise.

    Code that computes with addresses in memory (`id`) is refused for one reason or another by chance. So where an
    answer differs, the first panel is asked again, and what differs from itself is left out.
    """
    one, other = (answers(prices, texts, jail, folder / str(place)) for place, prices in enumerate(sold))
    _count(one)
    if one == other:
        return []
    again = answers(sold[0], texts, jail, folder / "again")
    return [
        (name, mine, theirs)
        for (name, mine), (_, theirs), (_, repeated) in zip(one, other, again, strict=True)
        if mine != theirs and (mine == repeated or "id(" not in mine)
    ]


def _count(heard: Sequence[tuple[str, str]]) -> None:
    """Print how the probes ended, for who reads the report of `make attacks`."""
    ends = [json.loads(body)[1] for name, body in heard if name == "evaluation.score_factor"]
    print(Counter("scored" if end.get("ok") else end.get("stage", end.get("code")) for end in ends))


def test_the_two_panels_are_the_same_until_search_ends_and_their_levels_are_not() -> None:
    one, other = panel(False), panel(True)
    there = [one.symbols.index(symbol) for symbol in other.symbols]
    np.testing.assert_array_equal(one.fields["close_raw"][:STOP, there], other.fields["close_raw"][:STOP])
    assert (one.fields["close_raw"][STOP:, there] != other.fields["close_raw"][STOP:]).any()
    assert one.names == other.names + 3
    assert (one.fields["close"][:STOP, there] != other.fields["close"][:STOP]).any(axis=0).mean() > 0.5


def test_no_probe_tells_two_panels_apart_that_differ_after_search(jail: LazySandbox, tmp_path: Path) -> None:
    texts = [*probes(30), HEAD + "    return -close.pct_change(5).rolling(7).mean()\n", *LEVELS]
    assert not unlike((panel(False), panel(True)), texts, jail, tmp_path)


@pytest.mark.parametrize(("quoted", "volume"), [(True, "adjusted"), (False, "quoted"), (False, "adjusted")])
def test_other_ways_to_adjust_hide_as_much(quoted: bool, volume: str, jail: LazySandbox, tmp_path: Path) -> None:
    code = HEAD.replace(", panel['close_raw']", ", panel['open']")
    texts = [
        code + f"    raise ValueError({m})\n"
        for m in (
            "[hash(panel[name].to_numpy().tobytes()) for name in panel]",
            "close.iloc[0].to_list()",
            "panel['volume'].iloc[0].to_list()",
            "list(close.columns)",
            "sorted(set(panel['sector'].to_numpy().ravel().tolist()), key=str)",
        )
    ]
    sold = [panel(other, quoted=quoted, volume=volume) for other in (False, True)]
    assert not unlike(sold, [*texts, code + "    return -close.pct_change(5).rolling(7).mean()\n"], jail, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_probe_of_any_family_tells_two_panels_apart(seed: int, jail: LazySandbox, tmp_path: Path) -> None:
    assert not unlike((panel(False), panel(True)), [*probes(110, seed), *LEVELS], jail, tmp_path)
