import os
from dataclasses import replace
from pathlib import Path

import pytest

from alphaloom.ledger import Ledger, LedgerConflict, LedgerError, Run, UnknownRun

SECOND = Run("20260103-quiet-otter", {"a": 1}, 2, "data", "2026-01-03")


@pytest.fixture
def two(ledger: Ledger) -> Ledger:
    ledger.runs.start(SECOND)
    return ledger


def test_starting_the_same_run_again_changes_nothing(two: Ledger) -> None:
    two.runs.start(SECOND)
    assert [run.id for run in two.runs.all()] == ["one", SECOND.id]
    assert two.runs.folder(SECOND.id).is_dir()


def test_another_run_under_the_same_id_is_refused(two: Ledger) -> None:
    with pytest.raises(LedgerConflict, match=r"runs: .* differs in seed"):
        two.runs.start(replace(SECOND, seed=3))


@pytest.mark.parametrize("name", ["latest", SECOND.id, "2026", SECOND.id[:-1]])
def test_a_run_is_found_by_what_a_person_types(two: Ledger, name: str) -> None:
    assert two.runs.find(name) == SECOND


def test_a_run_is_found_by_its_folder_however_it_is_written(two: Ledger) -> None:
    folder = two.runs.folder(SECOND.id)
    assert two.runs.find(folder) == SECOND
    assert two.runs.find(os.path.relpath(folder)) == SECOND
    assert two.runs.find(f"{folder}/") == SECOND


def test_a_folder_of_another_workspace_is_not_this_run(two: Ledger, tmp_path: Path) -> None:
    with pytest.raises(UnknownRun):
        two.runs.find(tmp_path / "elsewhere" / "runs" / SECOND.id)


def test_the_last_status_counts(two: Ledger) -> None:
    for status in ("interrupted", "running", "done", "done"):
        two.runs.finish(SECOND.id, status)
    assert two.runs.find("latest").status == "done"
    assert two.runs.find("one").status == "running"


def test_an_unknown_run_is_answered_with_the_nearest_and_the_recent_ones(two: Ledger) -> None:
    with pytest.raises(UnknownRun) as caught:
        two.runs.find("20260103-quiet-oter")
    assert str(caught.value) == (
        "no run '20260103-quiet-oter' in this workspace; allowed: 'latest', a run's id or the start of one, "
        "or its folder\nDid you mean 20260103-quiet-otter? Most recent: 20260103-quiet-otter, one."
    )
    assert caught.value.exit_code == 2


def test_the_start_of_two_runs_names_both(two: Ledger) -> None:
    two.runs.start(replace(SECOND, id="20260104-x"))
    with pytest.raises(UnknownRun, match="'202601' begins several runs; allowed: 20260103-quiet-otter, 20260104-x"):
        two.runs.find("202601")


@pytest.mark.parametrize("name", ["", "nothing", ".", "/", "a/b"])
def test_what_names_no_run_is_unknown(two: Ledger, name: str) -> None:
    with pytest.raises(UnknownRun):
        two.runs.find(name)


def test_finishing_or_requiring_an_unknown_run_is_refused(two: Ledger) -> None:
    with pytest.raises(UnknownRun):
        two.runs.finish("ghost", "done")
    with pytest.raises(UnknownRun):
        two.runs.require("on")
    two.runs.require("one")


@pytest.mark.parametrize("name", ["", "latest", "../up", "a/b", ".hidden", "ü", "x" * 101, "a\n"])
def test_an_id_that_could_not_be_a_folder_is_refused(two: Ledger, name: str) -> None:
    with pytest.raises(LedgerError):
        two.runs.start(replace(SECOND, id=name))
