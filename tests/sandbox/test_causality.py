"""What the proof says of functions whose looks ahead are known exactly."""

from datetime import date
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.sandbox import BadResult, Crashed, Frames, NotCausal, NotDeterministic, SandboxError, TimedOut
from alphaloom.sandbox.causality.claim import CausalClaim
from alphaloom.sandbox.causality.comparison import round_values
from alphaloom.sandbox.causality.proof import prove
from alphaloom.sandbox.causality.proof_record import CausalProof, CountingRunner
from alphaloom.sandbox.causality.sweep import iterate_days

from .functions import Function, Functions, Panel
from .panels import frames

Frame = NDArray[np.float64]
PANEL = frames()
DAYS = len(PANEL.dates)


def shifted(values: Frame, days: int) -> Frame:
    """Return the values of so many days before, or after if negative; missing where there are none."""
    out = np.full(values.shape, np.nan)
    kept = len(values) - abs(days)
    if kept > 0:
        out[max(days, 0) :][:kept] = values[max(-days, 0) :][:kept]
    return out


def honest(panel: Panel) -> Frame:
    return panel["close"] / shifted(panel["close"], 5) - 1.0


def proof(
    function: Function, sweep: bool = False, panel: Frames = PANEL, *, seed: int = 0, cuts: int = 6
) -> CausalProof:
    return prove(Functions({"it": function}), "it", panel, sweep, seed=seed, cuts=cuts)


def refusal(function: Function, sweep: bool = False) -> NotCausal:
    with pytest.raises(NotCausal) as caught:
        proof(function, sweep)
    return caught.value


def row(day: date) -> int:
    return int(np.flatnonzero(PANEL.dates == np.datetime64(day))[0])


def test_an_honest_function_passes_and_keeps_its_values() -> None:
    said = proof(honest)
    assert np.array_equal(said.values, round_values(honest(PANEL.fields)), equal_nan=True)
    assert not said.point_in_time
    assert said.warm_up == 5
    assert len(said.cut_off) == len(said.replaced) == 6
    assert len({*said.cut_off, *said.replaced}) == 11


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(0, 1000))
def test_the_day_that_was_read_is_named(ahead: int, seed: int) -> None:
    """A look of h days is named with the first day that has a value and the day h rows later."""
    with pytest.raises(NotCausal) as caught:
        proof(lambda panel: shifted(panel["volume"], -ahead), seed=seed)
    error = caught.value
    assert error.symbol in PANEL.symbols
    assert error.read is not None
    assert row(error.read) - row(error.day) == ahead
    assert error.record()["read"] == error.read.isoformat()


@settings(max_examples=15)
@given(st.integers(20, DAYS - 2), st.integers(0, 11))
def test_one_cell_that_looks_ahead_is_found_by_the_sweep(day: int, name: int) -> None:
    def peeping(panel: Panel) -> Frame:
        out = panel["mood"] + 0.0
        if len(out) > day + 1:
            out[day, name] = panel["mood"][day + 1, name]
        return out

    differs = PANEL.fields["mood"][day, name] != PANEL.fields["mood"][day + 1, name]
    if not differs or np.isnan(PANEL.fields["mood"][day : day + 2, name]).all():
        return
    error = refusal(peeping, sweep=True)
    assert (row(error.day), error.symbol) == (day, PANEL.symbols[name])


def test_what_a_permutation_leaves_alone_is_found_on_both_ways() -> None:
    """Code that is honest on fewer days than all can be told by what it said of all."""

    def hidden(panel: Panel) -> Frame:
        out = honest(panel)
        return out - np.nanmean(out) if len(out) == DAYS else out

    assert refusal(hidden).read == PANEL.dates[-1].astype(object)


def test_a_look_that_this_future_does_not_show_is_found_in_another() -> None:
    """Late days tell of a later drop by a quarter; none comes after them here, but one does in other futures."""
    close = PANEL.fields["close"].copy()
    close[50] = 0.5 * close[49]
    close[51:] *= close[50] / PANEL.fields["close"][50]
    panel = Frames({"close": close}, PANEL.dates, PANEL.symbols)

    def warned(panel: Panel) -> Frame:
        out = honest(panel)
        drop = shifted(panel["close"], -1) / panel["close"] < 0.75
        told = np.cumsum(drop[::-1], axis=0)[::-1] > 0
        late = np.arange(len(out))[:, None] > 60
        return np.where(told & late, -1.0, out)

    with pytest.raises(NotCausal, match="replaced by another future"):
        proof(warned, panel=panel)


