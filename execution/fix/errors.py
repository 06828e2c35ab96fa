"""The errors of FIX: of the bytes on the wire, of a session, and of its files.

FixError                 the base; a session or a counterparty that cannot be used
├── GarbledMessage       bytes that are no message: the session ignores them, and a gap in the numbers shows the loss
└── InvalidMessage       a whole message with wrong content: the session answers it with a Reject
"""

from __future__ import annotations

from ..errors import ExecutionError


class FixError(ExecutionError):
    """A FIX session, or a file of one, that cannot be used; `code` says which."""

    code = "fix"


class GarbledMessage(FixError):
    """Bytes that are no FIX message: BeginString, BodyLength, MsgType or CheckSum is wrong or out of its place."""

    code = "fix_garbled"


class InvalidMessage(FixError):
    """A message whose frame is intact and whose content is not.

    Attributes
    ----------
    reason
        SessionRejectReason (tag 373).
    tag
        The tag at fault; 0 where none is.
    kind
        MsgType of the message.
    seq
        Its MsgSeqNum; None where it has none that can be read.
    """

    code = "fix_invalid"

    def __init__(self, text: str, reason: int, tag: int = 0) -> None:
        super().__init__(text, field=f"tag {tag}" if tag else "", code=self.code)
        self.reason = reason
        self.tag = tag
        self.kind = ""
        self.seq: int | None = None
