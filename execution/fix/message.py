"""A FIX message as plain fields, and the values of its fields: times, prices, shares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from ..orders import PRICE_UNITS, US_PER_SECOND
from .dictionary import WRONG_FORMAT
from .errors import InvalidMessage

Fields = tuple[tuple[int, str], ...]
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
US_PER_DAY: Final = 86_400 * US_PER_SECOND
PRICE_DECIMALS: Final = 4


@dataclass(frozen=True, slots=True)
class FixMessage:
    """One message without its frame (tags 8, 9, 35 and 10).

    Attributes
    ----------
    begin
        BeginString, `FIX.4.4` or `FIXT.1.1`.
    kind
        MsgType, such as `D`.
    fields
        Tag and value of all other fields in the order of the wire. A value is a text in Latin-1, one character a byte,
        so data fields keep their bytes.
    """

    begin: str
    kind: str
    fields: Fields

    def get(self, tag: int, default: str = "") -> str:
        """Return the first value of a tag."""
        return next((value for name, value in self.fields if name == tag), default)

    def number(self, tag: int, default: int = 0) -> int:
        """Return the whole number of a tag; a tag that is listed as a number was checked by the codec."""
        text = self.get(tag)
        return int(text.partition(".")[0]) if text else default

    def flag(self, tag: int) -> bool:
        """Return whether a flag is Y."""
        return self.get(tag) == "Y"

    @property
    def seq(self) -> int:
        """Return MsgSeqNum."""
        return self.number(34)

    @property
    def possible_duplicate(self) -> bool:
        """Return PossDupFlag."""
        return self.flag(43)


@lru_cache(maxsize=8)
def _format_day(day: int) -> str:
    return date.fromordinal(EPOCH_ORDINAL + day).strftime("%Y%m%d")


@lru_cache(maxsize=64)  # messages of one moment share their times
def format_time(us: int) -> str:
    """Return UTCTimestamp of microseconds since 1970, cut to milliseconds: `20260105-14:30:00.000`."""
    day, rest = divmod(us, US_PER_DAY)
    seconds, fraction = divmod(rest, US_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{_format_day(day)}-{hour:02}:{minute:02}:{second:02}.{fraction // 1000:03}"


@lru_cache(maxsize=64)
def parse_time(text: str, tag: int = 52) -> int:
    """Return the microseconds since 1970 of a UTCTimestamp.

    Raises
    ------
    InvalidMessage
        It names no day of the calendar.
    """
    try:
        day = date(int(text[:4]), int(text[4:6]), int(text[6:8])).toordinal() - EPOCH_ORDINAL
        hour, minute, second = int(text[9:11]), int(text[12:14]), int(text[15:17])
        fraction = int(text[18:24].ljust(6, "0"))
    except ValueError:
        raise InvalidMessage(f"{text!r} is no time.", WRONG_FORMAT, tag) from None
    return day * US_PER_DAY + (hour * 3600 + minute * 60 + second) * US_PER_SECOND + fraction


def format_price(price_e4: int) -> str:
    """Return a price in 1e-4 as a decimal without superfluous zeros."""
    whole, rest = divmod(abs(price_e4), PRICE_UNITS)
    text = f"{'-' if price_e4 < 0 else ''}{whole}.{rest:04}"
    return text.rstrip("0").rstrip(".")


def parse_price(text: str, tag: int = 44) -> int:
    """Return a decimal in 1e-4; further digits are rounded half away from zero.

    Raises
    ------
    InvalidMessage
        It is no decimal number.
    """
    match = re.fullmatch(r"(-?)([0-9]+)(?:\.([0-9]+))?", text)
    if match is None:
        raise InvalidMessage(f"{text!r} is no price.", WRONG_FORMAT, tag)
    digits = (match[3] or "").ljust(PRICE_DECIMALS + 1, "0")
    value = int(match[2]) * PRICE_UNITS + int(digits[:PRICE_DECIMALS]) + (digits[PRICE_DECIMALS] >= "5")
    return -value if match[1] else value
