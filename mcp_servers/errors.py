"""Refusals of a tool call before a room handles it, and the error of a session.

AlphaloomError
└── McpServerError      the base of this room; errors that no code catches have a code instead of a class (below)
    ├── BadArguments    a tool was called with arguments that it does not take
    ├── ScopeMissing    the caller's token does not allow the request
    ├── TokenRefused    a bearer token is not accepted; its bearer is not told why
    ├── CallersBusy     too many tokens are being checked at once
    ├── ServersEnd      long work was ended, or not started, because the servers end
    └── ToolError       raised on the client's side: a tool refused a call

Codes of the base: failed (a tool failed; the operator's log has the details), forbidden (all data have labels that the
token lacks), opening (the market takes longer to open than a client waits), secret (the secret of the OAuth client is
not set), too_many_jobs, too_much (the answer would be too large for a client), unknown_factor, unknown_field,
unknown_handle, unknown_job, unknown_resource, unknown_text, unknown_token, unknown_tool.
"""

from __future__ import annotations

from ..ledger import AlphaloomError


class McpServerError(AlphaloomError):
    """A server cannot do what was asked."""

    code: str = "mcp_server"


class BadArguments(McpServerError):
    """A tool was called with arguments that it does not take."""

    code: str = "arguments"


class ScopeMissing(McpServerError):
    """The caller's token does not allow what was asked."""

    code: str = "forbidden"
    exit_code: int = 1


class TokenRefused(McpServerError):
    """A bearer token is not accepted: unknown, expired, revoked, forged, or its server could not be asked.

    The caller gets the same message in every case. `reason` is for the server's own log and contains no secret.
    """

    code: str = "unauthorized"
    exit_code: int = 1

    def __init__(self, reason: str = "") -> None:
        super().__init__(
            "This token is not accepted.", field="authorization", hint="Ask whoever runs this server for one."
        )
        self.reason = reason


class CallersBusy(McpServerError):
    """More callers came at once than can be asked about; nothing is said of any token."""

    code: str = "busy"
    exit_code: int = 1


class ServersEnd(McpServerError):
    """Long work was ended, or not begun any more, as the servers end."""

    code: str = "ended"


class ToolError(McpServerError):
    """A tool refused a call; the message is the tool's own, and so is the code that `record` gives."""

    code: str = "tool"
    exit_code: int = 1
    refused_as: str = ""

    def record(self) -> dict[str, object]:
        """Return the tool's refusal with its own code."""
        return super().record() | {"code": self.refused_as or self.code}