def test_two_answers_are_named_by_day_and_name() -> None:
    calls = count()

    def moody(panel: Panel) -> Frame:
        out = panel["mood"] + 0.0
        out[30, 3] += 1e-15 * (1 + next(calls))
        return out

    with pytest.raises(NotDeterministic) as caught:
        proof(moody)
    assert (row(caught.value.day), caught.value.symbol) == (30, "N03")


def test_what_differs_from_itself_has_not_shown_that_it_looks_ahead() -> None:
    """Two calls agree, and later ones do not: a cut changed the value, and so did no cut at all."""
    calls = count()
    with pytest.raises(NotDeterministic):
        proof(lambda panel: panel["mood"] + float(next(calls) > 1))


def test_what_is_too_small_to_be_refused_is_not_handed_on() -> None:
    """A level that moves with tomorrow, less than the tolerance: the values are those without it."""

    def places(panel: Panel) -> Frame:
        return np.argsort(np.argsort(panel["mood"], axis=1), axis=1).astype(np.float64)

    def moved(panel: Panel) -> Frame:
        return places(panel) + 1e-10 * np.nan_to_num(shifted(panel["mood"], -1))[:, :1]

    assert np.array_equal(proof(moved).values, proof(places).values)


def test_rounding_is_no_look_ahead() -> None:
    assert proof(lambda panel: honest(panel) * (1.0 + 1e-13 * len(panel["close"])), sweep=True).swept == DAYS


def test_a_sweep_gives_values_point_in_time() -> None:
    said = proof(honest, sweep=True)
    assert said.point_in_time
    assert np.array_equal(said.values, round_values(honest(PANEL.fields)), equal_nan=True)


def test_a_sweep_calls_every_day_alone_and_few_rows_suffice() -> None:
    runner = Functions({"it": honest})
    said = prove(runner, "it", frames(240), True)
    assert said.memory == 64
    assert runner.rows.count(64) >= 240 - 64
    assert set(range(1, 64)) <= set(runner.rows)


def test_a_factor_that_remembers_all_is_given_all() -> None:
    runner = Functions({"it": lambda panel: np.cumsum(np.nan_to_num(panel["volume"]), axis=0)})
    assert prove(runner, "it", PANEL, True).memory is None
    assert set(range(1, DAYS + 1)) <= set(runner.rows)


def test_only_named_columns_are_handed_over_where_that_is_enough() -> None:
    seen: list[tuple[str, ...]] = []

    def watching(panel: Panel) -> Frame:
        seen.append(tuple(panel))
        return panel["close"] + 0.0

    code = "it\nx = 'close'"
    prove(Functions({"it": watching}), code, PANEL, True)
    assert seen[-1] == ("close",)
    prove(Functions({"it": lambda panel: panel["close"] * len(panel)}), code, PANEL, True)


def test_a_saving_that_misleads_does_not_refuse() -> None:
    """Honest code that answers otherwise where the other columns are gone, though not on the whole panel."""

    def odd(panel: Panel) -> Frame:
        out: Frame = panel["close"] + 0.0
        return out + 1.0 if len(panel) == 1 and len(out) < DAYS else out

    assert prove(Functions({"it": odd}), "it\nx = 'close'", PANEL, True).point_in_time


def test_what_raises_on_few_rows_has_no_values_there() -> None:
    def careless(panel: Panel) -> Frame:
        if len(panel["close"]) < 30:
            raise ValueError("too few")
        return panel["close"] + 0.0

    for sweep in (False, True):
        said = proof(careless, sweep)
        assert said.start_up == 29
        assert np.isnan(said.values[:29]).all()
        assert np.isfinite(said.values[29]).any()
        assert "too few" in " ".join(said.words)


def test_a_look_ahead_on_days_that_it_refuses_to_compute_is_handed_on_to_nobody() -> None:
    def sly(panel: Panel) -> Frame:
        if len(panel["close"]) < 30:
            raise ValueError("too few")
        out = panel["close"] + 0.0
        out[:29] = panel["close"][1:30]
        return out

    for sweep in (False, True):
        said = proof(sly, sweep)
        assert np.isnan(said.values[:29]).all()
        assert "Not shown for the first 29 days" in " ".join(said.words)


def test_what_raises_between_days_that_it_computes_is_no_start_up() -> None:
    def erratic(panel: Panel) -> Frame:
        if 30 < len(panel["close"]) < 120:
            raise ValueError("not now")
        return panel["close"] + 0.0

    with pytest.raises(Crashed, match="not now"):
        proof(erratic)


