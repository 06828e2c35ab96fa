"""Faults on demand: connections that break, and messages that are none, drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..codec import compute_checksum
from .exchange import BASIS
from .order_book import draw

MALFORMED_KINDS: Final = (
    "a wrong CheckSum",
    "a wrong BodyLength",
    "bytes that are no message",
    "a tag that comes twice",
)
TRAILER_START: Final = -7


@dataclass(frozen=True, slots=True)
class VenueFaults:
    """Shares in 1e-4 of what goes wrong.

    Attributes
    ----------
    seed
        Of the draws.
    disconnects_bp
        Of the orders after which the connection breaks before the reports leave.
    malformed_bp
        Of the reports before which a malformed message is sent.
    """

    seed: int
    disconnects_bp: int = 0
    malformed_bp: int = 0

    def breaks_connection(self, session: str, order: str) -> bool:
        """Return whether the connection breaks after an order."""
        return draw(self.seed, "disconnect", session, order) % BASIS < self.disconnects_bp

    def choose_malformed(self, session: str, key: str) -> str:
        """Return which malformed message comes before a report; empty for none."""
        if draw(self.seed, "malformed", session, key) % BASIS >= self.malformed_bp:
            return ""
        return MALFORMED_KINDS[draw(self.seed, "which", session, key) % len(MALFORMED_KINDS)]


def make_malformed(fault: str, whole: bytes) -> bytes:
    """Return a malformed message in the place of a whole one.

    That with a tag that comes twice has an intact frame and takes its number; the others are garbled.
    """
    if fault == MALFORMED_KINDS[0]:
        return whole[:-4] + b"%03d\x01" % ((int(whole[-4:-1]) + 1) % 256)
    begin, length, body = whole[:TRAILER_START].split(b"\x01", 2)
    if fault == MALFORMED_KINDS[1]:
        return _frame(begin, int(length[2:]) + 1, body)
    if fault == MALFORMED_KINDS[2]:
        return b"no message at all\x01" + whole[: len(whole) // 2]
    return _frame(begin, len(body) + len(b"58=again\x01") * 2, body + b"58=again\x01" * 2)


def _frame(begin: bytes, length: int, body: bytes) -> bytes:
    head = b"%s\x019=%d\x01%s" % (begin, length, body)
    return head + b"10=%03d\x01" % compute_checksum(head)
