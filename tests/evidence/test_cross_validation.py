"""Splits against skfolio's, no label across the line, and paths that cover every day once."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from skfolio.model_selection import CombinatorialPurgedCV

from alphaloom.evidence.multiple_testing.cross_validation import choose_and_test, split_days

shapes = st.tuples(st.integers(3, 8), st.integers(2, 5), st.integers(0, 4), st.integers(0, 4), st.integers(60, 130))


def test_six_groups_of_which_two_are_tested_make_fifteen_splits_and_five_paths() -> None:
    folds = split_days(300, 5, 5, groups=6, tested=2)
    assert (len(folds.splits), folds.path_count) == (15, 5)


@given(shapes)
def test_splits_and_paths_are_those_of_skfolio(shape: tuple[int, int, int, int, int]) -> None:
    groups, tested, purge, embargo, days = shape
    if tested >= groups or purge + embargo >= days // groups - 1:
        return
    mine = split_days(days, purge, embargo, groups, tested)
    theirs = CombinatorialPurgedCV(n_folds=groups, n_test_folds=tested, purged_size=purge, embargo_size=embargo)
    for split, (train, tests) in zip(mine.splits, theirs.split(np.zeros((days, 1))), strict=True):
        assert np.array_equal(split.train, train)
        assert all(np.array_equal(a, b) for a, b in zip(split.tests, tests, strict=True))
    assert (len(mine.splits), mine.path_count) == (theirs.n_splits, theirs.n_test_paths)
    ours = [[int(path) for path in row if path >= 0] for row in mine.paths]
    assert ours == theirs.get_path_ids().tolist()


@given(shapes)
def test_no_label_reaches_across_the_line(shape: tuple[int, int, int, int, int]) -> None:
    groups, tested, purge, embargo, days = shape
    if tested >= groups or days // groups <= purge + embargo:
        return
    for split in split_days(days, purge, embargo, groups, tested).splits:
        tests = np.concatenate(split.tests)
        gap = split.train[:, None] - tests[None, :]
        assert np.abs(gap).min(initial=days) > purge  # a label of day t spans t to t + purge
        after = [day for day in split.train if any(0 < day - test[-1] <= purge + embargo for test in split.tests)]
        assert not after


def test_every_path_covers_every_day_once() -> None:
    folds = split_days(125, 3, 2)
    for path in range(folds.path_count):
        days = [
            test
            for split, row in zip(folds.splits, folds.paths, strict=True)
            for group, test in zip(split.groups, split.tests, strict=True)
            if row[group] == path
        ]
        assert sorted(np.concatenate(days).tolist()) == list(range(125))


@pytest.mark.parametrize(
    ("days", "purge", "embargo", "groups", "tested"),
    [(60, 5, 5, 6, 2), (100, 0, 0, 5, 5), (100, -1, 0, 5, 2), (100, 1, 1, 0, 1), (100, 1, 1, 5, 0)],
)
def test_what_cannot_be_divided_is_refused(days: int, purge: int, embargo: int, groups: int, tested: int) -> None:
    with pytest.raises(ValueError, match="groups"):
        split_days(days, purge, embargo, groups, tested)


def test_the_best_of_noise_is_worth_nothing_on_days_that_the_choice_did_not_know() -> None:
    inside, outside = [], []
    for seed in range(20):
        rank_ic = np.random.default_rng(seed).standard_normal((360, 20)) * 0.1
        choice = choose_and_test(rank_ic, rank_ic, split_days(360, 5, 5))
        inside.append(choice.inside)
        outside.append(np.mean(choice.rank_ic))
    assert np.mean(inside) > 0.01  # chosen because it looked good
    assert abs(np.mean(outside)) < 0.003  # what is left of it; less than zero if anything: its good days are used up


def test_a_real_candidate_is_chosen_and_keeps_its_worth() -> None:
    rng = np.random.default_rng(1)
    rank_ic = rng.standard_normal((360, 10)) * 0.1
    rank_ic[:, 4] += 0.05
    rank_ic[5:9, 4] = np.nan
    choice = choose_and_test(rank_ic, rank_ic * 0.01, split_days(360, 5, 5))
    assert choice.chosen == 1
    assert choice.inside == pytest.approx(0.05, abs=0.015)
    assert choice.rank_ic == pytest.approx([np.nanmean(rank_ic[:, 4])] * 5)
    assert all(ratio > 0.2 for ratio in choice.sharpe)


def test_labels_that_overlap_leak_without_purging() -> None:
    """A fast signal that is only noise in the days next to a test: purging takes the advantage away."""
    days, horizon = 240, 20
    gains: dict[int, list[float]] = {0: [], horizon: []}
    for seed in range(30):
        shocks = np.random.default_rng(seed).standard_normal((days + horizon, 30))
        rank_ic = np.stack([shocks[day : day + horizon].mean(axis=0) for day in range(days)])
        for purge, found in gains.items():
            found.append(float(np.mean(choose_and_test(rank_ic, rank_ic, split_days(days, purge, 0)).rank_ic)))
    assert np.mean(gains[0]) > np.mean(gains[horizon])


def test_a_candidate_that_never_varies_is_not_chosen() -> None:
    rank_ic = np.column_stack([np.full(120, 0.5), np.random.default_rng(2).standard_normal(120) - 0.1])
    choice = choose_and_test(rank_ic, np.zeros((120, 2)), split_days(120, 2, 2))
    assert choice.chosen == 1
    assert choice.inside < 0.3
    assert all(np.isnan(choice.sharpe))
