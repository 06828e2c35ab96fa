import numpy as np
import pytest

from alphaloom.sandbox import Frames, Limits, SandboxError

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
