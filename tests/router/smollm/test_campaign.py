"""A campaign whose every question is asked of a model of 135 million parameters first, and goes up where that fails.

The offline researcher stands in for the frontier model. What is asserted must hold however the small model writes; what
it managed is printed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from alphaloom.agents import schemas
from alphaloom.desk.facts.model_spend import sum_spend
from alphaloom.desk.remarks import Account
from alphaloom.ledger import Ledger, ModelCall
from alphaloom.router.calls import ROUTE_EVENT
from alphaloom.router.calls.replies import ModelAnswer, fits_schema
from bench.router.campaigns.settings import write_documents
from bench.router.campaigns.slips import DAYS, FIELDS, FORMULAS

from ..vllm.test_campaign import Campaign
from .served import SmallServer

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {
    "name": "smollm",
    "agents": {
        "rounds": 1, "hypotheses": 3, "candidates": 2, "drafts": 1, "steps": 1, "repairs": 2, "min_search_t": 0,
        "unexplored": 8, "max_concurrency": 4, "node_timeout_seconds": 3600,
    },
    "steer": {"agent": "bench.router.campaigns.slips:propose", "agent_hypotheses": 2},
    "context": {"documents": ["text-0-0.txt", "text-0-1.txt"], "summaries": "model"},
    "budget": {"evaluations": 40, "trials": 2},
}  # fmt: skip  # a table
SCHEMAS: Mapping[str, type[BaseModel]] = {
    "hypotheses": schemas.Ideas, "mechanisms": schemas.Mechanisms, "formulas": schemas.Candidates,
    "repair": schemas.Candidates, "critique": schemas.Critique, "summary": schemas.ShortText, "account": Account,
}  # fmt: skip  # a table
SLIPS = {text.format(field=field, days=days) for text, _ in FORMULAS for field in FIELDS for days in DAYS}


class Record:
    """What a finished campaign left in its record."""

    def __init__(self, ledger: Ledger, results: dict[str, Any]) -> None:
        self.ledger, self.results, self.sent = ledger, results, 0.0
        (self.run,) = [run.id for run in ledger.runs.all()]
        self.calls = ledger.calls.of(self.run)
        self.decisions = {event.key: event.body for event in ledger.events.of(self.run, ROUTE_EVENT)}

    def answer(self, call: ModelCall) -> ModelAnswer:
        body = json.loads(self.ledger.objects.get(call.reply))
        return ModelAnswer(body["text"], body["finish"], call.tokens_in, call.tokens_out, call.model)

    def fits(self, call: ModelCall) -> bool:
        return fits_schema(self.answer(call), SCHEMAS[call.intent])

    def went_up(self) -> list[tuple[ModelCall, dict[str, Any]]]:
        return [(call, self.decisions[call.key]) for call in self.calls if call.tier == "frontier"]


@pytest.fixture(scope="module")
def record(server: SmallServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    campaign = Campaign(tmp_path_factory.mktemp("campaign"), server)
    write_documents("exam", 0, campaign.folder)
    before = server.counts()["request_success_total"]
    try:
        results = campaign.start(**SETTINGS).finish()
    finally:
        if campaign.process is not None and campaign.process.poll() is None:
            campaign.kill()
    with Ledger.open(campaign.workspace, clock=lambda: datetime.now(UTC)) as ledger:
        found = Record(ledger, results)
        found.sent = server.counts()["request_success_total"] - before
        yield found


def test_every_call_that_the_server_answered_is_on_record_with_its_decision(record: Record) -> None:
    assert record.sent == sum(call.tier == "local" for call in record.calls) > 0
    assert record.decisions.keys() == {call.key for call in record.calls}
    assert {call.role for call in record.calls} == {"idea", "factor", "eval", "report"}
    assert {"summary", "account"} <= {call.intent for call in record.calls}
    assert all(record.answer(call) and record.ledger.objects.get(call.request) for call in record.calls)


def test_all_began_at_the_small_model_and_what_went_up_says_why(record: Record) -> None:
    reasons = (
        "of the local tier did not fit",
        "of the local tier is of no use",
        "agree on keep in",
        "was refused 2 times",
    )
    assert record.went_up()
    for _, decision in record.went_up():
        assert decision["first_tier"] == "local"
        assert any(reason in decision["reason"] for reason in reasons), decision["reason"]


def test_a_draft_that_was_refused_is_repaired_by_the_tier_above_where_the_small_model_cannot(record: Record) -> None:
    repairs = [
        (call.tier, record.decisions[call.key]["signals"]["refused"])
        for call in record.calls
        if call.intent == "repair"
    ]
    assert ("local", 1) in repairs
    assert "frontier" in {tier for tier, _ in repairs}
    assert ("local", 2) not in repairs, "a draft that was refused twice is asked above at once"


def test_no_reply_outside_its_schema_is_used(record: Record) -> None:
    fitting = [json.loads(record.answer(call).text) for call in record.calls if record.fits(call)]
    written = {row["text"] for reply in fitting for row in reply.get("candidates", ())}
    stated = {row["statement"] for reply in fitting for row in reply.get("hypotheses", ())}
    journal = [(event.kind, event.body) for event in record.ledger.events.of(record.run)]
    drafted = {row["text"] for kind, body in journal if kind == "agents.drafts" for row in body.get("items", ())}
    ideas = {row["statement"] for kind, body in journal if kind == "agents.ideas" for row in body.get("hypotheses", ())}
    assert drafted
    assert drafted <= written | SLIPS
    assert ideas <= stated


def test_the_bill_shows_both_tiers_and_what_each_alone_would_cost(record: Record) -> None:
    bill = sum_spend(record.ledger, record.run, "", None)
    counted = {tier: sum(row[tier] for row in bill["by_question"].values()) for tier in ("local", "frontier")}
    assert counted == Counter(call.tier for call in record.calls)
    assert sum(row["went_up"] for row in bill["by_question"].values()) == counted["frontier"]
    assert 0 < bill["always"]["local"]["usd"] < bill["usd"] < bill["always"]["frontier"]["usd"]


def test_the_report_has_the_models_words_or_why_not_and_the_results_have_none(
    record: Record, server: SmallServer, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = record.ledger.runs.folder(record.run)
    remark = json.loads((folder / "remark.json").read_text("utf-8"))
    assert bool(remark["text"]) != bool(remark["withheld"])
    assert 'data-generated-by="model"' in (folder / "report.html").read_text("utf-8")
    assert not remark["text"] or remark["text"] not in json.dumps(record.results)
    with capsys.disabled():
        print(
            f"\nstarted in {server.seconds:.0f} s\n{describe(record)}\nremark: {remark['text'] or remark['withheld']}"
        )


def describe(record: Record) -> str:
    """Return what the small model managed, by question, and the bill."""
    bill = sum_spend(record.ledger, record.run, "", None)
    lines = []
    for intent in sorted({call.intent for call in record.calls}):
        small = [call for call in record.calls if call.intent == intent and call.tier == "local"]
        above = sum(call.intent == intent for call, _ in record.went_up())
        tokens = sum(call.tokens_out for call in small)
        lines.append(
            f"{intent}: {len(small)} calls, {sum(map(record.fits, small))} fit, {tokens} tokens out; {above} above"
        )
    reasons = Counter(decision["reason"].partition(";")[0] for _, decision in record.went_up())
    alone = {tier: round(bill["always"][tier]["usd"], 5) for tier in ("local", "frontier")}
    return "\n".join([*lines, str(dict(reasons)), f"cost {bill['usd']:.5f}, alone {alone}"])
