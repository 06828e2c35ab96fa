"""No number of selection or sealed days reaches an agent: a whole campaign, every prompt and every answer read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom import Campaign
from alphaloom.agents import questions, records
from alphaloom.evaluation import Budget, CampaignResult, Evaluator, PanelContext
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.scoring.survivorship import Survivorship
from alphaloom.evidence.settings import WindowSettings
from alphaloom.factors import PlantSettings, build_planted_market
from alphaloom.ledger import Ledger, Run
from alphaloom.market import Panel, SyntheticConfig, SyntheticMarket
from alphaloom.mcp_servers import Session
from alphaloom.mcp_servers.tools.market import VisiblePanel
from alphaloom.sandbox import probe_sandbox

from ..mcp_servers.numbers import MOST_DIGITS, floats, sign, signs, told
from ..mcp_servers.opened import opened_to
from . import markets

pytestmark = pytest.mark.integration

FEWEST = 4
"""Digits from which a number counts as told; verdicts are searched for any digit at all."""
SMALL = [
    *markets.BRIEF,
    "evidence.published=true",  # agents are told which of them live
    "agents.rounds=2",
    "agents.hypotheses=3",
    "agents.candidates=3",
    "budget.evaluations=24",
    "budget.trials=4",
    "evidence.open_sealed=true",
    "evidence.leak_rank_ic=0.5",
]
PYTHON = (
    "agents.python=true",
    "agents.rounds=1",
    "budget.evaluations=14",
    "budget.trials=3",
    "steer.seed_library=seeds.txt",
)
SEEDS = 4
"""Planted formulas that a campaign of few evaluations is given, so that it has something to accept."""
DAYS, NAMES, SEARCH = 700, 60, 315
Answer = tuple[str, dict[str, Any]]


@dataclass
class Heard:
    """What agents were told in one campaign.

    Every answer of a tool as it came, every prompt, what stood in prompts before numbers were cut to three digits,
    which no search could tell from others, and every note that agents keep.
    """

    result: CampaignResult
    answers: list[Answer]
    prompts: list[str]
    contexts: list[str]
    notes: list[str]
    secrets: set[Any]

    @property
    def texts(self) -> list[str]:
        return [*self.prompts, *self.contexts, *self.notes, *(json.dumps(body) for _, body in self.answers)]


def hear(panel: Panel, folder: Path, *more: str) -> Heard:
    """Run a campaign on a panel and write down all that its agents are told, also refusals."""
    folder.mkdir()
    file = folder / "campaign.yaml"
    file.write_text("name: small\nseed: 8\nmarket: {panel: prices.parquet, sectors: sectors.parquet}\n")
    markets.write(markets.tidy(panel), folder / "prices.parquet")
    markets.write(markets.sectors(panel), folder / "sectors.parquet")
    (folder / "seeds.txt").write_text("".join(f"{plant.text}\n" for plant in planted_market().plants[:SEEDS]))
    answers: list[Answer] = []
    contexts: list[str] = []
    call = Session.call

    async def listened(self: Session, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        body = await call(self, name, arguments)
        answers.append((name, body))
        return body

    def whole(context: Any) -> Any:
        contexts.append(json.dumps(context))
        return records.round_for_prompt(context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "call", listened)
        patch.setattr(questions, "round_for_prompt", whole)
        patch.setattr(Campaign, "render", None)
        ready = Campaign.from_yaml(file, workspace=folder / "w", overrides=[*SMALL, *more])
        result = ready.run()
    with Ledger.open(folder / "w", clock=ready.clock) as ledger:
        prompts = [ledger.objects.get(row.request).decode() for row in ledger.calls.of(result.run)]
        kept = [event for event in ledger.events.of(result.run) if event.kind.startswith("agents.")]
        notes = [json.dumps([event.kind, event.key, event.body]) for event in kept]
        return Heard(result, answers, sorted(prompts), sorted(contexts), notes, secrets(ledger, result))


def secrets(ledger: Ledger, result: CampaignResult) -> set[Any]:
    """Return what the numbers look like that no agent may be told; those that search shows too are no secret."""
    seen = [trial.outcome for trial in ledger.trials.all()]
    record = result.record
    told_people = [record["sealed"], record["book"], record["power"], record["overfitting"]]
    search = signs(floats([entry["metrics"]["search"] for entry in every_entry(record)]), FEWEST)
    return signs(floats([seen, told_people]), FEWEST) - search


def every_entry(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for word in ("accepted", "proven", "watchlist", "rejected", "members", "untested"):
        yield from record[word]


def leaks(heard: Heard) -> list[str]:
    return [text for text in heard.texts if told(text, FEWEST) & heard.secrets]


@cache
def planted_market() -> SyntheticMarket:
    """Return a market with much planted in it, which nobody leaves."""
    config = SyntheticConfig(seed=3, days=DAYS, names=NAMES, delistings=0.0, late_listings=0.0)
    return build_planted_market(config, PlantSettings(count=20, rank_ic=(0.08, 0.08), fading=0.0, dying=0.0))


def grown() -> Panel:
    return planted_market().panel


def ending(panel: Panel, *, other: bool) -> Panel:
    """Return the market with one of two ends that differ in everything; until search ends both are the same.

    In the other one every price goes the opposite way, as wild as before so that nothing looks broken; volumes come
    from behind, capitalisations are somebody else's, and some names leave. In both, two names come after search ended,
    in a sector of their own.
    """
    fields = {name: np.array(values) for name, values in panel.fields.items() if name != "returns"}
    universe = np.array(panel.universe)
    labels = [panel.group_labels["sector"][code] for code in panel.groups["sector"]]
    universe[: SEARCH + 10, -2:] = False
    labels[-2:] = ["the other"] * 2 if other else ["the one"] * 2
    if other:
        turn(fields)
        universe[SEARCH + 60 :, :5] = False
    return Panel.build(panel.dates, panel.symbols, fields, universe, {"sector": labels})


def turn(fields: dict[str, Any]) -> None:
    """Turn prices about the last one that search saw, and exchange the rest, from the end of search on."""
    edge = fields["close"][SEARCH - 1]
    for name in ("open", "close", "vwap"):
        fields[name][SEARCH:] = edge**2 / fields[name][SEARCH:]
    high = edge**2 / fields["low"][SEARCH:]
    fields["low"][SEARCH:], fields["high"][SEARCH:] = edge**2 / fields["high"][SEARCH:], high
    fields["cap"][SEARCH:] = np.roll(fields["cap"][SEARCH:], 3, axis=1)
    fields["volume"][SEARCH:] = fields["volume"][SEARCH:][::-1]


@pytest.fixture(scope="module", params=["formulas", "python"])
def settings(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return what a campaign of formulas adds to its settings, and one whose agents write Python factors too."""
    if request.param == "formulas":
        return ()
    if not probe_sandbox().available:
        pytest.skip(f"the sandbox cannot run here: {probe_sandbox().problem}")
    return PYTHON


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory, settings: tuple[str, ...]) -> Heard:
    return hear(ending(grown(), other=False), tmp_path_factory.mktemp("heard") / "campaign", *settings)


