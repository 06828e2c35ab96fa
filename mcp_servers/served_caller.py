"""One caller's servers: its rooms, its scopes, the record of its calls, and the calls in flight.

`CallerEntry.record_call` records each call before it is answered. `InFlightCalls` lets the servers end only after the
calls in flight.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from threading import Condition
from typing import Any

from mcp.types import CallToolResult, TextContent

from ..evaluation import Evaluator
from ..ledger.calls import CallOutcome, ToolCall, digest_of_arguments
from ..news import NewsStore
from ..search import SearchConstraints
from .access import EVERY_SCOPE, Caller
from .errors import McpServerError, ServersEnd
from .handles import Handles
from .jobs import Jobs

PANELS_FOLDER = "panels"
"""The folder of a workspace with the panels that were handed over."""


RecordCall = Callable[[ToolCall], object]


@dataclass(frozen=True)
class VisibleColumns:
    """The fields and groupings of a panel, and the caller's limits on them."""

    fields: tuple[str, ...]
    groups: tuple[str, ...]
    mandate: SearchConstraints

    @property
    def readable(self) -> tuple[str, ...]:
        """Return the fields that a formula of the caller may name."""
        return self.mandate.names(self.fields)


@dataclass(frozen=True, eq=False)
class ServedCaller:
    """One caller: its rooms, and the panels and jobs of its calls.

    Attributes
    ----------
    opening : callable
        Returns its run, on data as known on its last day; the first call waits until it is open.
    entry : CallerEntry
        Its identity and scopes, and the record of its calls.
    handles : Handles
        Panels that are handed over.
    jobs : Jobs
        Its long work.
    news : NewsStore or None
        Texts, served as of the end of its search window (`VisibleTexts`); None: none are served.
    early : VisibleColumns or None
        Columns that formulas may read, if they are known before the run is open; None: they are taken from the panel.
    workspace : Path
        The folder with the record that a supervisor reads.
    """

    opening: Callable[[], Evaluator]
    entry: CallerEntry
    handles: Handles
    jobs: Jobs
    news: NewsStore | None = None
    early: VisibleColumns | None = None
    workspace: Path = Path()

    @property
    def columns(self) -> VisibleColumns:
        """Columns that formulas may read; if they are known early, formulas are checked before the market is open."""
        if self.early is not None:
            return self.early
        panel = self.evaluator.panel
        return VisibleColumns(tuple(panel.fields), tuple(panel.groups), self.evaluator.mandate)

    @property
    def evaluator(self) -> Evaluator:
        """The caller's run; servers are built, and list their tools, before it is open."""
        return self.opening()

    @classmethod
    def for_campaign(
        cls, evaluator: Evaluator, record: RecordCall, clock: Callable[[], datetime], news: NewsStore | None = None
    ) -> ServedCaller:
        """Return the rooms of a campaign's own agents, with all scopes and the same rules as for any caller."""
        entry = CallerEntry(Caller(f"run:{evaluator.run}", EVERY_SCOPE), record)
        handles = Handles(evaluator.ledger.workspace / PANELS_FOLDER, clock)
        return cls(lambda: evaluator, entry, handles, Jobs(), news, workspace=evaluator.ledger.workspace)

    @classmethod
    def for_supervisor(cls, workspace: Path, entry: CallerEntry, clock: Callable[[], datetime]) -> ServedCaller:
        """Return what a supervisor is served from: the record of a workspace, without a market or a run."""

        def refuse() -> Evaluator:
            raise McpServerError("A supervisor has no run.", code="forbidden", exit_code=1)

        return cls(refuse, entry, Handles(workspace / PANELS_FOLDER, clock), Jobs(), workspace=workspace)


class InFlightCalls:
    """Counts the calls of all callers that are in flight."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._calls, self._ending = 0, False

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count a call while it is processed and recorded.

        Raises
        ------
        ServersEnd
            No more calls are accepted.
        """
        with self._changed:
            if self._ending:
                raise ServersEnd("The servers end.", field="server", hint="Start them again, and ask again.")
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def end(self, wait_s: float) -> bool:
        """Accept no more calls, and wait for those in flight; return whether all ended within `wait_s` seconds."""
        with self._changed:
            self._ending = True
            return self._changed.wait_for(lambda: self._calls == 0, wait_s)


@dataclass(frozen=True)
class CallerEntry:
    """One caller on one server.

    Attributes
    ----------
    caller : Caller
        The caller.
    record : callable
        Records a call, or raises where that fails; the call is then not answered.
    as_of : date or None
        The last day of this caller's data.
    in_flight : InFlightCalls
        Counts the calls of all callers that are in flight.
    seconds : callable
        A monotonic clock, seconds.
    """

    caller: Caller
    record: RecordCall
    as_of: date | None = None
    in_flight: InFlightCalls = field(default_factory=InFlightCalls)
    seconds: Callable[[], float] = field(default=time.perf_counter)

    def record_call(
        self, server: str, tool: str, arguments: Mapping[str, Any], result: CallToolResult | None, began: float
    ) -> None:
        """Record one call and its result; None: it failed without an answer."""
        body = dict(result.structured_content or {}) if result else {}
        text = "".join(part.text for part in result.content if isinstance(part, TextContent)) if result else ""
        outcome = CallOutcome.FAILED if result is None else CallOutcome.REFUSED if result.is_error else CallOutcome.OK
        rows = body.get("rows")
        counted = rows if isinstance(rows, int) and not isinstance(rows, bool) else None
        code = "" if outcome is CallOutcome.OK else str(body.get("code") or "failed")
        answer = (text.encode() if result else None, counted)
        self._record((server, tool), arguments, (outcome, code), answer, began)

    def record_reading(
        self, server: str, what: str, arguments: Mapping[str, Any], body: bytes | None, began: float, code: str
    ) -> None:
        """Record the reading of a resource or prompt; `code` is that of its refusal, empty if it was not refused."""
        outcome = CallOutcome.REFUSED if code else CallOutcome.OK
        self._record((server, what), arguments, (outcome, code), (body, None), began)

    def _record(
        self,
        tool: tuple[str, str],
        arguments: Mapping[str, Any],
        outcome: tuple[CallOutcome, str],
        answer: tuple[bytes | None, int | None],
        began: float,
    ) -> None:
        """Record a call of a (server, tool), with its (outcome, error code) and its (body, rows)."""
        body, rows = answer
        self.record(
            ToolCall(
                who=self.caller.id,
                server=tool[0],
                tool=tool[1],
                outcome=outcome[0],
                code=outcome[1],
                arguments=digest_of_arguments(arguments),
                as_of=self.as_of,
                rows=rows,
                bytes=len(body or b""),
                result="" if body is None else hashlib.sha256(body).hexdigest(),
                duration_ms=1e3 * (self.seconds() - began),
            )
        )
