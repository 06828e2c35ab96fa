"""FIX 4.4 and 5.0SP2: a strict codec, a session that survives `kill -9`, and a venue over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .codec import FrameReader as FrameReader, decode as decode, encode as encode
    from .connection import FixConnection as FixConnection
    from .dictionary import FixVersion as FixVersion
    from .drop_copy import (
        CopiedVenue as CopiedVenue,
        DropCopy as DropCopy,
        DropCopyBreak as DropCopyBreak,
        reconcile_drop_copy as reconcile_drop_copy,
    )
    from .errors import FixError as FixError, GarbledMessage as GarbledMessage, InvalidMessage as InvalidMessage
    from .fix_venue import FixVenue as FixVenue
    from .link import FixLink as FixLink, Outgoing as Outgoing
    from .message import FixMessage as FixMessage, format_time as format_time
    from .quickfix_session import QuickFixLink as QuickFixLink
    from .reports import (
        TRADING_RESENT as TRADING_RESENT,
        UNKNOWN_ORDER as UNKNOWN_ORDER,
        read_report as read_report,
    )
    from .session import FixSession as FixSession, SessionSettings as SessionSettings
    from .session_store import SessionStore as SessionStore
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "codec": "FrameReader decode encode",
            "connection": "FixConnection",
            "dictionary": "FixVersion",
            "drop_copy": "CopiedVenue DropCopy DropCopyBreak reconcile_drop_copy",
            "errors": "FixError GarbledMessage InvalidMessage",
            "fix_venue": "FixVenue",
            "link": "FixLink Outgoing",
            "message": "FixMessage format_time",
            "quickfix_session": "QuickFixLink",
            "reports": "TRADING_RESENT UNKNOWN_ORDER read_report",
            "session": "FixSession SessionSettings",
            "session_store": "SessionStore",
        },
    )
