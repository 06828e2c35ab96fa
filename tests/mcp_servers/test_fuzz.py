"""Whatever a tool is called with: a plain answer or a plain refusal, no number of later days, nothing half-written."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.evaluation import Budget, Evaluator
from alphaloom.ledger import Ledger
from alphaloom.market import Panel
from alphaloom.mcp_servers.served_caller import ServedCaller
from alphaloom.news import NEWS_FOLDER

from ..evidence.lab import SMALL, Lab, market, read
from .numbers import MOST_DIGITS, Sign, floats, sign, signs, told
from .opened import opened_to, served_to
from .shelves import MANY, shelved

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
FEWEST = 5
"""Digits of a number that is looked for: a panel has thousands of numbers, and of four digits many agree by chance."""
JUNK = ("rank(ts_skew(volume, 30)) * rank(open)", "ts_kurt(high / low, 25)", "rank(ts_argmax(volume, 12)) - rank(low)")
HASHES = re.compile(r"\b[0-9a-f]{64}\b|\"bytes\": \d+")
WINDOWS = ("selection", "sealed", "search", "embargo", "2031-12-31", "latest", "run", "trials", "outcomes")
TEXTS = (
    "", " ", "close", "rank(close)", "-rank(open)", "close + volume", "delay(close, -5)", "ts_mean(close, 1e9)", "((((",
    "🜁", "'; DROP TABLE trials; --", "../../../etc/passwd", "/etc/shadow", "\x00", "\ud800", "ts_kurt(high / low, 25)",
    "x" * 3000, "NaN", "1e400", "-1", "rank(" * 400, "__import__('os').system('id')", "{{7*7}}", "selection.close",
    "close\n\nsealed", *JUNK,
)  # fmt: skip  # a table
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.integers(-2, 120), st.floats(),
    st.binary(max_size=4).map(repr), st.sampled_from(TEXTS), st.sampled_from(WINDOWS), st.text(max_size=30),
)  # fmt: skip  # a table
NESTED = st.recursive(
    ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = {
    "market.search_fields": ("query",),
    "market.describe_universe": (),
    "market.preview_panel": ("field", "rows"),
    "market.get_calendar": ("first_day", "last_day", "limit", "cursor"),
    "market.get_history": ("field", "first_day", "last_day", "symbols"),
    "news.search_news": ("query", "symbols", "since", "limit", "cursor"),
    "news.get_news": ("id",),
    "factors.check_factor": ("text", "dialect"),
    "factors.explain_factor": ("text", "dialect"),
    "factors.find_similar": ("text", "top"),
    "factors.translate_factor": ("text", "source", "target"),
    "factors.search_library": ("query", "limit", "cursor"),
    "factors.get_factor": ("id",),
    "factors.register_factor": ("text", "name", "note"),
    "factors.recall_attempts": ("limit", "query", "language"),
    "evaluation.score_factor": ("text", "hypothesis", "key", "description", "refuter"),
    "evaluation.submit_to_gate": ("ids", "key", "as_set"),
    "evaluation.get_budget": (),
    "evaluation.list_formulas": ("which", "limit"),
    "evaluation.stress_factor": ("id",),
    "evaluation.measure_decay": ("id",),
    "evaluation.get_job": ("job", "wait_s"),
}
SOUND: dict[str, st.SearchStrategy[Any]] = {
    "field": st.sampled_from(["close", "volume", "open", "cap", "returns"]),
    "rows": st.integers(1, 20),
    "text": st.sampled_from([*JUNK, *TEXTS]),
    "query": st.sampled_from(["", "price", *TEXTS]),
    "dialect": st.sampled_from(["alphaloom", "qlib", "worldquant"]),
    "refuter": st.sampled_from(["", "ts_std(returns, 20)", "rank(clsoe)"]),
    "key": st.sampled_from(["a", "b", "c", "run", "\x00", "'; DROP TABLE trials; --", "../../x"]),
    "limit": st.integers(1, 100),
    "top": st.integers(1, 20),
}
ONCE_IN_TEN = st.sampled_from([False] * 9 + [True])
STRANGE = ("window", "start", "end", "as_of", "day", "run", "ledger", "__class__", "selection", "limit", "panel")


@st.composite
def calls(
    draw: st.DrawFn, ids: list[str], tools: Mapping[str, tuple[str, ...]] = ARGUMENTS
) -> tuple[str, dict[str, Any]]:
    """Draw a tool and arguments of which some are sound, some odd, some missing, and some not the tool's."""
    name = draw(st.sampled_from(sorted(tools)))
    given: dict[str, Any] = {}
    for argument in tools[name]:
        if argument in {"ids", "members"}:
            sound: st.SearchStrategy[Any] = st.lists(
                st.sampled_from([*ids, *ids, "f" + "0" * 16]), min_size=1, max_size=4
            )
        elif argument == "hypothesis":
            sound = hypotheses()
        else:
            sound = SOUND.get(argument, ODD)
        if draw(ONCE_IN_TEN) and argument not in {"rows", "dialect"}:
            continue
        given[argument] = draw(NESTED if draw(ONCE_IN_TEN) else sound)
    if draw(ONCE_IN_TEN):
        given[draw(st.sampled_from(STRANGE))] = draw(NESTED)
    return name, given


