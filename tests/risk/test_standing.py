"""What stands behind a signal decides whether it may add risk: every rule, and the record that it is read from."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.ledger import Ledger, LibraryRow, Look, Run, SettingsError, VerdictRow, WindowKey
from alphaloom.ledger.records import StatusChange
from alphaloom.risk import (
    POLICY_FILE,
    BookState,
    Policy,
    PolicyException,
    RiskLimits,
    Standing,
    decide,
    read_policy,
    read_standings,
)
from alphaloom.risk.policy import ADDING
from alphaloom.risk.signal import RiskError, Signal

from .conftest import KNOWN, NOW, facts

Make = Callable[..., Signal]
Book = Callable[..., BookState]
PROVEN = KNOWN["f0"]
COMBINATION = Standing("c0", "accepted", similarity_bp=300, status="live", members=("f0", "f1"))


def refusals(signal: Signal, state: BookState, policy: Policy, **standings: Standing) -> tuple[str, ...]:
    """Return what refuses one signal."""
    return decide([signal], state, policy, NOW, standings).rulings[0].refusals


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"verdict": "unproven"}, "proven"),
        ({"verdict": "by_hand"}, "proven"),
        ({"verdict": "watchlist"}, "proven"),
        ({"similarity_bp": 8_501}, "original"),
        ({"similarity_bp": None}, "original"),
        ({"status": "retired"}, "alive"),
        ({"status": ""}, "alive"),
        ({"contained": False}, "contained"),
        ({"leak_alarm": True}, "unalarmed"),
    ],
)
def test_each_rule_of_evidence_refuses_by_name_and_lets_reductions_pass(
    signal: Make, state: Book, changed: dict[str, Any], rule: str
) -> None:
    standing = replace(PROVEN, **changed)
    (ruling,) = decide([signal()], state(), Policy(), NOW, {"f0": standing}).rulings
    assert ruling.refusals == (rule,)
    assert next(check.about for check in ruling.checks if check.rule == rule) == "f0"
    assert refusals(signal("AAA", 50), state(positions={"AAA": 100}), Policy(), f0=standing) == ()


def test_at_its_limit_a_likeness_passes_and_a_review_counts_where_it_is_asked_for(signal: Make, state: Book) -> None:
    assert refusals(signal(), state(), Policy(), f0=replace(PROVEN, similarity_bp=8_500)) == ()
    asked = Policy(require_review=True)
    assert refusals(signal(), state(), asked, f0=PROVEN) == ("reviewed",)
    assert refusals(signal(), state(), asked, f0=replace(PROVEN, review="refused")) == ("reviewed",)
    assert refusals(signal(), state(), asked, f0=replace(PROVEN, review="approved")) == ()


def test_evidence_that_the_ledger_does_not_hold_is_refused_by_every_rule(signal: Make, state: Book) -> None:
    assert {"proven", "original", "alive"} <= set(
        refusals(signal(evidence="no-such-factor"), state(), Policy(), f0=PROVEN)
    )
    assert "proven" in refusals(signal(evidence="f0, nobody"), state(), Policy(), f0=PROVEN)


def test_of_a_combination_every_member_counts_and_the_worst_originality(signal: Make, state: Book) -> None:
    asked, known = signal(evidence="c0"), {"c0": COMBINATION, "f0": PROVEN}
    assert refusals(asked, state(), Policy(), **known, f1=replace(PROVEN, factor_id="f1", verdict="member")) == ()
    copy = replace(PROVEN, factor_id="f1", similarity_bp=9_000)
    assert refusals(asked, state(), Policy(), **known, f1=copy) == ("original",)
    assert "proven" in refusals(asked, state(), Policy(), **known), "a member that the ledger does not hold"


def test_an_exception_holds_for_one_rule_of_one_factor_until_its_day(signal: Make, state: Book) -> None:
    by_hand = replace(PROVEN, verdict="by_hand", similarity_bp=None)

    def policy(*rules: str, until: date = NOW, evidence: str = "f0") -> Policy:
        owned = {"evidence": evidence, "reason": "textbook", "owner": "Ada", "until": until}
        return Policy(exceptions=tuple(PolicyException.model_validate({"rule": rule, **owned}) for rule in rules))

    assert refusals(signal(), state(), policy("proven", "original"), f0=by_hand) == ()
    assert refusals(signal(), state(), policy("proven"), f0=by_hand) == ("original",)
    assert refusals(signal(), state(), policy("proven", "original", evidence="f1"), f0=by_hand) == (
        "proven",
        "original",
    )
    shown = replace(by_hand, factor_id="f0123456789abcdef")
    start = policy("proven", "original", evidence="f01234567")
    assert refusals(signal(evidence="f0123456789abcdef"), state(), start, f0123456789abcdef=shown) == ()
    late = policy("proven", "original", until=date(2020, 3, 1))
    assert refusals(signal(), state(), late, f0=by_hand) == ("proven", "original")


@pytest.mark.parametrize("changed", [{"similarity_bp": 0.5}, {"leak_alarm": 1}, {"trial": -1}, {"verdict": None}])
def test_a_malformed_standing_does_not_come_to_be(changed: dict[str, Any]) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "standing"):
        replace(PROVEN, **changed)


NUMBERS = [name for name, field in RiskLimits.model_fields.items() if field.annotation is int]
LIMITS = st.builds(
    lambda numbers, switch, review, restricted, admitted: RiskLimits.model_validate(
        {**numbers, "kill_switch": switch, "require_review": review, "restricted": restricted, "admitted": admitted}
    ),
    st.dictionaries(st.sampled_from(NUMBERS), st.integers(0, 30_000)),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from(["AAA", "BBB"]), unique=True),
    st.lists(st.sampled_from(["accepted", "member", "by_hand"]), unique=True),
)
POLICIES = LIMITS.map(lambda limits: Policy.model_validate(limits.model_dump()))
STANDINGS = st.builds(
    lambda verdict, share, review, status, alarm: {
        "f0": Standing("f0", verdict, similarity_bp=share, review=review, status=status, leak_alarm=alarm)
    },
    st.sampled_from(["accepted", "by_hand", "unproven"]),
    st.sampled_from([None, 0, 5_000, 9_000]),
    st.sampled_from(["", "approved"]),
    st.sampled_from(["live", "decaying", "retired"]),
    st.booleans(),
)


@given(POLICIES, LIMITS, STANDINGS)
def test_a_campaign_can_only_tighten_the_policy(own: Policy, asked: RiskLimits, standings: dict[str, Standing]) -> None:
    tightened, notes = own.tightened(asked)
    signals = [Signal(asset, 3_000_000, 2_000_000, 4_000_000, 5, "test", "f0", NOW) for asset in ("AAA", "BBB")]
    state = BookState({}, dict.fromkeys(("AAA", "BBB"), facts()), 10_000, 10_000)
    before = {item.signal for item in decide(signals, state, own, NOW, standings).approved}
    assert {item.signal for item in decide(signals, state, tightened, NOW, standings).approved} <= before
    looser = [
        name
        for name in NUMBERS
        if name in asked.model_fields_set and name not in ADDING and getattr(asked, name) > getattr(own, name)
    ]
    assert {note.split(":")[0] for note in notes} >= {f"risk.{name}" for name in looser}
    assert own.tightened(RiskLimits()) == (own, ()), "what a file does not name changes nothing"


def test_the_policy_is_a_file_of_the_workspace(tmp_path: Path) -> None:
    assert read_policy(tmp_path) == Policy()
    (tmp_path / POLICY_FILE).write_text("gross_cap_bp: 15000\nrestricted: [XYZ]\n")
    assert read_policy(tmp_path) == Policy(gross_cap_bp=15_000, restricted=("XYZ",))
    (tmp_path / POLICY_FILE).write_text("gros_cap_bp: 15000\n")
    with pytest.raises(SettingsError, match="gros_cap_bp"):
        read_policy(tmp_path)


WINDOW = WindowKey("data", "2014-01-02", "2014-12-30", ("AAA", "BBB"))
REASONS = [
    {"step": "originality", "passed": True, "message": "shares rank", "numbers": {"ratio": 0.33333, "most": 0.85}},
    {"step": "redundancy", "passed": True, "message": "", "numbers": {"rank_correlation": -0.4, "most": 0.7}},
]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return a ledger with an accepted factor, an accepted combination of two members, and one added by hand."""
    with Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as book:
        settings = {"evidence": {"leak_rank_ic": 0.08, "acknowledged": []}, "approve": False}
        book.runs.start(Run("run", {"settings": settings}, 7, "data", "2026-01-01"))
        for number, name in enumerate(("fa", "fc"), 1):
            trial = book.trials.open(Look("run", name, WINDOW))
            book.trials.close(trial.id, {"passed": True})
            figures = {"trial": number, "selection": {"rank_ic": 0.03}}
            book.verdicts.add(VerdictRow("run", name, "accepted", REASONS, figures))
        book.events.record("run", "set", "fc", ["fm", "fn"])
        origins = {"fa": "accepted", "fc": "accepted", "fm": "member", "fn": "member", "fh": "by_hand"}
        for name, origin in origins.items():
            book.library.add(LibraryRow(name, "rank(close)", "rank(close)", "h", "run", {"warnings": []}, origin))
        yield book


