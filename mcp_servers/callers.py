"""The rooms behind the servers: for each caller the data as they were known on its last day, and a run of its own."""

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

__all__ = ["CallerContexts", "ServerSetup"]

CLOSING_GRACE_S = 1
"""How long calls under way, and then jobs, may take when the servers end: clients and supervisors kill who takes longer."""
OPENING_WAIT_S = 40.0
"""How long a call waits for the market: many clients give up on a call after 60 s, and hear nothing."""
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ServerSetup:
    """What every caller's rooms stand on.

    Attributes
    ----------
    opening : callable
        Returns all the data that there are, and what they are called; asked when they are first needed, until it succeeds.
        Nobody is shown them as they are who has a last day.
    ledger : Ledger
        The workspace's record.
    settings, budget, mandate
        The rules of the campaign file that the servers were started with.
    clock : callable
        Returns the time, UTC: names runs, and ends handles.
    record : callable
        Writes a call down, or raises where none can be written.
    actions, volumes
        As `take_panel_as_of` takes them.
    runner : Runner or None
        Runs Python factors; None: they are refused.
    seed : int
        Of the campaign file.
    rules : mapping
        What the runs say that they were begun with.
    news : NewsStore or None
        Texts; None: there are none.
    labels : mapping
        The labels of fields: "confidential", "jurisdiction:CH"; "*" stands for every field. Who does not bear all labels of a
        field is served a panel without it.
    pace : TimeSteps
        When trials that run code on selection days end, as a caller may see.
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
        """All the data that there are."""
        return self._opened[0]

    @property
    def dataset(self) -> str:
        """What they are called."""
        return self._opened[1]

    def withheld(self, caller: Caller) -> frozenset[str]:
        """Return the fields and groups that a caller may not see."""
        if not self.labels:
            return frozenset()
        found = find_withheld_fields(self.panel, self.labels, caller.labels)
        if ALL_FIELDS in found:
            raise McpServerError(
                "This data may not be shown to you.", field="scope", got=sorted(caller.scopes),
                allowed=sorted(f"data:{label}" for label in self.labels[ALL_FIELDS]), hint="Ask for a token with these scopes.", code="forbidden", exit_code=1,
            )  # fmt: skip
        return found


ViewKey = tuple[str, frozenset[str] | None, frozenset[str], date | None]
"""Who a caller is, and what it may see: its fields, what is withheld from it, its last day."""


class CallerContexts:
    """Opens rooms for each caller, once, and closes their runs at the end.

    Parameters
    ----------
    setup : ServerSetup
        What they stand on.
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
        """Return the rooms."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every caller's run; what is being opened is not waited for, and leaves no run behind.

        Calls under way are waited for, then jobs are ended, and then the runs on which they worked.
        """
        if not self._in_flight.end(CLOSING_GRACE_S):
            LOG.warning(
                "calls were still under way after %d second; what came of them is not on record", CLOSING_GRACE_S
            )
        with self._registering:
            self._closed = True
            jobs = list(self._jobs.values())
        until = time.monotonic() + CLOSING_GRACE_S
        for each in jobs:
            each.close(0.0)
        ended = [each.close(max(0.0, until - time.monotonic())) for each in jobs]
        if not all(ended):
            LOG.warning("jobs were still at work %d second later", CLOSING_GRACE_S)
        self._runs.close()

    def last_day(self, caller: Caller) -> date | None:
        """Return the last day that a caller may know, None for no limit."""
        days = [day for day in (caller.as_of, self.ceiling) if day is not None]
        return min(days, default=None)

    def serve(self, caller: Caller) -> ServedCaller:
        """Return what a caller's servers stand on; its run is opened when it is first asked for.

        All tokens of one caller that let it see the same share a run and its jobs.

        Raises
        ------
        McpServerError
            It may see nothing of this data.
        ServersEnd
            They are closed.
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

    def _check_open(self) -> None:
        if self._closed:
            raise ServersEnd("The servers end.", field="server")

    def _open_run(self, view: ViewKey, caller: Caller) -> Evaluator:
        """Return the run of those who stand alike, opened once.

        Raises
        ------
        MarketError
            Nothing was known yet on its last day.
        EvidenceError
            What was known is too little to fix windows on, or it may read fields that are not there.
        McpServerError
            Another call opens it, and takes longer than clients wait for an answer.
        """
        if view in self._evaluators:
            return self._evaluators[view]
        if not self._turn.acquire(timeout=OPENING_WAIT_S):
            raise McpServerError(
                f"The market is still being opened; this call has waited {OPENING_WAIT_S:g} s.", field="market",
                hint="Ask again in half a minute. Formulas can be checked meanwhile.", code="opening", exit_code=1,
            )  # fmt: skip
        try:
            if view not in self._evaluators:
                self._evaluators[view] = self._begin_run(view, caller)
        finally:
            self._turn.release()
        return self._evaluators[view]

    def _begin_run(self, view: ViewKey, caller: Caller) -> Evaluator:
        """Return an evaluator; all that takes long is done before its run is begun."""
        bench = self._open_panel(view[-1], view[-2])
        with self._registering:
            self._check_open()
            return self._register_run(bench, view, caller)

    def _register_run(self, bench: PanelContext, view: ViewKey, caller: Caller) -> Evaluator:
        """Return an evaluator with a run of its own on the ledger."""
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
        held = self._list_library(day, withheld | columns)
        with ExitStack() as own:
            setup.ledger.start_run(
                Run(name, config | {"rules": rules}, setup.seed, bench.windows.boundaries.dataset, now.isoformat())
            )
            own.callback(setup.ledger.finish_run, name, "done")
            own.enter_context(setup.ledger.lock(name))
            setup.ledger.record_event(name, "library", "start", held)
            self._runs.enter_context(own.pop_all())
        return evaluator

    def _list_library(self, day: date | None, hidden: frozenset[str]) -> list[str]:
        """Return the factors of the library that no later day judged, and in whose text no hidden field stands."""
        if day is None:
            known = [(row.factor_id, row.text) for row in self.setup.ledger.library()]
        else:
            known = [
                (entry.factor_id, entry.text)
                for entry in list_entries(self.setup.ledger)
                if entry.origin != WATCHLIST and entry.terms is not None and entry.terms.judged_to <= str(day)
            ]
        return [name for name, text in known if not hidden & {*re.findall(r"[A-Za-z_]\w*", text)}]

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
    """Return who a caller is and what it may see, as text: runs of one caller on different data are begun at one moment too."""
    caller, fields, withheld, day = view
    return [caller, str(day), *sorted(withheld), "fields", *(["all"] if fields is None else sorted(fields))]


def _limit_constraints(mandate: SearchConstraints, caller: Caller) -> SearchConstraints:
    """Return the limits of the campaign file and of the caller's token together."""
    if caller.fields is None:
        return mandate
    fields = caller.fields & {*mandate.fields} if mandate.fields else caller.fields
    if not fields:  # a mandate without fields would allow them all
        raise McpServerError(
            "No field that this token may read is used here.", field="fields", got=sorted(caller.fields),
            hint="Ask for a token with other fields.", code="forbidden", exit_code=1,
        )  # fmt: skip
    return SearchConstraints(tuple(sorted(fields)), mandate.avoid, mandate.seeds, told=False)
