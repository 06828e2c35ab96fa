"""How varied a search was."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from alphaloom.ledger import Ledger, Run
from alphaloom.search.diversity import effective_number, effective_number_of_round, summarise_variety

from ..evidence.lab import clock


@given(st.lists(st.sampled_from("abcd"), max_size=30))
def test_it_lies_between_one_and_the_number_of_different_ones(names: list[str]) -> None:
    found = effective_number(names)
    assert (found == 0.0) if not names else (1 - 1e-9 <= found <= len({*names}) + 1e-9)
    assert found == pytest.approx(effective_number(sorted(names)))


def test_known_cases() -> None:
    assert effective_number("aaaa") == pytest.approx(1.0)
    assert effective_number("abcd") == pytest.approx(4.0)
    assert effective_number("aab") == pytest.approx(math.exp(-(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3)))


def test_it_is_told_by_round_without_seeds(tmp_path: Path) -> None:
    said = {"r00/h0000": "seed", "r01/h00": "calm", "r01/h01": "loud", "r02/h00": "calm", "r02/h01": "calm"}
    with Ledger.open(tmp_path, clock=clock) as ledger:
        ledger.runs.start(Run("run", {"panel": "p", "last_day": "d"}, 1, "small", clock().isoformat()))
        for key, mechanism in said.items():
            ledger.events.record("run", "agents.hypothesis", key, {"mechanism": mechanism})
            ledger.events.record("run", "agents.niche", f"{mechanism}/week/slow", {"id": mechanism})
        ledger.events.record("run", "agents.refused_ideas", "r02", {"items": [{"mechanism": "calm"}]})
        found = summarise_variety(ledger, "run")
        assert effective_number_of_round(ledger, "run", 2) == pytest.approx(1.0)
        assert effective_number_of_round(ledger, "run", 3) is None
    assert [row["effective"] for row in found["rounds"]] == pytest.approx([2.0, 1.0])
    assert (found["hypotheses"], found["mechanisms"], found["niches"], found["refused"]) == (4, 2, 3, 1)
