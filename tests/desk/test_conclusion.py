"""The plain conclusion: each sentence follows from the figures by rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alphaloom.desk.report.conclusion import conclude, measure_sharpe_interval, verdict_sentence
from alphaloom.evaluation.closing import Results

from . import example

MINUS = "\N{MINUS SIGN}"


def finished(**changed: Any) -> Results:
    """Return a run whose combination of two was tested, met the sealed days, and was put under stress."""
    record = example.results()
    both = record["accepted"][2]
    first, second = both["members"]
    exam = {"opened": True, "number": 1, "rank_ic": 0.0358, "t": 5.7, "days": 273, "p_value": 7.9e-6, "factors": {
        both["id"]: {"sign": 1, "rank_ic": 0.0358, "t": 5.7, "p_value": 7.9e-6},
        first: {"sign": 1, "rank_ic": -0.0076, "t": -1.1, "p_value": 0.83},
        second: {"sign": -1, "rank_ic": -0.0394, "t": -6.7, "p_value": 5.5e-7}}}  # fmt: skip  # a table
    scenarios = [{"code": "crash", "words": "crash", "verdict": "breaks"}, {"words": "grind", "verdict": "holds"}]
    parts = {
        "accepted": [both],
        "combination": record["combination"] | {"tested": True},
        "sealed": exam,
        "book": {"window": "sealed", "sharpe": 0.62, "days": 278},
        "stress": {"factors": {both["id"]: {"scenarios": scenarios}}},
    }
    return Results.read(record | parts | changed)


def exam(**changed: Any) -> dict[str, Any]:
    """Return the exam of `finished` with other figures."""
    sealed = finished().sealed
    assert sealed is not None
    return sealed.record() | changed


def test_it_says_who_holds_whether_it_earns_and_where_it_breaks() -> None:
    assert conclude(finished()) == [
        (
            "The forecast of the combination holds on the sealed (hold-out) days: RankIC 0.0358 (0.0594 on the days "
            f"that accepted it), t 5.7, p 7.9e{MINUS}06. Alone, of its 2 members, fa81c0de4 (RankIC 0.0394, "
            f"p 5.5e{MINUS}07) holds there and f01234567 (RankIC {MINUS}0.0076, p 0.83) does not. The forecast comes "
            "from fa81c0de4, which alone has a higher RankIC than the combination."
        ),
        (
            "Profit after costs is not shown: the book's Sharpe ratio after costs is 0.62 on 278 sealed days, 95 % "
            f"interval {MINUS}1.25 to 2.49, which includes zero."
        ),
        "The combination breaks under these stresses, tried on search days: crash.",
    ]


def test_a_factor_that_was_accepted_alone_is_named() -> None:
    alone = example.results()["accepted"][0]
    sentences = conclude(finished(accepted=[alone], combination=None))
    assert sentences[0].startswith(f"The forecast of {alone['id'][:9]}, as it would be traded, holds")


def test_the_interval_is_that_of_the_mean_daily_return() -> None:
    returns = np.random.default_rng(1).normal(0.001, 0.01, 400)
    mean, deviation = returns.mean(), returns.std(ddof=1)
    bounds = [mean + k * 1.96 * deviation / 400**0.5 for k in (-1, 1)]
    sharpe = mean / deviation * 252**0.5
    assert measure_sharpe_interval(float(sharpe), 400) == pytest.approx([b / deviation * 252**0.5 for b in bounds])


@pytest.mark.parametrize(
    ("sharpe", "said"), [(3.1, "Profit after costs is shown"), (-3.1, "The book loses after costs"), (1.5, "not shown")]
)
def test_a_profit_is_shown_only_above_zero(sharpe: float, said: str) -> None:
    assert said in conclude(finished(book={"window": "sealed", "sharpe": sharpe, "days": 278}))[1]


def test_a_book_of_other_days_shows_no_profit() -> None:
    sentences = conclude(finished(book={"window": "selection", "sharpe": 3.1, "days": 278}))
    assert not [text for text in sentences if "rofit" in text]


def test_a_forecast_that_does_not_hold_is_said_so() -> None:
    factors = {
        name: {"sign": 1, "p_value": 0.6, "rank_ic": 0.001} for name in ("f0123456789abcdef", "fa81c0de44556677")
    }
    (first, *_) = conclude(finished(sealed=exam(p_value=0.4, factors=factors)))
    assert "does not hold on the sealed (hold-out) days" in first
    assert first.endswith("Alone, none of its 2 members holds there.")
    (first, *_) = conclude(finished(sealed=exam(factors=factors)))
    assert first.endswith("Alone, none of its 2 members holds there: only their mix does.")


def test_members_that_all_hold_are_named() -> None:
    factors = {
        name: {"sign": 1, "p_value": 0.01, "rank_ic": 0.02} for name in ("f0123456789abcdef", "fa81c0de44556677")
    }
    (first, *_) = conclude(finished(sealed=exam(factors=factors)))
    assert "Alone, each of its 2 members holds there too: f01234567" in first


def test_days_seen_before_and_days_not_opened_are_told() -> None:
    assert any("no longer an exam" in text for text in conclude(finished(sealed=exam(number=2))))
    assert conclude(finished(sealed=None))[0].startswith("The sealed (hold-out) days were not opened")


def test_a_factor_that_no_stress_breaks_and_a_run_without_stress() -> None:
    calm = {"factors": {"s99887766554433": {"scenarios": [{"words": "crash", "verdict": "weakens"}]}}}
    assert conclude(finished(stress=calm))[-1] == "No stress test on search days breaks the combination."
    assert "stress" not in conclude(finished(stress=None))[-1]


def test_a_stress_that_breaks_an_accepted_factor_names_it_where_nothing_was_combined() -> None:
    torn = {"factors": {"f1": {"scenarios": [{"words": "crash", "verdict": "breaks"}]}}}
    one = [example.entry("f1", "rank(close)", 0.02, trial=1)]
    (*_, said) = conclude(finished(accepted=one, combination=None, stress=torn))
    assert said.startswith("f1 breaks under")
    (*_, said) = conclude(finished(accepted=[*one, one[0] | {"id": "f2"}], combination=None, stress=torn))
    assert said.startswith("At least one accepted factor breaks under")


def test_nothing_accepted_concludes_nothing() -> None:
    assert conclude(Results.read(example.nothing_accepted())) == []


def test_the_verdicts_of_trials_add_up_and_the_others_stand_apart() -> None:
    assert verdict_sentence(finished(trials=3)) == (
        "1 combination was accepted in 3 trials; 1 on the watchlist, 1 rejected. "
        "Without a trial: 44 refused (a near-copy of the library)."
    )
    untested = finished(trials=0, looks_reused=2, rejected=[], untested=[example.entry("f1", "rank(close)", 0.02)])
    assert verdict_sentence(untested) == (
        "1 combination was accepted in 2 verdicts from trials of earlier runs; 1 on the watchlist, none rejected. "
        "Without a trial: 1 not tested."
    )
    untried = Results.read({"untested": [example.entry("f1", "rank(close)", 0.02)]})
    assert verdict_sentence(untried) == "Nothing was accepted: no trial was made; 1 not tested."


@pytest.mark.parametrize(
    ("likeness", "what"),
    [(-0.56, "caught the planted rank(x) (rank correlation {m}0.56)"), (0.3, "resembles nothing planted")],
)
def test_the_truth_of_a_synthetic_market_is_told(likeness: float, what: str) -> None:
    entry = finished().accepted[0].id
    truth = {"id": entry, "nearest": "rank(x)", "nearest_correlation": likeness, "true_on_selection": 0.36}
    (*_, said) = conclude(finished(truth=[truth, truth | {"id": "f0"}]))
    known = "its rank correlation with the true expected return is +0.36 on selection days"
    assert said == f"The truth of this synthetic market: {entry[:9]} {what.format(m=MINUS)}, and {known}."
