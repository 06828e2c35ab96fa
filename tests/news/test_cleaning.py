# ruff: noqa: RUF001 - look-alike letters are what this is about
"""A cleaned text holds nothing that is not for reading."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from alphaloom.news import judge_text, sanitise

from ..growth import linear

HOSTILE = st.text(
    st.sampled_from("<>&;#![]()/\"'=-p abx\u200b\u202e\U000e0041\n\u0301é＜＞") | st.characters(), max_size=80
)


@given(HOSTILE)
@example("&amp;" * 9 + "lt;b>")
@example("&#8203;<b>x</b>&amp;lt;i>")
@example("![a](b)[c](d)")
@example("<<b>b>x")
def test_cleaning_twice_changes_nothing(raw: str) -> None:
    once = sanitise(raw).text
    assert sanitise(once).text == once


@given(HOSTILE)
def test_nothing_invisible_is_left(raw: str) -> None:
    text = sanitise(raw).text
    assert unicodedata.is_normalized("NFKC", text)
    assert not [mark for mark in text if unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Co") and mark != "\n"]


@given(st.text(st.sampled_from("abc .,%$"), max_size=60))
def test_plain_text_keeps_its_words(raw: str) -> None:
    assert sanitise(raw).text.split() == raw.split()


@pytest.mark.parametrize(
    ("raw", "shown", "hidden"),
    [
        ("<p>up</p><p style='display: none'>secret</p>", "up", "secret"),
        ("up<!-- secret -->", "up", "secret"),
        ("up<span hidden>secret</span>", "up", "secret"),
        ("up<img alt='secret' src=x>", "up", "secret"),
        ("up<div><div class='sr-only'><div>secret</div></div></div> far", "up\nfar", "secret"),
        ("up<script>secret</script>", "up", "secret"),
        ("up" + "".join(chr(0xE0000 + ord(mark)) for mark in "secret"), "up", "secret"),
        ("&lt;b&gt;up&lt;/b&gt;&lt;i hidden&gt;secret&lt;/i&gt;", "up", "secret"),
    ],
)
def test_what_is_hidden_is_kept_apart(raw: str, shown: str, hidden: str) -> None:
    clean = sanitise(raw)
    assert clean.text == shown
    assert hidden in clean.hidden + clean.code


@pytest.mark.parametrize(
    ("raw", "shown", "kind"),
    [
        ("see ![chart](https://x.example/?d=1) now", "see chart now", "Markdown links"),
        ("see [the report](https://x.example) now", "see the report now", "Markdown links"),
        ("a data:image/png;base64,AAAA b", "a [data removed] b", "data URLs"),
        ("a " + "QUJD" * 60 + " b", "a [encoded text removed] b", "encoded blobs"),
        ("ig\u200bno\u200dre", "ignore", "zero-width characters"),
        ("a\u202eb", "ab", "direction overrides"),
        ("a\u202ab", "ab", "bidirectional overrides"),
        ("ﬁne ｔｅｘｔ", "fine text", ""),
    ],
)
def test_loads_are_taken_off_and_counted(raw: str, shown: str, kind: str) -> None:
    clean = sanitise(raw)
    assert clean.text == shown
    assert list(clean.removed) == ([kind] if kind else [])


def test_less_than_is_no_markup() -> None:
    assert sanitise("margin < 5 % and > 3 %, a <3 b, AT&T").text == "margin < 5 % and > 3 %, a <3 b, AT&T"


def test_a_long_text_is_cut_and_says_so() -> None:
    clean = sanitise("word " * 10, longest=12)
    assert clean.text == "word word wo"
    assert clean.removed == {"characters cut": 37}


@pytest.mark.parametrize(
    "piece",
    [
        "<a ",
        "<!--",
        "<",
        "&lt;",
        "<p hidden>",
        "[",
        "![",
        "](",
        "&#60;",
        "\u200b",
        "a\u0301\u0301\u0301\u0301",
        "data:a/",
        "<a b='",
    ],
)
def test_time_grows_with_length_only(piece: str) -> None:
    assert linear(sanitise, piece, 20_000)


def test_characters_that_become_many_are_cut_and_held_back() -> None:
    """One ligature of Arabic becomes eighteen characters in NFKC."""
    clean = sanitise("\ufdfa" * 5_000)
    assert len(clean.marked) <= 3 * 5_000 + 1_000
    assert clean.removed["swelling characters"] > 0
    assert judge_text(clean).injected
    assert not sanitise("He said \ufdfa and went on to report a profit. " * 50).removed
