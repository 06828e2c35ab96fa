"""The library on new days: what counts as new, what is recorded once, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation.admission import add_by_hand, retire_factor
from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.errors import EvidenceError
from alphaloom.evidence.settings import LibrarySettings
from alphaloom.evidence.values.computing import Computing
from alphaloom.evidence.values.contained import DailyValues
from alphaloom.factors import parse
from alphaloom.ledger import Boundaries, Ledger, Run, Sighting, StatusChange
from alphaloom.library.condition import list_conditions
from alphaloom.library.entries import find_entry, list_entries
from alphaloom.library.observations import FactorReading
from alphaloom.library.watch import LibraryWatch
from alphaloom.market import Panel, Plant, SyntheticConfig, simulate

from ..evidence.lab import KNOWN, SMALL, Lab, engine, known_values, read, scorer

CUT, ALL = 500, 900
TWIN = f"ts_mean({KNOWN}, 2)"
EASY = SMALL.model_copy(update={"level": 0.4})
"""A level at which what is strong is accepted on 150 days."""
DREAM = SMALL.model_copy(update={"level": 1e-12})
"""A level that nothing reaches: what is strong is put on the watchlist."""


@cache
def whole(end: float = 1.0) -> Panel:
    """Return 900 days in which `KNOWN` is strong, up to a share of them."""
    config = SyntheticConfig(seed=5, days=ALL, names=120)
    return simulate(config, [Plant(KNOWN, known_values, 0.08, end=end)]).panel


@cache
def first(stop: int, end: float = 1.0) -> Panel:
    return whole(end).rows(0, stop)


def judged(ledger: Ledger, settings: EvidenceSettings = EASY, text: str = KNOWN, end: float = 1.0) -> str:
    """Put one factor before the gate on the first 500 days and return its id."""
    return Lab.open(ledger, "run", first(CUT, end), settings).judged(text).factor_id


def watch(ledger: Ledger, panel: Panel, settings: EvidenceSettings = EASY, revised: str = "") -> list[FactorReading]:
    return LibraryWatch(ledger, panel, "small", settings).run(revised)


def seen(ledger: Ledger, factor: str) -> list[tuple[str, float | None]]:
    return [(one.day, one.rank_ic) for one in ledger.library.sightings(factor)]


def test_new_days_are_those_after_the_panel_with_a_whole_label(ledger: Ledger) -> None:
    name = judged(ledger)
    (sight,) = watch(ledger, first(600))
    days = [str(day) for day in whole().dates]
    assert [one.day for one in sight.new] == days[CUT : 600 - 6]
    values = engine(whole()).evaluate([KNOWN])[0]
    from alphaloom.factors import row_rank_correlation

    reference = row_rank_correlation(values, scorer(whole(), SMALL).label(5))[CUT : 600 - 6]
    assert [value for _, value in seen(ledger, name)] == pytest.approx(list(reference))


def test_known_days_under_later_dates_are_not_new(ledger: Ledger) -> None:
    """Moved by some years, all known days would come after the panel on which a factor was judged."""
    judged(ledger)
    panel = first(CUT)
    moved = replace(panel, dates=panel.dates + np.timedelta64(3_650, "D"))
    with pytest.raises(
        EvidenceError,
        check=lambda error: error.code == "panel_disagrees",
        match="this workspace knows them as those of 2011-12-02",
    ) as caught:
        watch(ledger, moved)
    assert caught.value.field == "--panel"
    assert ledger.library.standings() == []


def test_days_on_which_a_factors_code_failed_are_no_evidence(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    name = judged(ledger)
    plain = Computing.sweep

    def failing(self: Computing, expression: Any, edges: Any, since: int = 0) -> DailyValues:
        fault = {"stage": "python", "message": "ValueError: no", "day": "2011-12-20"}
        return replace(plain(self, expression, edges, since), fault=fault)

    monkeypatch.setattr(Computing, "sweep", failing)
    (reading,) = watch(ledger, first(600))
    assert "its code failed on these days: ValueError: no" in reading.lacking
    assert not reading.new
    assert seen(ledger, name) == []


def test_the_same_days_count_once(ledger: Ledger) -> None:
    name = judged(ledger)
    watch(ledger, first(700))
    before = (seen(ledger, name), ledger.library.standings())
    (sight,) = watch(ledger, first(700))
    assert (sight.new, sight.unlike, sight.lacking) == ([], [], "")
    (earlier,) = watch(ledger, first(600))
    assert earlier.new == []
    assert (seen(ledger, name), ledger.library.standings()) == before


@pytest.mark.parametrize(("settings", "end"), [(EASY, 0.5), (DREAM, 0.65)])
def test_watching_in_pieces_leaves_the_record_of_watching_at_once(
    tmp_path: Path, settings: EvidenceSettings, end: float
) -> None:
    rules = LibrarySettings(flag_days=126, flag_p=0.2, retire_e=2.0)
    asked = settings.model_copy(update={"library": rules})
    told = []
    for folder, stops in (("once", [ALL]), ("pieces", [575, 640, 760, 761, ALL])):
        with read(tmp_path / folder) as ledger:
            name = judged(ledger, asked, end=end)
            for stop in stops:
                watch(ledger, first(stop, end), asked)
            told.append((seen(ledger, name), ledger.library.standings(), ledger.library.rows()))
    assert told[0] == told[1]


def test_a_panel_that_tells_something_else_is_refused_and_changes_nothing(ledger: Ledger) -> None:
    name = judged(ledger)
    watch(ledger, first(600))
    before = seen(ledger, name)
    other = scrambled(whole())
    with pytest.raises(
        EvidenceError,
        check=lambda error: error.code == "panel_disagrees",
        match=r"of 94 days that were seen before .* Nothing was recorded",
    ):
        watch(ledger, other)
    assert seen(ledger, name) == before
    (sight,) = watch(ledger, other, revised="the vendor mended its splits")
    assert len(sight.unlike) > 50
    assert seen(ledger, name)[: len(before)] == before
    assert len(seen(ledger, name)) == ALL - 6 - CUT


def scrambled(panel: Panel) -> Panel:
    """Return the same days and names with other opens after the first 500 days."""
    opened = panel.fields["open"].copy()
    opened[CUT:] *= np.exp(0.05 * np.random.default_rng(1).standard_normal(opened[CUT:].shape))
    return replace(panel, fields={**panel.fields, "open": opened})


def test_sealed_days_of_no_data_set_are_read(ledger: Ledger) -> None:
    """Somebody fixed windows on some of these names over later days: only what comes after them is new."""
    name = judged(ledger)
    days = [str(day) for day in whole().dates]
    ledger.trials.fix_boundaries(
        Boundaries("other", whole().symbols[:3], days[CUT], days[600], days[622], days[650], days[672], days[700])
    )
    watch(ledger, whole())
    assert seen(ledger, name)[0][0] == days[701]


def test_the_sealed_days_of_the_panel_that_was_judged_stay_shut(ledger: Ledger) -> None:
    name = judged(ledger)
    (edges,) = ledger.trials.boundaries()
    watch(ledger, whole())
    assert min(day for day, _ in seen(ledger, name)) > edges.sealed_end == str(first(CUT).dates[-1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda panel: panel.rows(450, ALL), "must come before the first new one"),
        (lambda panel: panel.rows(0, CUT + 3), "no complete new day"),
        (lambda panel: replace(panel, symbols=tuple(f"z{name}" for name in panel.symbols)), "another market"),
        (lambda panel: replace(panel, symbols=tuple(f"z{name}" for name in panel.symbols)), "0 of the 120 names"),
        (lambda panel: replace(panel, groups={}, group_labels={}), "with sectors taken out, and the panel has none"),
    ],
)
def test_a_panel_that_cannot_tell_says_why(ledger: Ledger, change: Callable[[Panel], Panel], said: str) -> None:
    name = judged(ledger)
    (sight,) = watch(ledger, change(whole()))
    assert said in sight.lacking
    assert seen(ledger, name) == []


def test_a_column_that_is_missing_and_can_be_derived_is_told_how(ledger: Ledger) -> None:
    judged(ledger)
    (entry,) = list_entries(ledger)
    fields = {name: values for name, values in whole().fields.items() if name not in ("amount", "cap")}
    eye = LibraryWatch(ledger, replace(whole(), fields=fields), "small", EASY)
    said = eye._find_obstacle(replace(entry, fields=("amount", "cap")))
    assert said == (
        "the panel has no column amount, cap; a campaign file can derive it, "
        "under market: derive: {amount: close*volume}"
    )
    assert eye._find_obstacle(replace(entry, fields=("cap",))) == "the panel has no column cap"


def test_a_strong_entry_of_the_watchlist_is_proven_by_new_days(ledger: Ledger) -> None:
    name = judged(ledger, DREAM)
    assert [(one.origin, one.status, one.proof) for one in list_entries(ledger)] == [
        ("watchlist", "watchlist", "promising, unproven")
    ]
    (sight,) = watch(ledger, whole(), DREAM)
    place, proven, *_ = sight.changes
    assert (place.key, place.numbers) == ("watched", {"place": 1})
    assert (proven.status, proven.by, proven.numbers["threshold"]) == ("live", "rule", 40.0)
    assert proven.numbers["e_value"] >= 40
    (row,) = ledger.library.rows()
    assert (row.factor_id, row.origin, row.run) == (name, "promoted", "run")
    assert (find_entry(ledger, name).proof, find_entry(ledger, name).trial) == ("proven on new days", 1)


def test_a_proof_on_a_panel_without_some_of_the_names_that_were_judged_says_so(ledger: Ledger) -> None:
    """Who is left may have been chosen by somebody who knew the new days: a list of survivors is."""
    judged(ledger, DREAM)
    (sight,) = watch(ledger, without_names(whole(), 40), DREAM)
    assert sight.left_out == "the panel lacks 40 of the 120 names on which it was judged"
    (proven,) = [change for change in sight.changes if change.status == "live"]
    assert proven.reason.endswith(f"promoted; {sight.left_out}")


def test_nothing_is_said_of_names_where_all_are_there(ledger: Ledger) -> None:
    judged(ledger, DREAM)
    (sight,) = watch(ledger, whole(), DREAM)
    assert (sight.absent, sight.left_out) == (0, "")
    assert next(change.reason for change in sight.changes if change.status == "live").endswith("promoted")


def without_names(panel: Panel, count: int) -> Panel:
    """Return a panel without its last names."""
    kept = slice(0, panel.names - count)
    fields = {name: np.ascontiguousarray(values[:, kept]) for name, values in panel.fields.items()}
    groups = {name: codes[kept] for name, codes in panel.groups.items()}
    universe = np.ascontiguousarray(panel.universe[:, kept])
    return replace(panel, symbols=panel.symbols[kept], fields=fields, universe=universe, groups=groups)


def test_a_worthless_entry_of_the_watchlist_stays_there(ledger: Ledger) -> None:
    lenient = SMALL.model_copy(update={"watch_p": 0.49, "level": 1e-12})
    verdicts = [Lab.open(ledger, "run", first(CUT), lenient).judged(text) for text in IDLE]
    watched = {one.factor_id for one in verdicts if one.word == "watchlist"}
    assert watched
    watch(ledger, whole(), lenient)
    assert {one.factor_id for one in list_entries(ledger) if one.status == "watchlist"} == watched
    assert sorted(one.place or 0 for one in list_entries(ledger)) == list(range(1, len(watched) + 1))


IDLE = (
    "rank(ts_skew(volume, 31))",
    "ts_mad(high / low, 33) * -1",
    "rank(ts_kurt(returns, 50))",
    "delta(volume, 9) / volume",
)


def test_what_is_proven_but_says_what_the_library_says_stays_out(ledger: Ledger) -> None:
    name = judged(ledger, DREAM)
    kept = add_by_hand(ledger, parse(f"decay_linear({KNOWN}, 2) + 0 * rank(close)"), "2026-01-01").entry
    (sight,) = watch(ledger, whole(), DREAM)
    assert [change.status for change in sight.changes] == ["watchlist", "watchlist"]
    assert f"it says what {kept.factor_id} of the library says" in sight.changes[1].reason or (
        f"nearly {kept.factor_id}" in sight.changes[1].reason
    )
    assert [row.factor_id for row in ledger.library.rows()] == [kept.factor_id]
    assert find_entry(ledger, name).status == "watchlist"


def test_a_factor_that_dies_is_flagged_then_retired_and_watched_no_more(ledger: Ledger) -> None:
    rules = EASY.model_copy(update={"library": LibrarySettings(flag_p=0.2, retire_e=1.25)})
    name = judged(ledger, rules, end=0.6)
    (sight,) = watch(ledger, whole(0.6), rules)
    assert [change.status for change in sight.changes][-1] == "retired"
    assert "below" in sight.changes[-1].reason
    assert all(change.by == "rule" for change in sight.changes)
    assert seen(ledger, name)[-1][0] == sight.changes[-1].day
    assert watch(ledger, whole(0.6), rules) == []
    (told,) = [one.record() for one in list_conditions(ledger, rules.library)]
    assert (told["status"], told["decay"]["day"]) == ("retired", sight.changes[-1].day)


def test_a_retired_factor_is_known_but_makes_nothing_redundant(ledger: Ledger) -> None:
    name = judged(ledger)
    retire_factor(ledger, name[:6], "capacity is used up", "2026-01-01")
    after = Lab.open(ledger, "after", first(CUT), EASY).evaluator
    assert (list(after.library.values), [row.factor_id for row in after.library.rows()]) == ([], [name])
    asked = EASY.model_copy(update={"library": LibrarySettings(retired_are_redundant=True)})
    assert list(Lab.open(ledger, "asked", first(CUT), asked).evaluator.library.values) == [name]
    refused = Lab.open(ledger, "again", first(CUT), EASY).propose(KNOWN)
    assert (refused["ok"], refused["stage"]) == (False, "originality")


def test_a_run_goes_on_with_the_retirements_that_it_began_with(ledger: Ledger) -> None:
    name = judged(ledger)
    begun = Lab.open(ledger, "begun", first(CUT), EASY).evaluator
    begun.library.record_start()
    retire_factor(ledger, name, "capacity", "2026-01-01")
    begun.library.record_start()
    assert list(begun.library.values) == [name]
    assert list(Lab.open(ledger, "later", first(CUT), EASY).evaluator.library.values) == []


def test_what_was_added_by_hand_is_never_scored_or_proven(ledger: Ledger) -> None:
    add_by_hand(ledger, parse(KNOWN), "2026-01-01")
    assert watch(ledger, whole()) == []
    (told,) = [one.record() for one in list_conditions(ledger, LibrarySettings())]
    assert (told["status"], told["proof"], told["lacking"]) == ("live", "by hand, unproven", "it was never judged")


def test_an_old_run_that_does_not_say_where_its_panel_ended_is_told(ledger: Ledger) -> None:
    name = judged(ledger)
    run = ledger.runs.find("run")

    old: Any = ledger  # its run was written by an earlier version
    old.runs.all = lambda: [replace(run, config={"panel": "p"})]
    (sight,) = watch(old, whole())
    assert "does not say by which rules, or up to which day" in sight.lacking
    assert seen(ledger, name) == []


def test_a_day_without_a_rank_correlation_is_kept_as_one_and_bets_nothing(ledger: Ledger) -> None:
    name = judged(ledger)
    gone = whole().universe.copy()
    gone[CUT + 10] = False
    watch(ledger, replace(whole(), universe=gone))
    assert seen(ledger, name)[10][1] is None
    assert [standing.key for standing in ledger.library.standings(name)] == []


def test_entries_keep_their_places(ledger: Ledger) -> None:
    name = judged(ledger, DREAM)
    ledger.library.record(
        standings=[StatusChange("other", "watched", "watchlist", "rule", "", "2020-01-01", {"place": 1})]
    )
    ledger.library.record(passes=[])
    watch(ledger, first(560), DREAM)
    watch(ledger, first(600), DREAM)
    assert find_entry(ledger, name).place == 2
    assert isinstance(ledger.library.sightings(name)[0], Sighting)


def test_days_that_somebody_saw_before_a_factor_was_judged_are_not_new_to_it(tmp_path: Path) -> None:
    """Who has read how 2020 went may not judge on a panel that ends in 2019, and prove it on 2020."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Ledger.open(tmp_path, clock=lambda: now) as ledger:
        judged(ledger, DREAM)
        watch(ledger, first(700), DREAM)
    now += timedelta(days=1)
    with Ledger.open(tmp_path, clock=lambda: now) as ledger:
        rules = {"evidence": {"horizon_days": 5, "returns": "residual"}}
        config = {"last_day": str(whole().dates[CUT - 1]), "rules": rules}
        ledger.runs.start(Run("later", config, 1, "small", now.isoformat()))
        bench = Lab.open(ledger, "run", first(CUT), DREAM).evaluator
        late = Lab(ledger, replace(bench, run="later"))
        other = late.judged("rank(ts_mad(close / open, 29)) - rank(ts_corr(delta(low, 4) / low, volume, 11))")
        assert other.word == "watchlist"
        before, after = (find_entry(ledger, name).terms for name in (parse(KNOWN).id, other.factor_id))
        assert before is not None
        assert after is not None
        assert (before.judged_to, after.judged_to) == (str(whole().dates[CUT - 1]), str(whole().dates[700 - 7]))
