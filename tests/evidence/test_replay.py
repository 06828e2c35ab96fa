"""Verdicts run again: from the ledger alone they are the same, and every edit of the record is found."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation import Evaluator
from alphaloom.evaluation.checks.verification import find_loose_ends, replay_on_panel
from alphaloom.evidence.archive import RunArchive
from alphaloom.evidence.gate.trial_evidence import TrialEvidence, build_verdict, decide_trial
from alphaloom.evidence.replay import TOO_OLD_MESSAGE, Replay, replay_verdict
from alphaloom.evidence.settings import complete_settings
from alphaloom.ledger import Ledger, VerdictRow

from .lab import KNOWN, SMALL, Lab, market, read

RUN = "run"
JUNK = ("rank(ts_skew(volume, 30)) * rank(open)", "ts_kurt(high / low, 25)")
SET = ("ts_rsquare(cap / volume, 21)", "rank(ts_argmax(volume, 12)) - rank(ts_argmin(low, 15))")
Edit = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Evaluator]:
    """Return a workspace with a verdict of each kind: accepted, rejected on selection, a set, refused before a look."""
    folder = tmp_path_factory.mktemp("judged") / "w"
    with read(folder) as ledger:
        lab = Lab.open(ledger, RUN, market(1, names=120, planted=True), SMALL)
        assert lab.judged(KNOWN).word == "accepted"
        assert lab.judged(JUNK[0]).trial == 2
        assert lab.judged(JUNK[1], direction=-lab.direction(JUNK[1])).trial is None
        assert lab.evaluator.submissions.submit_set([lab.scored(text) for text in SET]).trial == 3
        ledger.runs.finish(RUN, "done")
        return folder, lab.evaluator


@pytest.fixture
def workspace(judged: tuple[Path, Evaluator], tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged[0], tmp_path / "copy"))


@pytest.fixture
def archive(workspace: Path) -> Iterator[RunArchive]:
    with read(workspace) as ledger:
        yield opened(ledger)


def opened(ledger: Ledger) -> RunArchive:
    rules = {"settings": {"evidence": SMALL.model_dump(mode="json")}}
    return RunArchive(ledger, replace(ledger.runs.find(RUN), config=rules))


def replays(workspace: Path) -> list[Replay]:
    with read(workspace) as ledger:
        archive = opened(ledger)
        return [replay_verdict(archive, row) for _, row in sorted(archive.verdicts.items())]


def changed(workspace: Path) -> set[str]:
    """Return every field that differs now, in any verdict or in the run's record."""
    with read(workspace) as ledger:
        ends = [difference.field for difference in find_loose_ends(opened(ledger))]
    return {difference.field for one in replays(workspace) for difference in one.differs} | {*ends}


def forge(workspace: Path, table: str, where: str, edit: Edit) -> None:
    """Change the record under one row as somebody would who owns the disk: without the triggers."""
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as connection, connection:
        connection.execute(f"DROP TRIGGER {table}_no_update")
        ((body,),) = connection.execute(f"SELECT body FROM {table} WHERE {where}").fetchall()
        record = json.loads(body)
        edit(record)
        connection.execute(f"UPDATE {table} SET body = ? WHERE {where}", (json.dumps(record),))


def name_of(workspace: Path, trial: int) -> str:
    with read(workspace) as ledger:
        return str(ledger.trials.all()[trial - 1].subject)


def test_every_kind_of_verdict_comes_out_the_same_from_the_ledger_alone(workspace: Path) -> None:
    again = replays(workspace)
    assert sorted(one.verdict for one in again) == ["accepted", "rejected", "rejected", "rejected"]
    assert {one.trial for one in again} == {1, 2, 3, None}
    assert [(one.word, one.differs, one.unread) for one in again] == [("same", (), ())] * 4
    assert changed(workspace) == set()


def test_the_panel_says_the_same(judged: tuple[Path, Evaluator], archive: RunArchive) -> None:
    for row in archive.verdicts.values():
        before = replay_verdict(archive, row)
        assert replay_on_panel(archive, judged[1], row, before) == before


