"""The rooms behind the servers: for each caller the data as known on its last day, and a run of its own."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from threading import Lock
from types import TracebackType
from typing import Any, Self

from ..evaluation import Budget, Evaluator, PanelContext, refuse_other_stream
from ..evidence import EvidenceSettings
from ..evidence.values import TimeSteps
from ..ledger import Ledger, Run, compute_digest
from ..library import WATCHLIST, list_entries
from ..market import ALL_FIELDS, Actions, Panel, drop_fields, find_withheld_fields, take_panel_as_of
from ..news import NewsStore
from ..sandbox import Runner
from ..search import SearchConstraints
from .access import Caller
from .errors import McpServerError, ServersEnd
from .handles import Handles
from .jobs import Jobs
from .served_caller import PANELS_FOLDER, CallerEntry, InFlightCalls, RecordCall, ServedCaller, VisibleColumns
from .tools.known_factors import CALLER_KEY

CLOSING_GRACE_S = 1
"""Seconds for calls under way, and then for jobs, when the servers end: clients and supervisors kill slow processes."""
OPENING_WAIT_S = 40.0
"""Seconds that a call waits for the market to open: many clients end a call after 60 s without an answer."""
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ServerSetup:
    """The data and settings shared by all callers' rooms.

    Attributes
    ----------
    opening : callable
        Returns the whole panel and its name; called when they are first needed, until it succeeds. A caller with a last
        day never sees this panel itself.
    ledger : Ledger
        The workspace's record.
    settings, budget, mandate
        The rules of the campaign file with which the servers were started.
    clock : callable
        Returns the time, UTC, for the names of runs and the end of handles.
    record : callable
        Records a call, or raises where that fails.
    actions, volumes
        Arguments of `take_panel_as_of`.
    runner : Runner or None
        Runs Python factors; None: they are refused.
    seed : int
        Seed of the campaign file.
    rules : mapping
        The rules that each run records.
    news : NewsStore or None
        The texts; None: none are served.
    labels : mapping
        Labels by field, such as "confidential" and "jurisdiction:CH"; "*" stands for every field. A caller without all
        labels of a field gets a panel without it.
    pace : TimeSteps
        The visible end times of trials that run code on selection days.
    columns : tuple or None
        Fields and groupings of the panel, where they are known before it is open.
    """

    opening: Callable[[], tuple[Panel, str]]
    ledger: Ledger
    settings: EvidenceSettings
    budget: Budget
    mandate: SearchConstraints
    clock: Callable[[], datetime]
    record: RecordCall
    actions: Actions | None = None
    volumes: str = ""
    runner: Runner | None = None
    seed: int = 0
    rules: Mapping[str, Any] = field(default_factory=dict)
    news: NewsStore | None = None
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pace: TimeSteps = field(default_factory=TimeSteps)
    columns: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @cached_property
    def _opened(self) -> tuple[Panel, str]:
        return self.opening()

    @property
    def panel(self) -> Panel:
        """The whole panel, without limits of a caller."""
        return self._opened[0]

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return self._opened[1]

    def withheld(self, caller: Caller) -> frozenset[str]:
        """Return the fields and groups that a caller may not see."""
        if not self.labels:
            return frozenset()
        fields = find_withheld_fields(self.panel, self.labels, caller.labels)
        if ALL_FIELDS in fields:
            raise McpServerError(
                "This data may not be shown to you.",
                field="scope",
                got=sorted(caller.scopes),
                allowed=sorted(f"data:{label}" for label in self.labels[ALL_FIELDS]),
                hint="Ask for a token with these scopes.",
                code="forbidden",
                exit_code=1,
            )
        return fields


ViewKey = tuple[str, frozenset[str] | None, frozenset[str], date | None]
"""A caller's id and view: its fields, the fields withheld from it, and its last day."""


