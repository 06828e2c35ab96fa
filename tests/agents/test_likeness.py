"""A stated mechanism is no label: what is handed out under it measures it, and a change that drifts off loses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.agents.nodes.factor_agent import score_formula
from alphaloom.agents.offline import fits_mechanism
from alphaloom.agents.offline.mechanisms import Mechanism, load_mechanisms
from alphaloom.agents.records import DATA_MINED, Mark, read_attempt, read_mark_hypothesis

from .doubles import FIELDS, GROUPS, Lab, ask, context

CHILD = {"parent": "f" + 16 * "0", "parent_t": 4.0, "where": ""}
STATED = [row for row in load_mechanisms() if not row.survey and row.usable((*FIELDS, *GROUPS))]


@pytest.mark.parametrize(
    ("text", "mechanism", "direction", "fits"),
    [
        ("ts_argmax(amount, 35)", "illiquid_reversal", -1, False),
        ("ts_zscore(returns, 20)", "short_term_reversal", -1, True),
        ("-ts_zscore(returns, 20)", "short_term_reversal", -1, False),
        ("-ts_zscore(returns, 20)", "short_term_reversal", 1, True),
        ("rank(ts_mean(-ts_zscore(returns, 12), 5))", "short_term_reversal", 1, True),
        ("group_demean(ts_zscore(returns, 20), sector)", "short_term_reversal", -1, True),
        ("ts_std(ts_zscore(returns, 20), 10)", "short_term_reversal", -1, False),  # contains it, measures another
        ("abs(ts_zscore(returns, 20))", "short_term_reversal", -1, False),
        ("ts_zscore(volume, 20)", "short_term_reversal", -1, False),
        ("ts_median(returns, 2)", "intermediate_momentum", 1, False),  # two days are no months
        ("ts_std(returns, 5) / ts_std(returns, 90)", "volatility_shock", -1, True),
        ("ts_std(returns, 90) / ts_std(returns, 5)", "volatility_shock", -1, False),  # the reverse, whatever its sign
        ("close", "a_mechanism_of_a_person", 1, None),
    ],
)
def test_a_formula_fits_a_mechanism_by_its_structure_windows_and_sign(
    text: str, mechanism: str, direction: int, fits: bool | None
) -> None:
    assert fits_mechanism(text, mechanism, direction, FIELDS, GROUPS) is fits


def drafts(mechanism: Mechanism, seed: int, **branch: Any) -> list[dict[str, Any]]:
    """Return the researcher's drafts under a mechanism, as a step of a branch."""
    fields = [name for name in mechanism.fields if name in FIELDS]
    words = {"mechanism": mechanism.id, "statement": mechanism.statement, "direction": mechanism.direction}
    body = context(
        "factor",
        record={},
        hypothesis={"id": "r01/h00", **words, "fields": fields},
        branch={"cited": [], "scored": [], "best": [], "critique": None, "refused": [], **branch},
        request={"count": 12, "step": 1 if branch else 0},
    )
    return list(ask(body, seed)["candidates"])


@settings(max_examples=25, deadline=None)
@given(mechanism=st.sampled_from(STATED), seed=st.integers(0, 10_000))
def test_every_draft_of_a_stated_mechanism_measures_it(mechanism: Mechanism, seed: int) -> None:
    fresh = drafts(mechanism, seed)
    rows = [{"id": f"f{place:016x}", "text": row["text"], "t": 4.0} for place, row in enumerate(fresh)]
    critique = {"advice": [{"operator": "neutralise"}, {"operator": "condition"}, {"operator": "invert"}]}
    changed = drafts(mechanism, seed, scored=rows, critique=critique)
    texts = [row["text"] for row in (*fresh, *changed) if not row["text"].startswith("def ")]
    assert len(fresh) == len(changed) == 12
    strange = [text for text in texts if not fits_mechanism(text, mechanism.id, mechanism.direction, FIELDS, GROUPS)]
    assert strange == []


@pytest.mark.parametrize(
    ("item", "mined"),
    [
        ({"text": "ts_zscore(returns, 30)", **CHILD}, False),
        ({"text": "ts_kurt(returns, 30)", **CHILD}, True),
        ({"text": "-ts_zscore(returns, 30)", **CHILD}, True),
        ({"text": "ts_kurt(returns, 30)"}, False),  # the author's own measure of the mechanism
    ],
)
def test_a_child_that_drifts_off_its_mechanism_is_data_mined(
    lab: Callable[..., Lab], item: dict[str, Any], mined: bool
) -> None:
    campaign = lab()
    hypothesis = {"id": "r01/h00", "mechanism": "short_term_reversal", "statement": "Prices come back.",
                  "direction": -1, "horizon_days": 5, "fields": ["returns"]}  # fmt: skip  # a table
    campaign.journal.record("hypothesis", "r01/h00", hypothesis)
    campaign.journal.record("recall", "r01", {"fields": list(FIELDS), "groups": list(GROUPS)})
    search, key = campaign.desk(), "r01/h00/s0/c0/a0"
    asyncio.run(score_formula(search, "r01/h00", {"key": key, "intent": "mutate: wrap", **item}))  # type: ignore[typeddict-item]
    claim = campaign.servers.calls[-1][1]["hypothesis"]
    assert bool(claim.get("either_way")) is mined
    assert (claim["mechanism"], claim["id"] == "r01/h00") == (
        (DATA_MINED, False) if mined else ("short_term_reversal", True)
    )
    assert read_mark_hypothesis(campaign.journal, Mark(3.0, "f", key)).either_way is mined
    assert read_attempt(campaign.journal, key).data_mined is mined
