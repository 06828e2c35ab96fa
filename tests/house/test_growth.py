"""What measures growth tells linear work from quadratic."""

from ..growth import linear


def test_quadratic_work_is_seen() -> None:
    assert linear(lambda text: text.count("ab"), "ab", 40_000)
    assert not linear(lambda text: [text[:place].count("ab") for place in range(0, len(text), 20)], "ab", 4_000)
