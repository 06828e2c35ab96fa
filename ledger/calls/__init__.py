"""The record of what others asked our tools: one line for every call, chained by hashes, on the disk a moment later.

`CallLog` writes it, `verified` reads it again and says what was changed, `export` hands it on. See `ledger.calls.log`
for what a power cut may lose.
"""

from __future__ import annotations

from .call import Outcome, ToolCall, digest_of_arguments
from .export import Exported, anchors_of, export
from .log import CallLog
from .tail import follow, latest
from .verification import Finding, Verified, verified

FOLDER = "audit"
"""The folder of a workspace in which the record lies."""

__all__ = [
    "FOLDER",
    "CallLog",
    "Exported",
    "Finding",
    "Outcome",
    "ToolCall",
    "Verified",
    "anchors_of",
    "digest_of_arguments",
    "export",
    "follow",
    "latest",
    "verified",
]