def set_to(*path: str | int, value: Any) -> Edit:
    def edit(record: dict[str, Any]) -> None:
        at: Any = record
        for step in path[:-1]:
            at = at[step]
        assert at[path[-1]] != value
        at[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (("p_value",), 0.0001, "look.p_value"),
        (("level",), 0.5, "look.level"),
        (("passed",), True, "look.passed"),
        (("watch",), True, "look.watch"),
        (("sign",), 7, "look.sign"),
        (("discoveries",), [], "look.discoveries_before"),
        (("discoveries_before",), 0, "look.discoveries_before"),
        (("ties",), [{"later": 2, "earlier": 1, "members": True, "rank_correlation": None}], "look.ties"),
        (("ties",), [{"later": 2, "earlier": 1, "members": False, "rank_correlation": 0.1}], "look.discoveries"),
        (("deflated_sharpe", "by_trials"), 0.99, "look.deflated_sharpe.by_trials"),
        (("selection", "rank_ic"), 0.07, "selection.rank_ic"),
        (("selection", "turnover"), 0.07, "selection.turnover"),
        (("seen",), "0" * 64, "look.seen"),
    ],
)
def test_an_edited_outcome_is_found(workspace: Path, path: tuple[str, ...], value: Any, found: str) -> None:
    forge(workspace, "outcomes", "trial = 2", set_to(*path, value=value))
    assert found in changed(workspace)


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (("verdict",), "accepted", "verdict"),
        (("reasons", 8, "passed"), True, "reasons.statistics.passed"),
        (("reasons", 8, "numbers", "p_value"), 1e-9, "reasons.statistics.numbers.p_value"),
        (("reasons", 4, "numbers", "ratio"), 0.9, "reasons.originality.passed"),
        (("reasons", 4, "numbers", "most"), 0.99, "reasons.originality.numbers.most"),
        (("reasons", 5, "numbers", "rank_correlation"), -0.9, "reasons.redundancy.passed"),
        (("reasons", 3, "numbers", "days"), 0.1, "reasons.support.passed"),
        (("reasons", 2, "numbers", "nodes"), 1, "reasons.complexity.numbers.nodes"),
        (("metrics", "trial"), 9, "trial"),
        (("metrics", "selection", "t"), 9.0, "metrics.selection.t"),
    ],
)
def test_an_edited_verdict_is_found(workspace: Path, path: tuple[str | int, ...], value: Any, found: str) -> None:
    forge(workspace, "verdicts", f"factor_id = '{name_of(workspace, 2)}'", set_to(*path, value=value))
    assert found in changed(workspace)


def test_a_reason_that_was_taken_away_is_missed(workspace: Path) -> None:
    row = next(one for one in replays(workspace) if one.trial is None)
    forge(workspace, "verdicts", f"factor_id = '{row.factor_id}'", lambda body: body["reasons"].pop())
    assert "reasons.alignment" in changed(workspace)


@pytest.mark.parametrize(
    ("table", "where", "found"),
    [
        ("trials", "id = 1", "look.number"),
        ("outcomes", "trial = 2", "trial"),
        ("verdicts", "json_extract(body, '$.metrics.trial') = 2", "trial 2"),
        ("evaluations", "json_extract(body, '$.text') LIKE '%ts_skew%'", "record"),
    ],
)
def test_a_row_that_was_taken_away_is_missed(workspace: Path, table: str, where: str, found: str) -> None:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as connection, connection:
        connection.execute(f"DROP TRIGGER {table}_no_delete")
        assert connection.execute(f"DELETE FROM {table} WHERE {where}").rowcount == 1
    assert found in changed(workspace)


def test_a_renumbered_trial_and_a_formula_that_was_swapped_are_found(workspace: Path) -> None:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as connection, connection:
        connection.execute("DROP TRIGGER trials_no_update")
        connection.execute("UPDATE trials SET number = 1, prior = 0 WHERE id = 2")
    forge(workspace, "verdicts", "json_extract(body, '$.metrics.trial') = 2", set_to("metrics", "trial", value=1))
    forge(
        workspace, "evaluations", "json_extract(body, '$.text') LIKE '%ts_skew%'", set_to("text", value="rank(volume)")
    )
    assert changed(workspace) >= {"look.number", "id"}


def test_a_library_row_without_a_proof_is_found(workspace: Path) -> None:
    forge(workspace, "verdicts", "json_extract(body, '$.verdict') = 'accepted'", set_to("verdict", value="watchlist"))
    assert {"library", "verdict"} <= changed(workspace)
    forge(workspace, "library", "TRUE", set_to("origin", value="promoted"))  # from a watchlist it may come
    assert "library" not in changed(workspace)


def test_bytes_that_were_changed_on_the_disk_are_found(workspace: Path) -> None:
    with read(workspace) as ledger:
        kept = str((ledger.trials.all()[1].outcome or {})["seen"])
    (workspace / "objects" / kept[:2] / kept[2:]).write_bytes(b"{}")
    (broken,) = [one for one in replays(workspace) if one.differs]
    assert [difference.field for difference in broken.differs] == ["look.seen"]
    assert "does not hold what its name says" in broken.differs[0].recomputed


