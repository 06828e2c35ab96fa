"""The documents of the benchmark of the context cache hold what is asked for, where they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench import context


@pytest.mark.parametrize("make", [context.scattered, context.sectioned])
def test_every_statement_stands_where_it_is_said_to(
    make: Callable[[int], tuple[list[str], list[context.Fact]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "FILLER", 60)
    texts, facts = make(1)
    assert len({(fact.document, fact.first) for fact in facts}) == len(context.NAMES) * len(context.MATTERS)
    said = {matter[0].replace("{} ", "") for matter in context.MATTERS}
    for fact in facts:
        assert any(texts[fact.document][fact.first : fact.stop].endswith(sentence) for sentence in said)
    lines = list(context.recall("small", texts, facts[:12]))
    assert lines[3].startswith("| its own words |")
    assert lines[3].split("|")[-3].strip() == "100"