class CallerContexts:
    """Opens each caller's rooms once, and closes their runs at the end.

    Parameters
    ----------
    setup : ServerSetup
        The shared data and settings.
    ceiling : date or None
        The last day that any caller may know; a caller's own may be earlier.
    """

    def __init__(self, setup: ServerSetup, ceiling: date | None = None) -> None:
        self.setup, self.ceiling = setup, ceiling
        self._benches: dict[tuple[date | None, frozenset[str]], PanelContext] = {}
        self._evaluators: dict[ViewKey, Evaluator] = {}
        self._jobs: dict[ViewKey, Jobs] = {}
        self._handles = Handles(setup.ledger.workspace / PANELS_FOLDER, setup.clock)
        self._runs = ExitStack()
        self._turn, self._registering = Lock(), Lock()
        self._closed, self._in_flight = False, InFlightCalls()

    def __enter__(self) -> Self:
        """Return the contexts."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for calls under way, end the jobs, then close the runs that they used.

        A run that is being opened is not waited for, and is not started.
        """
        if not self._in_flight.end(CLOSING_GRACE_S):
            LOG.warning(
                "calls were still under way after %d second; what came of them is not on record", CLOSING_GRACE_S
            )
        with self._registering:
            self._closed = True
            jobs = list(self._jobs.values())
        until = time.monotonic() + CLOSING_GRACE_S
        for job in jobs:
            job.close(0.0)
        ended = [job.close(max(0.0, until - time.monotonic())) for job in jobs]
        if not all(ended):
            LOG.warning("jobs were still at work %d second later", CLOSING_GRACE_S)
        self._runs.close()

    def last_day(self, caller: Caller) -> date | None:
        """Return the last day that a caller may know, None for no limit."""
        days = [day for day in (caller.as_of, self.ceiling) if day is not None]
        return min(days, default=None)

    def serve(self, caller: Caller) -> ServedCaller:
        """Return a caller's rooms; its run is opened on first use.

        All tokens of one caller with the same view share a run and its jobs.

        Raises
        ------
        McpServerError
            The caller may see none of this data.
        ServersEnd
            The servers are closed.
        """
        setup, day = self.setup, self.last_day(caller)
        with self._turn:
            view = (caller.id, caller.fields, setup.withheld(caller), day)
        with self._registering:
            self._check_open()
            jobs = self._jobs.setdefault(view, Jobs())
        entry = CallerEntry(caller, setup.record, day, self._in_flight)
        early = None
        if setup.columns and not setup.labels:
            early = VisibleColumns(*setup.columns, _limit_constraints(setup.mandate, caller))
        return ServedCaller(lambda: self._open_run(view, caller), entry, self._handles, jobs, setup.news, early)

    def serve_supervisor(self, caller: Caller) -> ServedCaller:
        """Return what a supervisor is served from: the record, without a market or a run of its own."""
        with self._registering:
            self._check_open()
        entry = CallerEntry(caller, self.setup.record, self.last_day(caller), self._in_flight)
        return ServedCaller.for_supervisor(self.setup.ledger.workspace, entry, self.setup.clock)

    def _check_open(self) -> None:
        if self._closed:
            raise ServersEnd("The servers end.", field="server")

    def _open_run(self, view: ViewKey, caller: Caller) -> Evaluator:
        """Return the run of a view, opened once.

        Raises
        ------
        MarketError
            There is no data until the last day.
        EvidenceError
            There is too little data to fix windows on, or the caller may read fields that are missing.
        McpServerError
            Another call is opening the market, and takes longer than clients wait for an answer.
        """
        if view in self._evaluators:
            return self._evaluators[view]
        if not self._turn.acquire(timeout=OPENING_WAIT_S):
            raise McpServerError(
                f"The market is still being opened; this call has waited {OPENING_WAIT_S:g} s.",
                field="market",
                hint="Ask again in half a minute. Formulas can be checked meanwhile.",
                code="opening",
                exit_code=1,
            )
        try:
            if view not in self._evaluators:
                self._evaluators[view] = self._begin_run(view, caller)
        finally:
            self._turn.release()
        return self._evaluators[view]

    def _begin_run(self, view: ViewKey, caller: Caller) -> Evaluator:
        """Return an evaluator; all slow work is done before its run starts."""
        bench = self._open_panel(view[-1], view[-2])
        with self._registering:
            self._check_open()
            return self._register_run(bench, view, caller)

    def _register_run(self, bench: PanelContext, view: ViewKey, caller: Caller) -> Evaluator:
        """Start a run on the ledger, and return its evaluator."""
        setup, (_, _, withheld, day) = self.setup, view
        panel, now = bench.scorer.panel, setup.clock()
        refuse_other_stream(setup.ledger, bench.windows, bench.scorer.settings)
        slug = "-".join(re.findall(r"[A-Za-z0-9]+", caller.id))[:40].lower() or "caller"
        name = f"{now:%Y%m%d-%H%M%S}-serve-{slug}-{compute_digest([now.isoformat(), *_spell_view(view)])[:4]}"
        evaluator = bench.evaluator(
            name, setup.budget, mandate=_limit_constraints(setup.mandate, caller), pace=setup.pace
        )
        config = {"panel": panel.digest, "last_day": str(panel.dates[-1]), "sectors": "sector" in panel.groups}
        config |= {CALLER_KEY: caller.id}
        rules = dict(setup.rules)
        columns = {*panel.fields} - {*evaluator.mandate.columns(panel)}
        listed = self._list_library(day, withheld | columns)
        with ExitStack() as own:
            setup.ledger.runs.start(
                Run(name, config | {"rules": rules}, setup.seed, bench.windows.boundaries.dataset, now.isoformat())
            )
            own.callback(setup.ledger.runs.finish, name, "done")
            own.enter_context(setup.ledger.runs.lock(name))
            setup.ledger.events.record(name, "library", "start", listed)
            self._runs.enter_context(own.pop_all())
        return evaluator

    def _list_library(self, day: date | None, hidden: frozenset[str]) -> list[str]:
        """Return the library's factors that were judged until `day` and whose text names no hidden field."""
        if day is None:
            factors = [(row.factor_id, row.text) for row in self.setup.ledger.library.rows()]
        else:
            factors = [
                (entry.factor_id, entry.text)
                for entry in list_entries(self.setup.ledger)
                if entry.origin != WATCHLIST and entry.terms is not None and entry.terms.judged_to <= str(day)
            ]
        return [name for name, text in factors if not hidden & {*re.findall(r"[A-Za-z_]\w*", text)}]

    def _open_panel(self, day: date | None, withheld: frozenset[str]) -> PanelContext:
        key = (day, withheld)
        if key not in self._benches:
            setup = self.setup
            whole = drop_fields(setup.panel, withheld)
            panel = whole if day is None else take_panel_as_of(whole, day, setup.actions, setup.volumes)
            dataset = setup.dataset if day is None else f"{setup.dataset} as of {day}"
            self._benches[key] = PanelContext.set_up(
                panel, setup.ledger, setup.settings, dataset, apart=day is not None, runner=setup.runner
            )
        return self._benches[key]


def _spell_view(view: ViewKey) -> list[str]:
    """Return a view as text; it makes the names of runs differ that one caller starts in the same second."""
    caller, fields, withheld, day = view
    return [caller, str(day), *sorted(withheld), "fields", *(["all"] if fields is None else sorted(fields))]


def _limit_constraints(mandate: SearchConstraints, caller: Caller) -> SearchConstraints:
    """Return the limits of the campaign file and of the caller's token together."""
    if caller.fields is None:
        return mandate
    fields = caller.fields & {*mandate.fields} if mandate.fields else caller.fields
    if not fields:  # an empty mandate would allow all fields
        raise McpServerError(
            "No field that this token may read is used here.",
            field="fields",
            got=sorted(caller.fields),
            hint="Ask for a token with other fields.",
            code="forbidden",
            exit_code=1,
        )
    return SearchConstraints(tuple(sorted(fields)), mandate.avoid, mandate.seeds, told=False)
