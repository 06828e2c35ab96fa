"""What drifted is counted from the record alone, month by month, and nothing is written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.ledger import Attempt, Ledger, ModelCall, Pass, Run, Sighting, Stage, WindowKey, Wish
from alphaloom.router.calls import REPAIR_OPENING

NAMES = ("A", "B")
SIGNALS = {"r1": [[], ["gross"]], "r2": [["gross", "borrow"], ["gross"], []]}
CALLS = {  # model, finish of the reply, opening of the last message, seconds, times sent
    "r1": [("small", "stop", "", 1.0, 1), ("small", "stop", "", 3.0, 2), ("large", "content_filter", "", 2.0, 1)],
    "r2": [("large", "stop", REPAIR_OPENING, 4.0, 1), ("large", "stop", "", 6.0, 1), ("small", "stop", "", 8.0, 0)],
}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def record_call(ledger: Ledger, clock: Clock, run: str, number: int, call: tuple[Any, ...]) -> None:
    model, finish, opening, seconds, times = call
    put = ledger.objects.put
    request = put(json.dumps({"messages": [{"content": f"{opening}\n{run} {number}"}]}).encode())
    reply = put(json.dumps({"text": f"{run} {number}", "finish": finish}).encode())
    key = f"{run}-{number}"
    ledger.holds.hold(Wish(run, key, "", 1, 0.1), [], 60.0)
    clock.now += timedelta(seconds=seconds)
    ledger.calls.add(ModelCall(key, run, "idea", "new", "local", model, "p", request, reply, 1, 1, 0.25, times))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two campaigns, in January and February, and a factor of the first on new days."""
    clock = Clock()
    with Ledger.open(tmp_path, clock=clock) as ledger:
        for run, panel, last in (("r1", "a" * 64, "2025-12-31"), ("r2", "b" * 64, "2026-01-30")):
            config = {"settings": {"name": run}, "panel": panel, "last_day": last}
            ledger.runs.start(Run(run, config, 1, "prices", clock.now.isoformat()))
            for number, call in enumerate(CALLS[run]):
                record_call(ledger, clock, run, number, call)
            stages: tuple[Stage, ...] = ("scored", "parse") if run == "r1" else ("scored", "causal", "causal")
            for number, stage in enumerate(stages):
                ledger.attempts.add(Attempt(run, f"k{number}", "h", "x", None, stage, ""))
            decision = {"rulings": [{"asset": "A", "refusals": refusals} for refusals in SIGNALS[run]]}
            ledger.events.record(run, "risk", f"{run} decision", decision)
            clock.now = datetime(2026, 2, 5 + (run == "r2"), tzinfo=UTC)
        seen = [Sighting("f1", day, 0.01) for day in ("2026-01-05", "2026-01-06")]
        window = WindowKey("prices", "2026-01-05", "2026-01-06", NAMES)
        ledger.library.record(passes=[Pass("f1", window, seen, {"panel": "c" * 64})])
    return tmp_path


def ask(place: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_command(["record", "drift", *words, "--workspace", str(place)]) == 0
    return capsys.readouterr().out


def test_each_part_is_counted_by_month(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(ask(place, capsys, "--json"))
    january, february = report["calls"]
    assert (january["month"], january["by_model"], february["by_model"]) == (
        "2026-01", {"small": 2, "large": 1}, {"large": 2}
    )  # fmt: skip  # a table
    assert [(row["refused"], row["repairs"], row["retried"], row["unread"]) for row in report["calls"]] == [
        (1, 0, 1, 0), (0, 1, 0, 0)
    ]  # fmt: skip  # a table
    assert [(row["median_s"], row["slow_s"], row["usd"]) for row in report["calls"]] == [(2, 3, 0.75), (5, 6, 0.5)]
    assert [(row["total"], row["refused"], row["reasons"]) for row in report["proposals"]] == [
        (2, 1, {"parse": 1}), (3, 2, {"causal": 2})
    ]  # fmt: skip  # a table
    assert [(row["total"], row["refused"], row["reasons"]) for row in report["signals"]] == [
        (2, 1, {"gross": 1}), (3, 2, {"gross": 2, "borrow": 1})
    ]  # fmt: skip  # a table
    assert [(row["before"][0], row["after"][0], row["run"], row["last_day"]) for row in report["data"]] == [
        ("a", "b", "r2", "2026-01-30"), ("b", "c", "", "2026-01-06")
    ]  # fmt: skip  # a table
    own = json.loads(ask(place, capsys, "r2", "--json"))
    assert (own["run"], own["calls"], own["signals"]) == ("r2", report["calls"][1:], report["signals"][1:])
    assert [row["run"] for row in own["data"]] == ["r2"]


def test_each_part_has_a_plain_line_and_erased_texts_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ledger.open(place, clock=Clock()) as ledger:
        call = ledger.calls.get("r1", "r1-2")
        assert call is not None
        ledger.erasures.erase_objects([call.reply], "Ada", "old")
    shown = ask(place, capsys)
    january = (
        "  2026-01  3 calls: small 66.7 %, large 33.3 %; refused 0 (0.0 %), repairs 0 (0.0 %), sent again 1 (33.3 %), "
        "texts of 1 erased; $0.7500, $0.2500 a call; median 2.00 s, 95 % within 3.00 s"
    )
    for line in (
        "model calls: large answered 33.3 % in 2026-01 and 100.0 % in 2026-02, the largest change of a share",
        january,
        "proposals: 50.0 % refused in 2026-01 and 66.7 % refused in 2026-02",
        "  2026-02  3 signals, refused 2 (66.7 %): gross 66.7 %, borrow 33.3 %",
        "factors on new days: none",
        "data: 2 digests changed",
    ):
        assert line in shown.splitlines()
    assert run_command(["record", "drift", "r9", "--workspace", str(place)]) == 2