def test_agents_were_told_something_and_there_was_something_to_tell(heard: Heard, settings: tuple[str, ...]) -> None:
    words = {entry["reasons"][-1]["step"] for entry in every_entry(heard.result.record)}
    assert "statistics" in words
    assert heard.result.accepted
    assert heard.result.record["sealed"]["opened"]
    assert len(heard.prompts) > 8
    assert {json.loads(text)["messages"][1]["content"] for text in heard.prompts} == {
        json.dumps(records.round_for_prompt(json.loads(text)), ensure_ascii=False) for text in heard.contexts
    }
    assert len(heard.secrets) > 300
    assert any("def factor(panel)" in text for text in heard.texts) == bool(settings)
    assert {"score_factor", "submit_to_gate", "get_budget", "recall_attempts"} <= {name for name, _ in heard.answers}


def test_no_number_of_a_later_window_is_told(heard: Heard) -> None:
    assert leaks(heard) == []


def test_a_verdict_says_steps_and_words_and_no_figure_of_any_size(heard: Heard) -> None:
    verdicts = [body for name, body in heard.answers if name == "submit_to_gate" for body in body["verdicts"]]
    assert verdicts
    for verdict in verdicts:
        assert set(verdict) == {"id", "verdict", "reasons"}
        tested = [reason for reason in verdict["reasons"] if reason.startswith("statistics")]
        assert not [reason for reason in tested if any(letter.isdigit() for letter in reason)]
        assert verdict["verdict"] != "accepted" or not verdict["reasons"]


@pytest.mark.parametrize("digits", [17, 6, 5, 4])
def test_a_planted_leak_is_caught(heard: Heard, digits: int) -> None:
    """The canary: in a prompt, in an answer, in a note, in percent, in basis points, however it is rounded."""
    numbers = [(value, f"{value:.{digits}g}") for value in floats(heard.result.record["sealed"])]
    outcome, number = next(
        each
        for each in numbers
        if len(each[1].lstrip("-0.")) > FEWEST  # no zero at its end
        and sign(each[0], min(digits, MOST_DIGITS)) in heard.secrets  # not what search shows too, by chance
    )
    percent, points = f"{100 * outcome:.{digits}g} %", f"{10_000 * outcome:.{digits}g}"
    for planted in (
        replace(heard, prompts=[*heard.prompts, f"it did {number} later"]),
        replace(heard, contexts=[*heard.contexts, f'{{"quantile_returns_bps": [{points}]}}']),
        replace(heard, answers=[*heard.answers, ("get_budget", {"trials_left": float(number)})]),
        replace(heard, notes=[*heard.notes, f"about {percent} a day"]),
    ):
        assert len(leaks(planted)) == 1


