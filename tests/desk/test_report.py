"""The report says everything, hides nothing, and needs nothing but itself."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from alphaloom.desk import write_report
from alphaloom.desk.errors import ReportError

from . import example

Run = Callable[..., Path]


def html(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


def test_every_part_is_there(finished: Run) -> None:
    titles = re.findall(r"<h2>(.+?)</h2>", html(finished()))
    assert titles == [
        "Data and windows", "What was tried", "What could have been proven", "Accepted", "Watchlist", "Rejected",
        "The book", "Sealed exam", "Risk gate", "Spend",
    ]  # fmt: skip


def test_the_verdict_comes_first_and_names_the_researcher(finished: Run) -> None:
    text = html(finished())
    assert "2 factors and 1 set were accepted; 1 on the watchlist, 45 rejected." in text
    assert "a heuristic, not a language model" in text


def test_a_card_shows_the_formula_its_words_and_every_reason(finished: Run) -> None:
    text = html(finished())
    assert '<pre class="formula">rank(ts_std(returns, 30)) * -1</pre>' in text
    assert text.count('<article class="card accepted"') == 3
    assert text.count('<article class="card watched"') == 1
    for reason in example.reasons():
        assert reason["message"] in text


def test_nothing_accepted_says_what_could_have_been_proven(finished: Run) -> None:
    text = html(finished(example.nothing_accepted(), {}))
    top = text.partition("</header>")[0]
    assert "Nothing was accepted; none on the watchlist, 45 rejected." in top
    assert "could have proven a mean daily RankIC of 0.047 or more" in top


def test_nothing_tried_at_all_still_makes_a_report(finished: Run) -> None:
    bare = {"format": 1, "researcher": "offline/researcher", "seed": 0, "accepted": [], "watchlist": [], "rejected": []}
    assert "Nothing was accepted" in html(finished(bare, {}))


def test_a_window_not_reached_is_a_dash(finished: Run) -> None:
    results = example.results() | {"watchlist": [example.entry("f1", "rank(close)", 0.02, "redundancy")]}
    card = html(finished(results)).partition('<article class="card watched"')[2]
    assert re.search(r"<td>RankIC a day</td><td>\+0\.0200</td><td>—</td>", card)


def test_text_from_models_is_escaped(finished: Run) -> None:
    attack = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    entry = example.entry("f1", attack, 0.03, trial=1)
    entry["hypothesis"] |= {"statement": attack, "mechanism": attack, "refuted_by": attack}
    entry["reasons"][0] |= {"step": attack, "message": attack, "numbers": {attack: attack}}
    entry["explained"] = attack
    entry["metrics"]["search"] |= {"decay": {"5": 0.1}, "by_year": {attack: 0.1}, "warnings": [{"message": attack}]}
    text = html(finished(example.results() | {"accepted": [entry], "rejected": [entry], "warnings": [attack]}))
    assert "<script" not in text
    assert "<img" not in text


def test_nothing_is_fetched(finished: Run) -> None:
    text = html(finished())
    assert not re.search(r"""(?:src|href|url|@import)\s*[=(]?\s*["']?\s*(?:https?:)?//""", text)
    assert not re.search(r"<(?:script|link|iframe|img|object)\b", text)
    assert "default-src 'none'" in text


def test_the_same_run_gives_the_same_bytes(finished: Run) -> None:
    first = write_report(finished()).read_bytes()
    assert write_report(finished()).read_bytes() == first
    assert len(first) < 1_500_000


def test_no_file_is_left_behind(finished: Run) -> None:
    folder = finished()
    write_report(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["curves.json", "report.html", "results.json"]


@pytest.mark.parametrize("body", ["", "{", "[]", json.dumps({"format": 99})])
def test_damaged_results_are_refused_in_words(tmp_path: Path, body: str) -> None:
    (tmp_path / "results.json").write_text(body)
    with pytest.raises(ReportError, match="results"):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_run_without_results_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="alphaloom resume"):
        write_report(tmp_path)


def test_the_risk_gate_shows_what_it_refused_and_why(finished: Run) -> None:
    text = html(finished())
    assert "<td>AAA</td><td>610 (580 to 640)</td><td>single name cap</td>" in text
    assert "<td>gross cap</td><td>19,800</td><td>20,000</td><td>holds</td>" in text


def test_a_book_without_vectorbt_says_what_is_missing(finished: Run) -> None:
    book = {"window": "selection", "unavailable": "vectorbt is not installed", "hint": "pip install it"}
    assert "vectorbt is not installed. pip install it" in html(finished(example.results() | {"book": book}))


def test_signals_withheld_for_a_leak_alarm_are_told(finished: Run) -> None:
    withheld = example.results()["signals"] | {"approved": 0, "withheld_for": ["f0123456789abcdef"]}
    assert "No signal is let out" in html(finished(example.results() | {"signals": withheld}))


def test_a_search_that_a_budget_ended_says_so(finished: Run) -> None:
    text = html(finished(example.results() | {"ended": "the budget of 3 calls is spent"}))
    assert "The search ended early: the budget of 3 calls is spent" in text
