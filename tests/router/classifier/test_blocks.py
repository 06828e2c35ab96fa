"""The blocks of a prompt: requests are found whatever is attached to them."""

from __future__ import annotations

import pytest

from alphaloom.router.classifier.blocks import MAX_BLOCK_CHARS, MAX_BLOCKS, find_request, list_blocks, mend_text
from alphaloom.router.classifier.model import Classifier

REQUEST = "Please find out why the two folds disagree, and say which of them you would believe."
ATTACHED = {
    "code": "def factor(panel):\n    close = panel['close']\n    for day in days:\n        close = close.shift(1)\n",
    "log": "2024-03-01 09:30:01 INFO loader: 494 names read\n2024-03-01 09:30:07 ERROR gate: no label on 3 days\n" * 9,
    "traceback": "Traceback (most recent call last):\n  File \"run.py\", line 7, in <module>\nKeyError: 'close'\n",
    "table": "date,symbol,close,volume\n" + "2024-03-01,AAPL,179.66,73488000\n" * 20,
    "json": '{\n  "rank_ic": 0.031,\n  "rows": [\n    {"t": 3.1, "net": -0.2}\n  ]\n}\n' * 8,
    "formula": "rank(ts_corr(volume, close, 10)) * -ts_delta(vwap / close, 5)\n",
}


@pytest.mark.parametrize("kind", ATTACHED)
@pytest.mark.parametrize("order", ["before", "after"])
def test_the_request_is_read_as_if_nothing_were_attached(kind: str, order: str) -> None:
    text = f"{REQUEST}\n\n{ATTACHED[kind]}" if order == "before" else f"{ATTACHED[kind]}\n\n{REQUEST}"
    assert REQUEST in list_blocks(text)
    classifier = Classifier.shipped()
    assert classifier.read(text).hard == pytest.approx(classifier.read(REQUEST).hard, abs=0.2)


def test_blocks_are_few_and_short_and_there_is_always_one() -> None:
    assert list_blocks("") == [""]
    assert list_blocks("1 2 3\n4 5 6") == ["1 2 3\n4 5 6"]
    many = list_blocks("\n\n".join(f"Please look at sentence number {number} of this." for number in range(50)))
    assert len(many) == MAX_BLOCKS
    assert "number 0 " in many[0]
    assert "number 49 " in many[-1]
    (long,) = list_blocks("please read all of this " * 400)
    assert len(long) <= MAX_BLOCK_CHARS + 1


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("b a c k t e s t the idea", "backtest the idea"),
        ("de\u200bbug th\u00adis", "debug this"),
        ("mo\U0001f680mentum", "momentum"),
        ("plain a b text", "plain a b text"),
        ("S&P 5 0 0", "S&P 5 0 0"),
        ("要約してください", "要約してください"),
        ("Größe prüfen", "Größe prüfen"),
        ("कीमत देखो", "कीमत देखो"),
    ],
)
def test_broken_words_are_mended_and_others_left(written: str, read: str) -> None:
    assert mend_text(written) == read


def test_a_message_of_data_alone_is_no_request() -> None:
    data = '{"market": {"fields": ["close", "volume"], "horizon_days": 5}, "record": {"factors": []}}' * 4
    assert find_request(["You propose hypotheses about stocks.", data]) == "You propose hypotheses about stocks."
    assert find_request([data]) == data
    assert (
        find_request(["Write a factor on momentum.", '{"fields": ["close"], "n": 3}']) == "Write a factor on momentum."
    )
    assert find_request(["a page of rules", "what is the newest close?"]) == "what is the newest close?"
