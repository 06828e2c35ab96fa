"""Who is served, what each tool asks of a caller, and the record of every call."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from mcp.types import CallToolResult, TextContent

from ..ledger.calls import CallOutcome, ToolCall, digest_of_arguments
from .access import Caller, Scope
from .errors import ScopeMissing
from .inflight import InFlightCalls

__all__ = ["DEFAULT_SCOPES", "EVERY_SCOPE", "CallerEntry"]

EVERY_SCOPE = frozenset(scope.value for scope in Scope)
"""All that a caller may be allowed, data of a jurisdiction left out."""
DEFAULT_SCOPES = EVERY_SCOPE - {Scope.DATA_CONFIDENTIAL.value}
"""What a client on stdio may do if nobody says otherwise: what is marked as confidential is asked for by name."""
RecordCall = Callable[[ToolCall], object]


@dataclass(frozen=True)
class CallerEntry:
    """One caller on one server.

    Attributes
    ----------
    caller : Caller
        Who is served.
    record : callable
        Writes a call down, or raises where none can be written: then it is not answered.
    as_of : date or None
        The last day that this caller's data hold.
    under_way : UnderWay
        Counts the calls of all callers that are worked on.
    seconds : callable
        A clock that only ever rises, seconds.
    """

    caller: Caller
    record: RecordCall
    as_of: date | None = None
    under_way: InFlightCalls = field(default_factory=InFlightCalls)
    seconds: Callable[[], float] = field(default=time.perf_counter)

    def refusal(self, tool: str, scope: str | None) -> ScopeMissing | None:
        """Return why the caller may not call a tool; None where it may. A tool that asks for no scope is nobody's."""
        if scope is not None and self.caller.allows(scope):
            return None
        return ScopeMissing(
            f"This token does not allow {tool}.", field="scope", got=sorted(self.caller.scopes),
            allowed=None if scope is None else str(scope),
            hint=f"Ask for a token with the scope {scope}." if scope else "",
        )  # fmt: skip

    def write(
        self, server: str, tool: str, arguments: Mapping[str, Any], result: CallToolResult | None, began: float
    ) -> None:
        """Write down one call and what came of it; None: it failed, and nothing was answered."""
        body = dict(result.structured_content or {}) if result else {}
        text = "".join(part.text for part in result.content if isinstance(part, TextContent)) if result else ""
        outcome = CallOutcome.FAILED if result is None else CallOutcome.REFUSED if result.is_error else CallOutcome.OK
        rows = body.get("rows")
        counted = rows if isinstance(rows, int) and not isinstance(rows, bool) else None
        code = "" if outcome is CallOutcome.OK else str(body.get("code") or "failed")
        self._kept(server, tool, arguments, (outcome, code), text.encode() if result else None, counted, began)

    def note(
        self, server: str, what: str, asked: Mapping[str, Any], body: bytes | None, began: float, code: str
    ) -> None:
        """Write down the reading of a resource or prompt; `code`: what it was refused for, empty if it was not."""
        outcome = CallOutcome.REFUSED if code else CallOutcome.OK
        self._kept(server, what, asked, (outcome, code), body, None, began)

    def _kept(
        self, server: str, tool: str, arguments: Mapping[str, Any], came: tuple[CallOutcome, str], body: bytes | None,
        rows: int | None, began: float,
    ) -> None:  # fmt: skip
        self.record(
            ToolCall(
                who=self.caller.id,
                server=server,
                tool=tool,
                outcome=came[0],
                code=came[1],
                arguments=digest_of_arguments(arguments),
                as_of=self.as_of,
                rows=rows,
                bytes=len(body or b""),
                result="" if body is None else hashlib.sha256(body).hexdigest(),
                duration_ms=1e3 * (self.seconds() - began),
            )
        )
