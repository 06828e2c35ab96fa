"""Successors: what a run is told of decay, and what a successor is judged on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation import recall_facts
from alphaloom.evaluation.admission import add_by_hand, retire_factor
from alphaloom.evaluation.checks.verification import replay_on_panel
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.archive import RunArchive
from alphaloom.evidence.errors import LibraryRefused
from alphaloom.evidence.gate.succession import read_decaying
from alphaloom.evidence.originality.redundancy import rank_correlation
from alphaloom.evidence.replay import replay_verdict
from alphaloom.evidence.settings import LibrarySettings
from alphaloom.factors import Engine, parse
from alphaloom.ledger import Ledger
from alphaloom.library.condition import Condition
from alphaloom.library.entries import find_entry
from alphaloom.library.watch import LibraryWatch
from alphaloom.market import Panel, Plant, SyntheticConfig, simulate

from .lab import KNOWN, SMALL, Lab, engine, known_values

pytestmark = pytest.mark.integration

CUT, ALL = 600, 900
FRESH = "rank(ts_rank(volume, 20))"
HEIR = f"{KNOWN} + 1.1 * {FRESH}"
COPY = f"{KNOWN} + 0.4 * rank(ts_kurt(high / low, 25))"
RULES = LibrarySettings(flag_days=126, flag_p=0.2, retire_e=0.0)
EASY = SMALL.model_copy(update={"level": 0.4, "library": RULES, "max_similarity": 0.95, "published": False})
"""A level at which what is strong is accepted on 200 days; `FRESH` ranks the names like a published factor."""


def fresh_values(panel: Panel) -> Any:
    return Engine(panel).evaluate([FRESH])[0]


@cache
def whole() -> Panel:
    """Return days in which `KNOWN` is strong up to the end of the first panel, and `FRESH` throughout."""
    plants = [Plant(KNOWN, known_values, 0.08, end=CUT / ALL), Plant(FRESH, fresh_values, 0.07)]
    return simulate(SyntheticConfig(seed=5, days=ALL, names=120), plants).panel


@cache
def first() -> Panel:
    return whole().rows(0, CUT)


def decayed(ledger: Ledger, settings: EvidenceSettings = EASY) -> str:
    """Accept `KNOWN` on the first days, watch it decay, and return its id."""
    name = Lab.open(ledger, "run", first(), settings).judged(KNOWN).factor_id
    LibraryWatch(ledger, whole(), "small", settings).run()
    assert find_entry(ledger, name).status == "decaying"
    return name


def later(ledger: Ledger, run: str = "later", settings: EvidenceSettings = EASY) -> Lab:
    """Return a further run that has begun."""
    made = Lab.open(ledger, run, first(), settings)
    made.evaluator.library.record_start()
    return made


def step(verdict: Any, name: str) -> Any:
    return next(reason for reason in verdict.reasons if reason.step == name)


def test_a_run_is_told_what_decays_without_a_figure(ledger: Ledger) -> None:
    name = decayed(ledger)
    facts = recall_facts(later(ledger).evaluator, 30)
    (row,) = facts["decaying"]
    assert set(row) == {"id", "text", "mechanism", "hypothesis", "since"}
    assert (row["id"], row["mechanism"], row["hypothesis"]) == (name, "control", "a formula of the tests")
    assert row["since"] == find_entry(ledger, name).history[-1].day > str(first().dates[-1])
    figures = [sighting.rank_ic for sighting in ledger.library.sightings(name) if sighting.rank_ic is not None]
    assert not any(f"{abs(figure):.4f}" in str(row) for figure in figures)


def test_what_a_run_is_told_stands_from_its_beginning(ledger: Ledger) -> None:
    run = later(ledger, "early")
    decayed(ledger)
    run.evaluator.library.record_start()
    assert recall_facts(run.evaluator, 30)["decaying"] == []
    assert read_decaying(ledger, "run of long ago") == []


def test_a_flag_of_days_that_the_gate_holds_is_not_told(ledger: Ledger) -> None:
    """A workspace that watched days which a later data set seals says nothing of them."""
    decayed(ledger)
    evaluator = later(ledger).evaluator
    windows = evaluator.windows
    from alphaloom.library.entries import list_decaying

    assert list_decaying(ledger, windows)
    sealed = replace(windows.sealed, last_day=str(whole().dates[-1]))
    assert list_decaying(ledger, replace(windows, sealed=sealed)) == []
    elsewhere = replace(windows.boundaries, names=tuple(f"X{n}" for n in range(50)))
    assert list_decaying(ledger, replace(windows, boundaries=elsewhere)) == []


def test_a_successor_may_resemble_what_it_succeeds_and_nothing_else(ledger: Ledger) -> None:
    name = decayed(ledger)
    old, heir = engine(first()).evaluate([KNOWN, HEIR])
    assert abs(rank_correlation(old, heir, later(ledger, "look").evaluator.windows.search)) > 0.6
    strict = EASY.model_copy(update={"max_redundancy": 0.6})
    plain = later(ledger, "plain", strict).judged(HEIR)
    assert not step(plain, "redundancy").passed
    named = later(ledger, "named", strict).judged(HEIR, succeeds=name)
    assert step(named, "redundancy").passed
    assert step(named, "redundancy").numbers["succeeds"] == name
    assert named.word == "accepted", [reason.message for reason in named.reasons]
    third = later(ledger, "third", strict).judged(f"{HEIR} + 0.2 * rank(ts_kurt(high / low, 25))", succeeds=name)
    assert not step(third, "redundancy").passed, "the successor that came in counts"


def test_only_what_is_flagged_may_be_succeeded(ledger: Ledger) -> None:
    strict = EASY.model_copy(update={"max_redundancy": 0.6})
    name = Lab.open(ledger, "run", first(), EASY).judged(KNOWN).factor_id
    verdict = later(ledger, "eager", strict).judged(HEIR, succeeds=name)
    assert not step(verdict, "redundancy").passed


def test_a_copy_says_nothing_beyond_and_is_redundant_as_ever(ledger: Ledger) -> None:
    name = decayed(ledger)
    verdict = later(ledger, "copy").judged(COPY, succeeds=name)
    assert not step(verdict, "redundancy").passed
    assert verdict.word == "rejected"
    assert ledger.trials.all()[-1].subject == name, "no look was spent"


def test_selection_judges_what_is_left_and_the_record_can_be_run_again(ledger: Ledger) -> None:
    name = decayed(ledger)
    run = later(ledger, "named")
    verdict = run.judged(HEIR, succeeds=name)
    evaluator, window = run.evaluator, run.evaluator.windows.selection
    values = engine(first()).evaluate([HEIR])[0]
    left = evaluator.submissions.gate.succession.beyond(values, name, window)
    assert left is not None
    assert abs(rank_correlation(left, engine(first()).evaluate([KNOWN])[0], window)) < 0.05
    sheet = evaluator.scorer.score(left, window, 1)
    archive = RunArchive(ledger, ledger.runs.find("named"))
    row = archive.verdicts[verdict.factor_id]
    told = row.metrics["selection"]
    assert told["rank_ic"] == pytest.approx(sheet.rank_ic)
    assert told["rank_ic"] != pytest.approx(evaluator.scorer.score(values, window, 1).rank_ic)
    again = replay_on_panel(archive, evaluator, row, replay_verdict(archive, row))
    assert list(again.differs) == []


def test_a_successor_takes_the_place_of_what_decayed(ledger: Ledger) -> None:
    name = decayed(ledger)
    other = add_by_hand(ledger, parse(FRESH), "2029-01-01").entry
    heir = later(ledger, "named").judged(HEIR, succeeds=name).factor_id
    with pytest.raises(LibraryRefused, match="no successor"):
        retire_factor(ledger, name, "a stranger takes over", "2030-01-01", other.factor_id)
    with pytest.raises(LibraryRefused, match="only what decays"):
        retire_factor(ledger, heir, "too early", "2030-01-01", name)
    entry = retire_factor(ledger, name, "its successor is proven", "2030-01-01", heir)
    assert (entry.status, entry.successor) == ("retired", heir)
    assert entry.history[-1].reason == "its successor is proven"
    shown = Condition.of(find_entry(ledger, heir), ledger, RULES, 0).full()
    assert (shown["succeeds"], shown["successor"]) == (name, None)
    assert Condition.of(entry, ledger, RULES, 0).full()["successor"] == heir
    assert np.isfinite(shown["selection_rank_ic"])
