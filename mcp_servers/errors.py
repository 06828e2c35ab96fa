"""What a tool call can be refused for before a room sees it, and what a session raises.

AlphaloomError
├── BadArguments    a tool was called with arguments that it does not take
├── UnknownField    a field was asked for that the panel does not have
├── UnknownFactor   this caller knows of no factor with that id
├── UnknownHandle   no panel of this caller has that handle any more, or it has no such part
├── UnknownJob      this caller has no job of that name
├── NothingShown    all that there is bears labels that the caller's token does not
├── TooMuch         the answer would be larger than a client can take
├── ServersEnd      long work was ended, or not begun, as the servers end
├── StillOpening    the market takes longer to open than a client waits
├── TooManyJobs     so many of this caller's jobs are under way already
├── UnknownResource nothing of this server has that address
├── UnknownText     no text of that id can be had by this caller
├── UnknownTool     no tool or prompt of this server has that name
├── TokenRefused    a bearer token is not accepted; why is told to nobody who shows one
├── Busy            more callers came at once than can be asked about
├── SecretMissing   the secret with which an OAuth server is asked is not set
├── ScopeMissing    the caller's token does not allow what was asked
├── UnknownToken    no token of the file has that id
├── ToolFailed      a tool broke; the operator's log says how
└── ToolError       raised on the client's side: a tool refused a call
"""

from __future__ import annotations

from ..ledger import AlphaloomError


class BadArguments(AlphaloomError):
    """A tool was called with arguments that it does not take."""

    code: str = "arguments"


class UnknownField(AlphaloomError):
    """A field was asked for that the panel does not have."""

    code: str = "unknown_field"


class NoSuchFactor(AlphaloomError):
    """The caller knows of no factor with that id."""

    code: str = "unknown_factor"


class UnknownHandle(AlphaloomError):
    """No panel of this caller has that handle any more, or it has no such part."""

    code: str = "unknown_handle"


class UnknownJob(AlphaloomError):
    """The caller has no job of that name."""

    code: str = "unknown_job"


class NothingShown(AlphaloomError):
    """All that there is bears labels that the caller's token does not."""

    code: str = "forbidden"
    exit_code: int = 1


class AnswerTooLarge(AlphaloomError):
    """The answer would be larger than a client can take."""

    code: str = "too_much"


class ServersEnd(AlphaloomError):
    """Long work was ended, or not begun any more, as the servers end."""

    code: str = "ended"


class StillOpening(AlphaloomError):
    """The market is still being opened; a client that waited longer would give up."""

    code: str = "opening"
    exit_code: int = 1


class TooManyJobs(AlphaloomError):
    """So many of this caller's jobs are under way already."""

    code: str = "too_many_jobs"
    exit_code: int = 1


class UnknownResource(AlphaloomError):
    """Nothing of this server has that address."""

    code: str = "unknown_resource"


class UnknownText(AlphaloomError):
    """No text of that id can be had: there is none, it came later, or it is held back."""

    code: str = "unknown_text"


class UnknownTool(AlphaloomError):
    """No tool or prompt of this server has that name."""

    code: str = "unknown_tool"


class TokenRefused(AlphaloomError):
    """A bearer token is not accepted: unknown, expired, revoked, forged, or nobody could be asked about it.

    Whoever showed it is told the same words in every case; `reason` is for the server's own log and holds no secret.
    """

    code: str = "unauthorized"
    exit_code: int = 1

    def __init__(self, reason: str = "") -> None:
        super().__init__(
            "This token is not accepted.", field="authorization", hint="Ask whoever runs this server for one."
        )
        self.reason = reason


class CallersBusy(AlphaloomError):
    """More callers came at once than can be asked about; nothing is said of any token."""

    code: str = "busy"
    exit_code: int = 1


class SecretMissing(AlphaloomError):
    """The secret with which an OAuth server is asked is not set."""

    code: str = "secret"


class ScopeMissing(AlphaloomError):
    """The caller's token does not allow what was asked."""

    code: str = "forbidden"
    exit_code: int = 1


class UnknownToken(AlphaloomError):
    """No token of the file has that id."""

    code: str = "unknown_token"


class ToolFailed(AlphaloomError):
    """A tool broke; the log of who runs the server says how."""

    code: str = "failed"
    exit_code: int = 1


class ToolError(AlphaloomError):
    """A tool refused a call; the message is the tool's own, and so is the code that `record` gives."""

    code: str = "tool"
    exit_code: int = 1
    refused_as: str = ""

    def record(self) -> dict[str, object]:
        """Return the tool's refusal as it came."""
        return super().record() | {"code": self.refused_as or self.code}