def test_what_raises_on_most_panels_is_refused() -> None:
    def stubborn(panel: Panel) -> Frame:
        if len(panel["close"]) < DAYS - 3:
            raise ValueError("all of it")
        return panel["close"] + 0.0

    with pytest.raises(Crashed, match="all of it"):
        proof(stubborn)


def test_what_raises_again_later_is_refused_with_the_day() -> None:
    def fragile(panel: Panel) -> Frame:
        if len(panel["close"]) == 100:
            raise ValueError("not today")
        return np.cumsum(np.nan_to_num(panel["close"]), axis=0)

    with pytest.raises(Crashed, match=str(PANEL.dates[99])):
        proof(fragile, sweep=True)


def test_other_errors_come_through() -> None:
    def slow(panel: Panel) -> Frame:
        raise TimedOut("too slow")

    with pytest.raises(TimedOut):
        proof(slow)
    with pytest.raises(BadResult, match="no value"):
        proof(lambda panel: panel["close"] * np.nan)


def test_progress_is_shown() -> None:
    seen: list[tuple[int, int]] = []
    prove(Functions({"it": honest}), "it", PANEL, True, show=lambda done, total: seen.append((done, total)))
    assert seen == [(day, DAYS) for day in range(1, DAYS + 1)]


def test_a_sweep_goes_on_where_it_was_left() -> None:
    claim = CausalClaim("it", PANEL, honest(PANEL.fields))
    rest = dict(iterate_days(CountingRunner(Functions({"it": honest})), claim, first=DAYS - 10))
    assert sorted(rest) == list(range(DAYS - 10, DAYS))
    assert all(np.array_equal(values, round_values(claim.values)[day], equal_nan=True) for day, values in rest.items())


def test_the_days_cannot_be_known_from_the_seed() -> None:
    both = Functions({"it": honest})
    one, other = (prove(both, code, PANEL, seed=3) for code in ("it", "it\n# another"))
    assert one.cut_off != other.cut_off
    assert one.cut_off == prove(both, "it", PANEL, seed=3).cut_off


def test_a_seed_that_nobody_gave_is_drawn_and_repeats_the_proof() -> None:
    both = Functions({"it": honest})
    one, other = prove(both, "it", PANEL), prove(both, "it", PANEL)
    assert one.drawn
    assert one.seed != other.seed
    again = prove(both, "it", PANEL, seed=one.seed)
    assert (again.cut_off, again.replaced) == (one.cut_off, one.replaced)
    assert not again.drawn


def test_code_that_was_ground_for_a_known_seed_meets_other_days() -> None:
    """An author who knows the seed finds a comment by which no leaking day is tried; of a drawn seed he cannot."""
    leaks = np.random.default_rng(0).random(DAYS) < 0.3
    leaks[[0, DAYS - 2]] = False

    def leaky(panel: Panel) -> Frame:
        mood = np.nan_to_num(panel["mood"])
        return np.where(leaks[: len(mood), None], np.nan_to_num(shifted(mood, -1)), mood)

    def passes(code: str, seed: int | None) -> bool:
        try:
            return bool(prove(Functions({"it": leaky}), code, PANEL, seed=seed).seed >= 0)
        except NotCausal:
            return False

    ground = next(code for code in (f"it\n# {nonce}" for nonce in count()) if passes(code, 0))
    assert sum(passes(ground, seed) for seed in range(1, 41)) <= 10


def test_too_little_is_refused() -> None:
    short = Frames({"close": np.ones((2, 1))}, PANEL.dates[:2], ("A",))
    with pytest.raises(SandboxError, match="too few"):
        proof(honest, panel=short)
    with pytest.raises(SandboxError, match="too few"):
        proof(honest, cuts=1)


def test_the_words_claim_no_more_than_was_done() -> None:
    screened, swept = " ".join(proof(honest).words), " ".join(proof(honest, sweep=True).words)
    assert f"only 11 of {DAYS} days were tried" in screened
    assert "up to 39 times in 100" in screened
    assert "An author who knew it" in screened
    assert "drawn after the code was handed in" in " ".join(prove(Functions({"it": honest}), "it", PANEL).words)
    assert "Swept" not in screened
    assert f"each of {DAYS} days" in swept
    for words in (screened, swept):
        assert "cannot show that whoever wrote the code did not know" in words
