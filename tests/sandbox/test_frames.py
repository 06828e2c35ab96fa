from typing import Any

import numpy as np
import pandas as pd
import pytest

from alphaloom.sandbox import Frames, Job, Limits, SandboxError

DAYS = np.arange("2020-01-01", "2020-01-04", dtype="datetime64[D]")


def test_frames_are_frozen_copies_of_one_shape() -> None:
    close = np.ones((3, 2))
    frames = Frames({"close": close}, DAYS, ("A", "B"))
    close[0, 0] = 7.0
    assert frames.fields["close"][0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        frames.fields["close"][0, 0] = 2.0


def test_a_part_of_an_array_that_somebody_can_write_to_is_copied_and_a_frozen_one_is_not() -> None:
    whole = np.ones((4, 2))
    part = whole[:3]
    part.setflags(write=False)
    frames = Frames({"close": part}, DAYS, ("A", "B"))
    whole[0, 0] = 7.0
    assert frames.fields["close"][0, 0] == 1.0
    assert np.shares_memory(Frames(frames.fields, DAYS, ("A", "B")).fields["close"], frames.fields["close"])


@pytest.mark.parametrize(
    ("fields", "dates", "symbols", "named"),
    [
        ({}, DAYS, ("A",), "fields"),
        ({"close": np.ones((3, 1))}, DAYS[::-1], ("A",), "dates"),
        ({"close": np.ones((3, 2))}, DAYS, ("A", "A"), "symbols"),
        ({"close": np.ones((2, 3))}, DAYS, ("A", "B"), "close"),
    ],
)
def test_what_does_not_fit_together_is_named(
    fields: dict[str, np.ndarray], dates: np.ndarray, symbols: tuple[str, ...], named: str
) -> None:
    with pytest.raises(SandboxError) as caught:
        Frames(fields, dates, symbols)
    assert caught.value.field == named


def test_the_digest_tells_values_apart() -> None:
    one = Frames({"close": np.ones((3, 1))}, DAYS, ("A",))
    other = Frames({"close": np.full((3, 1), 2.0)}, DAYS, ("A",))
    assert one.digest != other.digest


def test_a_limit_that_nothing_can_run_under_is_refused() -> None:
    with pytest.raises(SandboxError, match="memory_mb"):
        Limits(memory_mb=1)
    with pytest.raises(SandboxError, match="wall_s"):
        Limits(wall_s=float("nan"))


@pytest.mark.parametrize(
    "limits",
    [
        {"wall_s": float("inf")},
        {"wall_s": 1e7},
        {"wall_s": "10"},
        {"wall_s": True},
        {"memory_mb": 1 << 50},
        {"memory_mb": 64.5},
        {"memory_mb": float("inf")},
        {"memory_mb": True},
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused_with_what_is_allowed(limits: dict[str, float]) -> None:
    with pytest.raises(SandboxError) as caught:
        Limits(**limits)  # type: ignore[arg-type]
    assert caught.value.field in limits
    assert "to 86,400" in str(caught.value.allowed) or "16 to 1,048,576" in str(caught.value.allowed)


ONES = np.ones((3, 1))


@pytest.mark.parametrize(
    ("fields", "dates", "symbols", "named"),
    [
        ({"close": ONES + 1j}, DAYS, ("A",), "close"),
        ({"close": np.full((3, 1), "1")}, DAYS, ("A",), "close"),
        ({"close": None}, DAYS, ("A",), "close"),
        ({"close": [[1.0], [2.0, 3.0]]}, DAYS, ("A",), "close"),
        (None, DAYS, ("A",), "fields"),
        ({1: ONES, "close": ONES}, DAYS, ("A",), "fields"),
        ({"close": ONES}, ["x", "y", "z"], ("A",), "dates"),
        ({"close": ONES}, np.datetime64("1600-01-01") + np.arange(3), ("A",), "dates"),
        ({"close": ONES}, np.datetime64("9000-01-01") + np.arange(3), ("A",), "dates"),
        ({"close": ONES}, DAYS, None, "symbols"),
        ({"close": ONES}, DAYS, "A", "symbols"),
    ],
)
def test_what_is_no_panel_is_named(fields: Any, dates: Any, symbols: Any, named: str) -> None:
    with pytest.raises(SandboxError) as caught:
        Frames(fields, dates, symbols)
    assert caught.value.field == named
    assert caught.value.hint


def test_nobody_who_holds_what_lies_below_can_change_a_panel() -> None:
    below = np.ones((3, 1))
    view = below[:]
    view.flags.writeable = False
    table = pd.DataFrame(np.ones((3, 1)))
    fields: dict[str, Any] = {"view": view, "table": table}
    frames = Frames(fields, DAYS, ("A",))
    below[0, 0] = table.iloc[0, 0] = 7.0
    assert frames.fields["view"][0, 0] == frames.fields["table"][0, 0] == 1.0
    kept = np.frombuffer(np.ones(3).tobytes()).reshape(3, 1)
    assert np.shares_memory(Frames({"close": kept}, DAYS, ("A",)).fields["close"], kept)


@pytest.mark.parametrize("rows", [4, 10**6, -1, 2.5, "3", True])
def test_a_job_has_no_more_days_than_its_panel(rows: Any) -> None:
    with pytest.raises(SandboxError, match="number of days") as caught:
        Job("", Frames({"close": ONES}, DAYS, ("A",)), rows)
    assert (caught.value.field, "0 to 3" in str(caught.value.allowed)) == ("rows", True)