def forged_look(workspace: Path, *, everywhere: bool) -> None:
    """Put a better series in place of the one that was seen; `everywhere`, with all that follows from it."""
    with read(workspace) as ledger:
        trial = ledger.trials.all()[1]
        seen = TrialEvidence.read(ledger.objects.get(str((trial.outcome or {})["seen"])))
        shift = 0.002 * seen.asked["sign"]
        assert seen.added is not None  # it was judged beside what was accepted before
        better = replace(seen, rank_ic=seen.rank_ic + shift, added=seen.added + shift)
        if everywhere:
            from alphaloom.evidence.newey_west import newey_west_t
            from alphaloom.evidence.scoring.metrics import round_significant

            test = newey_west_t(better.rank_ic, seen.lag)
            better = replace(
                better, sheet={**seen.sheet, "rank_ic": round_significant(test.mean), "t": round_significant(test.t)}
            )
        kept = ledger.objects.put(better.body())
        new: dict[str, Any] = {"seen": kept, "selection": dict(better.sheet)}
        outcome = dict(trial.outcome or {}) | new
        if everywhere:
            outcome |= decide_trial(better, trial.number, 1)
            verdict = build_verdict(replace(trial, outcome=outcome), []).row(RUN)
    forge(workspace, "outcomes", "trial = 2", lambda record: record.update(outcome))
    if everywhere:
        where = "json_extract(body, '$.metrics.trial') = 2"
        forge(workspace, "verdicts", where, lambda record: rewrite(record, verdict))


def rewrite(record: dict[str, Any], verdict: VerdictRow) -> None:
    """Make a verdict say what a forged outcome says."""
    record["metrics"]["selection"] = dict(verdict.metrics["selection"])
    record["reasons"][-1] = dict(verdict.reasons[-1])


def test_another_series_is_found_by_what_follows_from_it(workspace: Path) -> None:
    forged_look(workspace, everywhere=False)
    assert {"series.rank_ic", "series.t", "look.p_value"} <= changed(workspace)


def test_a_forgery_that_agrees_with_itself_is_found_by_the_panel(
    judged: tuple[Path, Evaluator], workspace: Path
) -> None:
    forged_look(workspace, everywhere=True)
    assert changed(workspace) == set()
    with read(workspace) as ledger:
        archive = opened(ledger)
        row = archive.verdicts[name_of(workspace, 2)]
        again = replay_on_panel(archive, judged[1], row, replay_verdict(archive, row))
    assert {
        "panel: daily RankIC[0]",
        "panel: selection.rank_ic",
        "panel: selection.t",
    } <= {difference.field for difference in again.differs}


def test_a_look_without_its_series_cannot_be_run_again(workspace: Path) -> None:
    """As in workspaces of before; what was not kept must not read as the same."""
    forge(workspace, "outcomes", "trial = 2", lambda record: [record.pop("seen"), record.pop("discoveries")])
    (old,) = [one for one in replays(workspace) if one.word != "same"]
    assert (old.word, old.missing, old.differs) == ("cannot be replayed", TOO_OLD_MESSAGE, ())


def test_what_was_seen_is_kept_to_the_last_bit() -> None:
    rng = np.random.default_rng(2)
    series = np.append(rng.standard_normal(50), np.nan)
    ratios = tuple(map(float, rng.standard_normal(7)))
    seen = TrialEvidence(
        {"sign": 1, "level": 0.05}, 10, series, series[::-1].copy(), ratios, 300, 100, {"rank_ic": None}
    )
    again = TrialEvidence.read(seen.body())
    assert np.array_equal(again.rank_ic, seen.rank_ic, equal_nan=True)
    assert np.array_equal(again.net, seen.net, equal_nan=True)
    assert (again.sharpes, again.asked, again.body()) == (ratios, seen.asked, seen.body())


def test_a_record_of_an_older_version_comes_out_the_same(workspace: Path) -> None:
    def without(told: dict[str, Any]) -> None:
        del told["power"]

    def as_it_was(record: dict[str, Any]) -> None:
        without(record["metrics"]["selection"])
        record["reasons"][-1]["message"] = record["reasons"][-1]["message"].partition(";")[0]

    forge(workspace, "outcomes", "trial = 2", without)
    forge(workspace, "verdicts", "json_extract(body, '$.metrics.trial') = 2", as_it_was)
    assert changed(workspace) == set()


def test_a_run_that_could_not_choose_is_read_as_it_judged() -> None:
    old = {"horizon_days": 5, "returns": "residual"}
    assert (complete_settings(old)["test"], complete_settings(old)["label_scale"]) == ("labels", "none")
    assert complete_settings(old | {"test": "held"})["test"] == "held"


def test_a_look_with_another_series_than_the_settings_test_is_found(workspace: Path) -> None:
    with read(workspace) as ledger:
        seen = TrialEvidence.read(ledger.objects.get(str((ledger.trials.all()[1].outcome or {})["seen"])))
        kept = ledger.objects.put(replace(seen, held=seen.rank_ic).body())
    forge(workspace, "outcomes", "trial = 2", lambda record: record.update(seen=kept))
    assert "look.held" in changed(workspace)