@st.composite
def hypotheses(draw: st.DrawFn) -> dict[str, Any]:
    said: dict[str, Any] = {
        "id": draw(st.sampled_from(["h1", "h2", "set-x"])),
        "mechanism": "control",
        "statement": draw(st.sampled_from(["one", "other"])),
        "direction": draw(st.sampled_from([1, -1])),
        "horizon_days": 5,
        "fields": ["high", "low", "open", "volume"],
    }
    if draw(ONCE_IN_TEN):
        said[draw(st.sampled_from([*said, "detail", "window"]))] = draw(NESTED)
    return said


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, ServedCaller, list[str]]]:
    """Return a run in which factors were judged already, so that there is something to be told."""
    with read(tmp_path_factory.mktemp("fuzz") / "workspace") as ledger:
        lab = Lab.open(ledger, "run", market(), SMALL, Budget(evaluations=30, trials=8))
        ids = [lab.scored(text) for text in JUNK]
        lab.evaluator.submissions.submit(ids[:2])
        with shelved(ledger.workspace / NEWS_FOLDER, *MANY) as news:
            served = replace(served_to(lab.evaluator), news=news)
            yield ledger, served, ids
            served.jobs.close()


def later(evaluator: Evaluator) -> set[Any]:
    """Return what the numbers of later days look like: the panel's own, and what was seen and decided on selection."""
    seen = [floats(trial.outcome) for trial in evaluator.ledger.trials.all()]
    return signs((value for values in seen for value in values), FEWEST) | later_days(
        evaluator.panel, evaluator.windows.search.stop
    )


@cache
def later_days(panel: Panel, stop: int) -> set[Any]:
    """Return the signs of the panel's numbers from a row on, less those before; a panel never changes."""
    known = {shown for name in panel.fields for shown in spelled(panel.fields[name][:stop])}
    return {shown for name in panel.fields for shown in spelled(panel.fields[name][stop:])} - known


def spelled(values: np.ndarray[Any, Any]) -> Iterator[Sign]:
    for value in values.ravel().tolist():
        if math.isfinite(value):
            yield from (sign(value, digits) for digits in range(FEWEST, MOST_DIGITS + 1))


def half_written(ledger: Ledger, evaluator: Evaluator) -> list[str]:
    """Return what a call began and did not end: a score without an attempt, an open trial, a look without a verdict."""
    attempts = {row.factor_id for row in ledger.attempts.of("run") if row.stage == "scored"}
    sets = {event.key for event in ledger.events.of("run", "set")}
    judged = {row.factor_id for row in ledger.verdicts.of("run")}
    scores = [f"score {row.factor_id}" for row in ledger.evaluations.of("run") if row.factor_id not in attempts | sets]
    looks = [f"trial {row.number}" for row in ledger.trials.all() if row.outcome is None or row.subject not in judged]
    return scores + looks


def talked(served: ServedCaller, said: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    async def ask() -> list[Any]:
        async with opened_to(served) as sessions:
            split = [(name.split("."), arguments) for name, arguments in said]
            return [await sessions[server].client.call_tool(tool, arguments) for (server, tool), arguments in split]

    return asyncio.run(ask())


def plain(text: str, evaluator: Evaluator, asked: object) -> None:
    """See that a text names no place of this machine, and none of our code."""
    own = (str(ROOT), str(evaluator.ledger.workspace))
    said = () if ".py" in repr(asked) else ('.py"',)  # a caller's own words may be repeated to it
    for trace in ("Traceback", "site-packages", *own, "pydantic", "sqlite3", *said):
        assert trace not in text, (asked, text)


def check(result: Any, call: tuple[str, dict[str, Any]], evaluator: Evaluator, secrets: set[Any]) -> None:
    body = result.structured_content
    assert isinstance(body, dict), (call, result)
    text = json.dumps(body, allow_nan=False, ensure_ascii=False)
    assert json.loads(result.content[0].text) == body
    plain(text, evaluator, call)
    if result.is_error:
        assert {"code", "field", "got", "allowed", "hint", "message"} <= set(body), (call, body)
        assert body["message"], call
    asked = told(json.dumps(call[1], default=str), FEWEST)
    figures = HASHES.sub("", text)  # and sizes of files: any digits may stand in them
    assert not (told(figures, FEWEST) - asked) & secrets, (call, text)


@settings(max_examples=10)
@given(data=st.data())
def test_whatever_a_tool_is_called_with(judged: tuple[Ledger, ServedCaller, list[str]], data: st.DataObject) -> None:
    ledger, served, ids = judged
    evaluator = served.evaluator
    said = data.draw(st.lists(calls(ids), min_size=10, max_size=25))
    secrets = later(evaluator)
    for call, result in zip(said, talked(served, said), strict=True):
        check(result, call, evaluator, secrets)
    assert half_written(ledger, evaluator) == []


def whole(value: float) -> bool:
    """Tell whether a number keeps all its digits when it is rounded."""
    return all(not sign(shown, FEWEST)[1].partition("e")[0].endswith("0") for shown in (value, 100 * value))


def test_a_number_of_a_later_day_would_be_seen(judged: tuple[Ledger, ServedCaller, list[str]]) -> None:
    """The canary: plant what must never be told, and see it caught, rounded or not."""
    evaluator = judged[1].evaluator
    secrets, panel = later(evaluator), evaluator.panel
    looked = next(filter(whole, floats(evaluator.ledger.trials.all()[0].outcome)))
    prices = panel.fields["close"][evaluator.windows.search.stop :]
    price = next(number for number in prices[np.isfinite(prices)].tolist() if set(spelled(np.array(number))) <= secrets)
    for leak in (f"{looked!r}", f"{looked:.5g}", f"{100 * looked:.5g} %", f"{price!r}", f"it closed at {price:.5g}"):
        assert told(leak, FEWEST) & secrets, leak
    assert not told(f"{price:.3g} {evaluator.windows.search.days} 0.05", FEWEST) & secrets
