"""The part of FIX 4.4 and 5.0SP2 that our sessions speak: tags, order of the header, required fields, types, groups.

A tag that is not listed here is a text: venues add tags of their own.
"""

from __future__ import annotations

import re
from typing import Final, Literal

FixVersion = Literal["FIX.4.4", "FIX.5.0SP2"]
BEGIN_STRINGS: Final[dict[FixVersion, str]] = {"FIX.4.4": "FIX.4.4", "FIX.5.0SP2": "FIXT.1.1"}
"""BeginString (tag 8) of each version: 5.0SP2 is spoken over a session of FIXT.1.1."""
APPLICATION_VERSION: Final = "9"
"""DefaultApplVerID (tag 1137) of FIX 5.0SP2."""

HEADER_TAGS: Final = frozenset(
    (
        8, 9, 35, 1128, 1156, 1129, 49, 56, 115, 128, 90, 91, 34, 50, 142, 57, 143, 116, 144, 129, 145, 43, 97, 52, 122,
        212, 213, 347, 369, 627, 628, 629, 630,
    )
)  # fmt: skip  # a table
TRAILER_TAGS: Final = frozenset((93, 89, 10))
FRAME_TAGS: Final = frozenset((8, 9, 35, 10))
"""Tags that the codec writes itself."""
DATA_LENGTHS: Final[dict[int, int]] = {
    90: 91, 93: 89, 95: 96, 212: 213, 348: 349, 350: 351, 352: 353, 354: 355, 356: 357, 358: 359, 360: 361, 362: 363,
    364: 365, 445: 446, 618: 619, 621: 622, 1184: 1185, 1401: 1402, 1403: 1404,
}  # fmt: skip  # a table
"""The tag that gives the bytes of a data field, and the data field, which follows it and may hold any byte."""
DATA_TAGS: Final = frozenset(DATA_LENGTHS.values())

SESSION_KINDS: Final = frozenset("012345A")
REQUIRED_IN_HEADER: Final = (49, 56, 34, 52)
REQUIRED: Final[dict[str, tuple[int, ...]]] = {
    "0": (), "1": (112,), "2": (7, 16), "3": (45,), "4": (36,), "5": (), "A": (98, 108),
    "D": (11, 55, 54, 38, 40, 60), "F": (41, 11, 55, 54, 60), "q": (11, 530, 60),
    "8": (37, 17, 150, 39, 55, 54, 151, 14), "9": (37, 11, 41, 39, 434), "r": (37, 530, 531), "j": (372, 380),
}  # fmt: skip  # a table
"""Tags that each message must have beside those of the header: our subset of what both versions require."""

INTEGER_TAGS: Final = frozenset((34, 7, 16, 36, 45, 98, 102, 103, 108, 371, 373, 380, 532, 533, *DATA_LENGTHS))
QUANTITY_TAGS: Final = frozenset((14, 32, 38, 151))
PRICE_TAGS: Final = frozenset((6, 12, 31, 44, 99))
FLAG_TAGS: Final = frozenset((43, 97, 123, 141, 797))
TIME_TAGS: Final = frozenset((52, 60, 122, 42))
CHARACTER_TAGS: Final = frozenset((39, 40, 54, 59, 150, 434, 530, 531))
VALUE_FORMATS: Final[tuple[tuple[frozenset[int], re.Pattern[str], str], ...]] = (
    (INTEGER_TAGS, re.compile(r"-?[0-9]{1,15}"), "a whole number"),
    (QUANTITY_TAGS, re.compile(r"[0-9]{1,15}(\.0+)?"), "a whole number of shares"),
    (PRICE_TAGS, re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?"), "a decimal number"),
    (FLAG_TAGS, re.compile(r"[YN]"), "Y or N"),
    (
        TIME_TAGS,
        re.compile(
            r"[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])-([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]{3,9})?"
        ),
        "a time in UTC, 20260105-14:30:00.000",
    ),
    (CHARACTER_TAGS, re.compile(r"[!-~]"), "one character"),
)
FORMAT_OF: Final = {tag: (pattern, words) for tags, pattern, words in VALUE_FORMATS for tag in tags}

GROUPS: Final[dict[int, tuple[int, frozenset[int]]]] = {
    78: (79, frozenset((79, 80, 467, 661, 736))),
    136: (137, frozenset((137, 138, 139, 891))),
    382: (375, frozenset((375, 337, 437, 438, 655))),
    384: (372, frozenset((372, 385, 1130, 1406, 1131))),
    386: (336, frozenset((336, 625))),
    453: (448, frozenset((448, 447, 452, 802))),
    534: (41, frozenset((41, 535, 536))),
    627: (628, frozenset((628, 629, 630))),
    802: (523, frozenset((523, 803))),
}
"""Of a tag that counts a repeating group: the tag with which each entry begins, and those an entry may have."""

# SessionRejectReason (tag 373)
INVALID_TAG, REQUIRED_MISSING, NO_VALUE, WRONG_VALUE, WRONG_FORMAT = 0, 1, 4, 5, 6
WRONG_PARTY, WRONG_SENDING_TIME, REPEATED, WRONG_ORDER, WRONG_GROUP_ORDER, WRONG_GROUP_COUNT = 9, 10, 13, 14, 15, 16