def test_the_record_says_verdict_trial_originality_and_nearest(ledger: Ledger) -> None:
    found = read_standings(ledger, "fa")["fa"]
    assert (found.verdict, found.trial, found.similarity_bp, found.nearest, found.correlation_bp, found.status) == (
        "accepted", 1, 3_334, "shares rank", 4_000, "live")  # fmt: skip  # a table
    assert len(found.digest) == 64
    assert {name: one.verdict for name, one in read_standings(ledger, "fc").items()} == {
        "fc": "accepted", "fm": "member", "fn": "member"}  # fmt: skip  # a table
    by_hand = read_standings(ledger, "fh")["fh"]
    assert (by_hand.verdict, by_hand.similarity_bp) == ("by_hand", None)
    assert read_standings(ledger, "no-such-factor") == {}


def damage(ledger: Ledger, statement: str) -> None:
    """Change the record as somebody with a database shell would, who takes the guards away first."""
    with closing(sqlite3.connect(ledger.workspace / "ledger.sqlite")) as shell, shell:
        for (name,) in shell.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            shell.execute(f"DROP TRIGGER {name}")
        assert shell.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("DELETE FROM verdicts WHERE factor_id = 'fc'", "proven"),
        ("DELETE FROM outcomes", "proven"),
        ("DELETE FROM library WHERE factor_id = 'fn'", "proven"),
        ("UPDATE verdicts SET body = replace(body, '0.33333', '0.99')", "original"),
        ("UPDATE verdicts SET body = replace(body, '\"rank_ic\":0.03', '\"rank_ic\":0.2')", "unalarmed"),
        ("UPDATE library SET body = replace(body, '\"warnings\":[]', '\"warnings\":[{\"code\":\"uncontained\"}]')",
         "contained"),
    ],
)  # fmt: skip  # a table
def test_a_damaged_record_refuses(ledger: Ledger, signal: Make, state: Book, statement: str, rule: str) -> None:
    asked = signal(evidence="fc")
    assert refusals(asked, state(), Policy(), **read_standings(ledger, "fc")) == ()
    damage(ledger, statement)
    assert rule in refusals(asked, state(), Policy(), **read_standings(ledger, "fc"))


def test_a_retired_member_refuses(ledger: Ledger, signal: Make, state: Book) -> None:
    ledger.library.record(standings=[StatusChange("fm", "k", "retired", "hand", "worn out", "2015-01-02")])
    assert refusals(signal(evidence="fc"), state(), Policy(), **read_standings(ledger, "fc")) == ("alive",)