def in_order(answers: list[tuple[str, Any]]) -> list[Any]:
    """Return answers as they came, those that branches ask for at once by what they say."""
    at_once = [body for name, body in answers if name == "choose_drafts"]
    return [*(answer for answer in answers if answer[0] != "choose_drafts"), *sorted(at_once, key=str)]


def test_other_later_days_change_nothing_that_agents_are_told(
    tmp_path_factory: pytest.TempPathFactory, settings: tuple[str, ...]
) -> None:
    """What a grep cannot find: an order, a choice, a doubt, a merit that knows later days.

    Two markets are the same until search ends and opposite after it. With a gate that proves nothing the verdicts
    are the same too, and then so must be every prompt, every answer and every note, to the byte.
    """
    folder = tmp_path_factory.mktemp("mirror")
    blunt = ("evidence.level=1e-60", "evidence.watch_p=1e-60", "evidence.open_sealed=false", *settings)
    ends = (ending(grown(), other=False), ending(grown(), other=True))
    one, other = (hear(end, folder / name, *blunt) for name, end in zip(("one", "other"), ends, strict=True))
    looked = [
        [entry["metrics"]["selection"] for entry in every_entry(side.result.record) if entry["trial"]]
        for side in (one, other)
    ]
    assert looked[0]
    assert any("def factor(panel)" in text for text in one.texts) == bool(settings)
    assert all(mine["rank_ic"] != theirs["rank_ic"] for mine, theirs in zip(*looked, strict=True))
    assert in_order(one.answers) == in_order(other.answers)
    assert one.prompts == other.prompts
    assert one.contexts == other.contexts
    assert one.notes == other.notes


def adjusted(panel: Panel, *, other: bool) -> Panel:
    """Return the panel with prices adjusted for splits after its end: half of the names, or the other half."""
    split = np.where(np.arange(panel.names) % 2 == other, 0.5, 1.0)
    fields = dict(panel.fields) | {"close_raw": panel.fields["close"], "adj_factor": np.tile(split, (panel.days, 1))}
    fields |= {name: panel.fields[name] * split for name in ("open", "high", "low", "close", "vwap")}
    return replace(panel, fields=fields, back_adjusted=True)


def asked(panel: Panel, workspace: Path) -> list[dict[str, Any]]:
    """Return what the tools answer on a panel to all that can be asked without a verdict."""
    rules = EvidenceSettings(windows=WindowSettings(search=0.45, selection=0.4))
    said = {
        "id": "h",
        "mechanism": "m",
        "statement": "s",
        "direction": 1,
        "horizon_days": 5,
        "fields": ["cap", "volume"],
    }

    async def ask(evaluator: Evaluator) -> list[dict[str, Any]]:
        async with opened_to(evaluator) as sessions:
            market, factors, evaluation = (sessions[name] for name in ("market", "factors", "evaluation"))
            shown = [await market.call("preview_panel", {"field": name, "rows": 20}) for name in panel.fields]
            scored = [
                await evaluation.call("score_factor", {"text": text, "key": text, "hypothesis": said})
                for text in ("log(cap)", "rank(ts_mean(volume, 20))", "rank(close)", "group_zscore(log(cap), sector)")
            ]
            whole = [await market.call("search_fields", {}), await market.call("describe_universe", {})]
            return [*shown, *scored, *whole, await factors.call("recall_attempts", {})]

    with Ledger.open(workspace, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as ledger:
        ledger.runs.start(Run("run", {}, 1, "data", "2026"))
        return asyncio.run(ask(PanelContext.set_up(panel, ledger, rules, "data").evaluator("run", Budget())))


def test_other_later_days_change_no_answer_of_any_tool(tmp_path: Path) -> None:
    """Doubts about survivors, labels of sectors, levels of prices: what the whole panel could have told."""
    ends = [adjusted(ending(grown(), other=other), other=other) for other in (False, True)]
    one, other = (asked(end, tmp_path / str(number)) for number, end in enumerate(ends))
    doubts = [warning["code"] for body in one for warning in body.get("sheet", {}).get("warnings", [])]
    assert "survivorship" in doubts
    assert any("scaled" in body for body in one)
    assert one == other


def test_a_tool_that_knows_later_days_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary: labels of all names, as they once were told, and who survives to the end of the panel."""
    ends = [adjusted(ending(grown(), other=other), other=other) for other in (False, True)]
    monkeypatch.setattr(VisiblePanel, "names", property(lambda self: list(range(self.panel.names))))
    monkeypatch.setattr(Survivorship, "suspected", property(lambda self: bool(self.panel.universe[-1, :5].all())))
    one, other = (asked(end, tmp_path / str(number)) for number, end in enumerate(ends))
    unlike = {key for mine, theirs in zip(one, other, strict=True) for key in mine if mine[key] != theirs.get(key)}
    assert {"groups", "sheet"} <= unlike
