"""Instants are read as they were meant, and never too early."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from alphaloom.news.instants import format_instant, parse_edgar, parse_feed, parse_iso, parse_stored


@given(st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)))
def test_a_spelling_is_read_back(instant: datetime) -> None:
    assert parse_stored(format_instant(instant)) == instant == parse_iso(format_instant(instant), zoned=True)


@pytest.mark.parametrize(
    ("stamp", "hour"),
    [
        ("20150308015959", "06:59:59"),  # the last second of winter
        ("20150308030000", "07:00:00"),
        ("20151101005959", "04:59:59"),
        ("20151101013000", "06:30:00"),  # this hour comes twice: the second
        ("20060402030000", "07:00:00"),  # the rule before 2007
        ("20061029020000", "07:00:00"),
    ],
)
def test_new_york_keeps_summer_time(stamp: str, hour: str) -> None:
    assert parse_edgar(stamp).strftime("%H:%M:%S") == hour


@pytest.mark.parametrize(
    "text", ["2015-01-30", "2015-01-30T10:00:00", "2015-02-30T10:00:00Z", "2015-01-30T25:00Z", "soon", ""]
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_iso(text, zoned=True)


def test_feeds_write_mail_dates_or_iso() -> None:
    assert (
        parse_feed("Fri, 30 Jan 2015 16:30:00 -0500")
        == parse_feed("2015-01-30T22:30+01:00")
        == datetime(2015, 1, 30, 21, 30, tzinfo=UTC)
    )
