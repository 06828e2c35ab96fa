"""The record of tool calls: one line for every call, chained by hashes, on the disk a moment later.

`CallLog` writes it, `verify_calls` reads it again and reports changes, `export_calls` copies it to a file. See
`ledger.calls.log` for what a power cut may lose.
"""

from __future__ import annotations

from .export import CallExport, anchors_of, escape_formula, export_calls, follow, list_calls, read_latest
from .log import CallLog, CallOutcome, ToolCall, digest_of_arguments
from .verification import RecordFinding, Verified, verify_calls

CALLS_FOLDER = "audit"
"""The folder of the record in a workspace."""

__all__ = [
    "CALLS_FOLDER",
    "CallExport",
    "CallLog",
    "CallOutcome",
    "RecordFinding",
    "ToolCall",
    "Verified",
    "anchors_of",
    "digest_of_arguments",
    "escape_formula",
    "export_calls",
    "follow",
    "list_calls",
    "read_latest",
    "verify_calls",
]
