"""What a model of 135 million parameters says of formulas and news; what of it is shown, and how often it is right."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.remarks import ACCOUNT_PAGE, RemarkQuestion, find_fault
from alphaloom.factors import parse
from alphaloom.factors.describe import explain_formula
from alphaloom.ledger import Ledger

from .served import SmallServer

pytestmark = pytest.mark.slow

FORMULAS = (
    "rank(ts_std(returns, 30)) * -1", "ts_corr(close, volume, 10)", "-1 * ts_sum(returns, 5)",
    "(close - ts_min(low, 20)) / (ts_max(high, 20) - ts_min(low, 20))",
    "rank(ts_mean(volume, 5) / ts_mean(volume, 60))",
    "rank(close / delay(close, 250)) - rank(close / delay(close, 20))", "-ts_corr(rank(open), rank(volume), 10)",
    "zscore(ts_mean(amount, 20))", "ts_std(returns, 60) / ts_std(returns, 250)", "rank(ts_sum(abs(returns), 10))",
    "group_rank(ts_mean(returns, 20), sector)", "ts_max(high, 60) / close",
)  # fmt: skip  # a table
NEWS = {
    "good": (
        "Ixion lifts its sales outlook after a strong summer", "Jarvo signs a supply deal worth two billion",
        "Kestrel's quarterly profit tops forecasts", "Lumen wins approval to sell its new vaccine",
        "Marrow is to be bought at a premium of a third", "Norse raises its dividend and buys back shares",
        "Orbit adds customers faster than its rivals", "Analysts raise Pallas to outperform",
    ),
    "bad": (
        "Ixion lowers its sales outlook after a weak summer", "Jarvo loses a supply deal worth two billion",
        "Kestrel's quarterly profit falls short of forecasts", "Lumen is refused approval for its new vaccine",
        "Marrow says it may not be able to repay its debts", "Norse cuts its dividend and sells new shares",
        "Orbit loses customers faster than its rivals", "Analysts cut Pallas to underperform",
    ),
    "neither": (
        "Ixion to speak at a conference in June", "Jarvo changes the colours of its logo",
        "Kestrel publishes its annual report", "Lumen's board meets on Friday",
        "Marrow opens a museum of its history", "Norse moves its listing code to three letters",
        "Orbit's founder gives a lecture on music", "Pallas sponsors a chess tournament",
    ),
}  # fmt: skip  # a table
"""Headlines by what they mean for the price, written after the page that asks for it was fixed."""


@pytest.fixture
def workspace(server: SmallServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder whose router.yaml names the small model."""
    monkeypatch.chdir(tmp_path)
    Path("router.yaml").write_text(yaml.safe_dump({"models": {"small": server.small}, "timeout_seconds": 600}))
    return tmp_path / ".alphaloom"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command([*words, "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def count_calls(workspace: Path) -> int:
    with Ledger.open(workspace, clock=lambda: datetime.now(UTC)) as ledger:
        return sum(len(ledger.calls.of(run.id)) for run in ledger.runs.all())


def test_an_account_is_shown_only_where_nothing_wrong_with_it_was_found(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    remarks = [run(capsys, "factor", "explain", formula)["remark"] for formula in FORMULAS]
    took = (time.monotonic() - begun) / len(FORMULAS)
    with capsys.disabled():
        shown = sum(bool(remark["text"]) for remark in remarks)
        print(f"\n{shown} of {len(FORMULAS)} accounts are shown, {took:.1f} s each")
        for formula, remark in zip(FORMULAS, remarks, strict=True):
            print(f"  {formula}: {remark['text'] or remark['withheld']}")
    assert count_calls(workspace) >= len(FORMULAS)
    for formula, remark in zip(FORMULAS, remarks, strict=True):
        given = RemarkQuestion.about_formula(explain_formula(parse(formula))).facts["text"]
        assert remark["withheld"] if not remark["text"] else not find_fault(remark["text"], given)
        assert ACCOUNT_PAGE not in remark["text"]


def test_a_sentiment_is_one_of_three_words(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    titles = {title: label for label, rows in NEWS.items() for title in rows}
    days = [f"2015-02-{day:02d}T14:00:00Z" for day in range(1, len(titles) + 1)]
    lines = [{"published": day, "title": title, "source": "wire"} for day, title in zip(days, titles, strict=True)]
    Path("news.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run(capsys, "news", "add", "news.jsonl")
    begun = time.monotonic()
    items = run(capsys, "news", "sentiment", "-n", "200")["items"]
    took = (time.monotonic() - begun) / len(items)
    read = [(titles[item["title"]], item["remark"]["text"]) for item in items]
    with capsys.disabled():
        right = sum(label == text for label, text in read)
        print(f"\n{right} of {len(read)} headlines are read as meant, {took:.1f} s each: {dict(Counter(read))}")
    assert {text for _, text in read} <= NEWS.keys()
    assert len(read) == len(titles) == count_calls(workspace)
