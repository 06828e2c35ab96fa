from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.ledger import Boundaries, Ledger, LedgerError, Look, Opening, Run, WindowKey

WINDOW = WindowKey("data", "2019-01-01", "2020-12-31", ("A", "B", "C"))


def other(**changes: object) -> WindowKey:
    fields = {"dataset": "data", "first_day": "2019-01-01", "last_day": "2020-12-31", "names": ("A", "B", "C")}
    return WindowKey(**(fields | changes))  # type: ignore[arg-type]


def test_trials_are_numbered_from_one(ledger: Ledger) -> None:
    assert [ledger.trials.open(Look("one", f"f{i}", WINDOW)).number for i in range(3)] == [1, 2, 3]


def test_looks_made_elsewhere_count(ledger: Ledger) -> None:
    assert ledger.trials.open(Look("one", "f1", WINDOW, prior=40)).number == 41


def test_the_same_look_is_one_trial_whoever_asks(ledger: Ledger) -> None:
    ledger.runs.start(Run("two", {}, 1, "data", "2026"))
    first = ledger.trials.open(Look("one", "f1", WINDOW))
    assert ledger.trials.open(Look("two", "f1", WINDOW, prior=7)) == first
    assert len(ledger.trials.overlapping(WINDOW)) == 1


@pytest.mark.parametrize(
    ("window", "number"),
    [
        (other(dataset="one more day, another hash"), 2),
        (other(names=("C", "D")), 2),
        (other(first_day="2020-12-31", last_day="2024-12-31"), 2),
        (other(first_day="2021-01-01", last_day="2024-12-31"), 1),
        (other(names=("D", "E")), 1),
    ],
)
def test_only_a_shared_day_and_a_shared_name_count(ledger: Ledger, window: WindowKey, number: int) -> None:
    ledger.trials.open(Look("one", "f1", WINDOW))
    assert ledger.trials.open(Look("one", "f2", window)).number == number


def test_an_outcome_is_kept_once(ledger: Ledger) -> None:
    trial = ledger.trials.open(Look("one", "f1", WINDOW))
    assert trial.outcome is None
    assert ledger.trials.close(trial.id, {"p": 0.5}).outcome == {"p": 0.5}
    assert ledger.trials.close(trial.id, {"p": 0.001}).outcome == {"p": 0.5}
    assert ledger.trials.open(Look("one", "f1", WINDOW)).outcome == {"p": 0.5}


def test_a_trial_that_was_never_opened_cannot_be_closed(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="there is no trial 9"):
        ledger.trials.close(9, {})


days = st.dates(date(2020, 1, 1), date(2020, 1, 20))
windows = st.builds(
    lambda first, length, names: other(
        first_day=first.isoformat(), last_day=(first + timedelta(length)).isoformat(), names=tuple(sorted(names))
    ),
    days,
    st.integers(0, 10),
    st.sets(st.sampled_from("ABCD"), min_size=1),
)


@settings(max_examples=25)
@given(looks=st.lists(windows, max_size=6), numbered=st.integers(0, 3))
def test_the_number_is_one_plus_prior_plus_the_overlapping_trials(
    looks: list[WindowKey], numbered: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Ledger.open(tmp_path_factory.mktemp("w"), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        ledger.runs.start(Run("one", {}, 1, "data", "2026"))
        for index, window in enumerate(looks):
            before = [
                look
                for look in looks[:index]
                if look.first_day <= window.last_day
                and look.last_day >= window.first_day
                and set(look.names) & set(window.names)
            ]
            assert len(ledger.trials.overlapping(window)) == len(before)
            trial = ledger.trials.open(Look("one", f"f{index}", window, prior=numbered))
            assert trial.number == 1 + numbered + len(before)


def test_openings_are_numbered_over_all_runs_and_once_for_each(ledger: Ledger) -> None:
    ledger.runs.start(Run("two", {}, 1, "data", "2026"))
    assert ledger.trials.record_opening(Opening("one", WINDOW, "close")) == 1
    assert ledger.trials.record_opening(Opening("one", WINDOW, "close")) == 1
    assert ledger.trials.record_opening(Opening("two", other(dataset="grown", names=("A",)), "a person asked")) == 2
    assert [(opening.run, opening.number) for opening in ledger.trials.openings(WINDOW)] == [("one", 1), ("two", 2)]
    assert ledger.trials.openings(other(names=("Z",))) == []


def boundaries(dataset: str, names: tuple[str, ...], first: str, last: str) -> Boundaries:
    return Boundaries(dataset, names, first, "2016-01-01", "2016-01-09", "2017-01-01", "2017-01-09", last)


def test_the_first_campaign_fixes_the_boundaries_and_later_days_move_none(ledger: Ledger) -> None:
    fixed = boundaries("data", ("A", "B"), "2010-01-01", "2018-01-01")
    assert ledger.trials.fix_boundaries(fixed) == fixed
    grown = ledger.trials.fix_boundaries(boundaries("grown", ("B", "C"), "2011-01-01", "2019-01-01"))
    assert grown == replace(fixed, dataset="grown", names=("B", "C"))


def test_leaving_out_the_shared_name_frees_no_day(ledger: Ledger) -> None:
    fixed = ledger.trials.fix_boundaries(boundaries("data", ("A", "B"), "2010-01-01", "2018-01-01"))
    ledger.trials.fix_boundaries(boundaries("grown", ("B", "C"), "2011-01-01", "2019-01-01"))
    fewer = ledger.trials.fix_boundaries(boundaries("fewer", ("C",), "2011-01-01", "2019-01-01"))
    assert fewer == replace(fixed, dataset="fewer", names=("C",))


@pytest.mark.parametrize(("first", "shared"), [("2018-01-01", True), ("2018-01-02", False)])
def test_the_last_sealed_day_is_shared_and_the_day_after_is_not(ledger: Ledger, first: str, shared: bool) -> None:
    fixed = ledger.trials.fix_boundaries(boundaries("data", ("A", "B"), "2010-01-01", "2018-01-01"))
    later = boundaries("later", ("A", "B"), first, "2024-01-01")
    assert (ledger.trials.fix_boundaries(later) == replace(fixed, dataset="later")) is shared


def test_looking_at_boundaries_fixes_none(ledger: Ledger) -> None:
    seen = boundaries("data", ("A",), "2010-01-01", "2018-01-01")
    assert ledger.trials.fix_boundaries(seen, store=False) == seen
    later = boundaries("data", ("A",), "2012-01-01", "2019-01-01")
    assert ledger.trials.fix_boundaries(later) == later


def test_another_question_is_another_trial_and_declared_looks_stay(ledger: Ledger) -> None:
    first = ledger.trials.open(Look("one", "f", WINDOW, prior=50, question="a"))
    assert ledger.trials.open(Look("one", "f", WINDOW, question="a")).id == first.id
    second = ledger.trials.open(Look("one", "f", WINDOW, question="b"))
    assert (first.number, second.number, ledger.trials.prior(WINDOW)) == (51, 52, 50)


def test_other_names_have_boundaries_of_their_own(ledger: Ledger) -> None:
    ledger.trials.fix_boundaries(boundaries("data", ("A", "B"), "2010-01-01", "2018-01-01"))
    apart = boundaries("data", ("X", "Y"), "2012-01-01", "2019-01-01")
    assert ledger.trials.fix_boundaries(apart) == apart
