"""What a tool call can be refused for before a room sees it, and what a session raises.

AlphaloomError
└── McpServerError      the base of this room: what is only told has a code (below)
    ├── BadArguments    a tool was called with arguments that it does not take
    ├── ScopeMissing    the caller's token does not allow what was asked
    ├── TokenRefused    a bearer token is not accepted; why is told to nobody who shows one
    ├── CallersBusy     more callers came at once than can be asked about
    ├── ServersEnd      long work was ended, or not begun, as the servers end
    └── ToolError       raised on the client's side: a tool refused a call

Codes of the base: failed (a tool broke; the operator's log says how), forbidden (all data bear labels that the token does not),
opening (the market takes longer to open than a client waits), secret (the secret of the OAuth client is not set), too_many_jobs,
too_much (the answer would be larger than a client can take), unknown_factor, unknown_field, unknown_handle, unknown_job,
unknown_resource, unknown_text, unknown_token, unknown_tool.
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

    The caller gets the same words in every case. `reason` is for the server's own log and holds no secret.
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
        """Return the tool's refusal as it came."""
        return super().record() | {"code": self.refused_as or self.code}
