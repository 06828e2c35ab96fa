"""The rule of audited attributes: only where a policy names one, with exceptions, and the same when replayed."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.evaluation.checks import AUDIT_EVENT, AuditRequest, audit_factors, list_audits
from alphaloom.evidence.values import Computing
from alphaloom.factors import Engine, parse
from alphaloom.ledger import Ledger, LibraryRow, Run, canonical_json
from alphaloom.market import Panel
from alphaloom.risk import (
    ALL_RULES,
    RULES,
    BookState,
    Exposure,
    Policy,
    PolicyException,
    RiskLimits,
    Signal,
    Standing,
    compare_policies,
    decide,
    digest_policy,
    read_standings,
)
from alphaloom.risk.signal import RiskError

from .conftest import KNOWN, NOW, signal as make_signal, state as make_state

Make = Callable[..., Signal]
Book = Callable[..., BookState]
FREE = Exposure("sector", False, "mean gap", "tech", 1_000, 3_000, 5_000, 400_000_000, 2_000_000, None, 1, "2020-02-28")
CARRIED = replace(FREE, found=True, p_e9=1_000)
AUDITED = Policy(audited=("sector",))


def standing(*exposures: Exposure) -> Standing:
    return replace(KNOWN["f0"], exposures=exposures)


def refusals(policy: Policy, *exposures: Exposure, held: int = 0) -> tuple[str, ...]:
    book = make_state(positions={"AAA": held} if held else {})
    target = held // 2 if held else 100
    return decide([make_signal("AAA", target)], book, policy, NOW, {"f0": standing(*exposures)}).rulings[0].refusals


def test_a_carried_attribute_refuses_increases_and_so_does_one_without_an_audit() -> None:
    assert refusals(AUDITED, FREE) == ()
    assert refusals(AUDITED, CARRIED) == ("unexposed",)
    assert refusals(AUDITED) == ("unexposed",)
    assert refusals(AUDITED, Exposure("sector", False)) == ("unexposed",), "it could not be audited"
    assert refusals(AUDITED, replace(FREE, attribute="country")) == ("unexposed",)
    assert refusals(AUDITED, CARRIED, held=100) == (), "a reduction passes"
    (ruling,) = decide([make_signal()], make_state(), AUDITED, NOW, {"f0": standing(CARRIED)}).rulings
    check = ruling.checks[-1]
    assert (check.rule, check.actual, check.limit, check.passed, check.about) == ("unexposed", 1, 0, False, "f0")
    (lost,) = decide([make_signal(evidence="nobody")], make_state(), AUDITED, NOW, {}).rulings
    assert "unexposed" in lost.refusals


def test_without_an_attribute_nothing_changes_not_a_byte() -> None:
    plain = decide([make_signal()], make_state(), Policy(), NOW, KNOWN)
    assert plain.rules == RULES
    assert len(plain.rulings[0].values) == len(RULES) == len(plain.limits[0])
    assert "unexposed" not in canonical_json(plain.record())
    assert "exposures" not in KNOWN["f0"].record()
    assert "audited" not in Policy().model_dump() | RiskLimits().model_dump(mode="json")
    assert digest_policy(Policy()) != digest_policy(AUDITED)
    old = PolicyException(evidence="f0", rule="proven", reason="why", owner="Ada", until=NOW)
    assert "attribute" not in old.model_dump(mode="json")
    assert decide([make_signal()], make_state(), AUDITED, NOW, {"f0": standing(FREE)}).rules == ALL_RULES


def test_a_decision_is_replayed_from_its_record() -> None:
    known = {"f0": standing(CARRIED, replace(FREE, attribute="country"))}
    policy = Policy(audited=("sector", "country"))
    first = decide([make_signal()], make_state(), policy, NOW, known)
    restored = {name: Standing.restore(json.loads(canonical_json(one.record()))) for name, one in known.items()}
    same = Policy.model_validate_json(json.dumps(policy.model_dump(mode="json")))
    assert canonical_json(decide([make_signal()], make_state(), same, NOW, restored).record()) == canonical_json(
        first.record()
    )
    assert first.id != decide([make_signal()], make_state(), policy, NOW, {"f0": standing(FREE)}).id


def test_of_a_combination_its_own_scores_count_and_not_those_of_its_members() -> None:
    known = {"c0": replace(standing(FREE), factor_id="c0", members=("f0",)), "f0": standing(CARRIED)}
    assert decide([make_signal(evidence="c0")], make_state(), AUDITED, NOW, known).rulings[0].refusals == ()


def test_an_exception_excuses_one_attribute_or_all_until_its_day() -> None:
    def excused(**changed: Any) -> Policy:
        fields = {"evidence": "f0", "rule": "unexposed", "reason": "sector bet", "owner": "Ada", "until": NOW}
        one = PolicyException.model_validate({**fields, **changed})
        return Policy(audited=("sector", "country"), exceptions=(one,))

    both = CARRIED, replace(CARRIED, attribute="country")
    assert refusals(excused(), *both) == ()
    assert refusals(excused(attribute="sector"), CARRIED, replace(FREE, attribute="country")) == ()
    assert refusals(excused(attribute="sector"), *both) == ("unexposed",)
    assert refusals(excused(until=date(2020, 3, 1)), *both) == ("unexposed",)


NAMES = st.lists(st.sampled_from(["sector", "country", "size"]), unique=True, max_size=3)


@given(NAMES, NAMES, st.lists(st.sampled_from(["sector", "country", "size"]), unique=True), st.booleans())
def test_more_attributes_let_nothing_new_pass(own: list[str], asked: list[str], audits: list[str], found: bool) -> None:
    policy = Policy(audited=tuple(own))
    tighter, _ = policy.tightened(RiskLimits(audited=tuple(asked)))
    assert {*tighter.audited} == {*own, *asked}
    rows = [replace(FREE, attribute=name, found=found and name == "size") for name in audits]
    assert {*refusals(policy, *rows)} <= {*refusals(tighter, *rows)}
    changes = {one.change for one in compare_policies(tighter, policy)}
    assert changes <= {"tighter"}


@pytest.mark.parametrize("changed", [{"found": 1}, {"p_e9": 0.5}, {"p_with_size_e9": "0"}, {"group": None}])
def test_a_malformed_exposure_does_not_come_to_be(changed: dict[str, Any]) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "standing"):
        replace(FREE, **changed)


def make_panel(names: int = 60, days: int = 80) -> Panel:
    """Return a panel whose highs carry the country and whose closes do not."""
    random = np.random.default_rng(5)
    country = random.permutation(np.arange(names) % 2)
    close = 50.0 * np.exp(np.cumsum(random.normal(0.0, 0.02, (days, names)), axis=0))
    high = close * (1.05 + 0.03 * country + 0.01 * random.random((days, names)))
    fields = {
        "open": close,
        "high": high,
        "low": close * 0.9,
        "close": close,
        "volume": random.random((days, names)) + 1e6,
    }
    dates = np.datetime64("2020-01-01", "D") + np.arange(days)
    symbols = [f"S{place:02d}" for place in range(names)]
    words = ["here" if one else "abroad" for one in country]
    return Panel.build(dates, symbols, fields, groups={"country": words, "one": ["all"] * names})


def test_an_audit_is_recorded_once_charged_once_and_read_by_the_gate(tmp_path: Path) -> None:
    panel = make_panel()
    computing = Computing(Engine(panel))
    texts = {"carrier": "high / close", "free": "ts_mean(returns, 5)"}
    factors = {name: parse(text, fields=("high", "close", "returns")) for name, text in texts.items()}
    carrier, free = (factors[name].id for name in texts)
    with Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as ledger:
        ledger.runs.start(Run("run", {}, 7, "data", "2026-01-01"))
        for one in factors.values():
            sheet = {"fields": sorted(one.fields)}
            ledger.library.add(LibraryRow(one.id, one.text, one.shown, "", "run", sheet, "by_hand"))
        asked = AuditRequest(
            (carrier, free, "nobody"), ("country", "one", "restricted"), {"restricted": panel.symbols[:20]}
        )
        first, second = audit_factors(ledger, computing, asked)
        assert (first.factor_id, first.number, first.found) == (carrier, 1, True)
        assert (second.factor_id, second.number, second.found_before, second.found) == (free, 2, 1, False)
        assert {*first.findings} == {"country", "restricted"}, "one group alone cannot be audited"
        assert audit_factors(ledger, computing, asked) == [], "what is on record is not charged again"
        assert audit_factors(ledger, computing, replace(asked, again=True)) == [], "the same day says the same"
        later = Computing(Engine(panel.rows(0, 79)))
        assert [one.number for one in audit_factors(ledger, later, replace(asked, names=(free,), again=True))] == [3]
        assert [one.number for one in list_audits(ledger)] == [1, 2, 3]
        assert len(ledger.events.of("run", AUDIT_EVENT)) == 3
        known = read_standings(ledger, f"{carrier}, {free}")
    rows = {row.attribute: row for row in known[carrier].exposures}
    assert (rows["country"].found, rows["country"].statistic != "", rows["one"].audited) == (True, True, False)
    assert rows["country"].smallest_gap_e4 > 0
    assert [row.number for row in known[free].exposures] == [3, 3, 3]
    audited = Policy(audited=("country",), admitted=("by_hand",), similarity_cap_bp=10_000)
    exempt = tuple(
        PolicyException(evidence=name, rule="original", reason="by hand", owner="Ada", until=NOW) for name in known
    )
    policy = audited.model_copy(update={"exceptions": exempt})
    for name, expected in ((carrier, ("unexposed",)), (free, ())):
        (ruling,) = decide([make_signal(evidence=name)], make_state(), policy, NOW, known).rulings
        assert ruling.refusals == expected
