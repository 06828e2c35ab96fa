"""The rooms behind the servers: for each caller the data as they were known on its last day, and a run of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime
from threading import Lock
from types import TracebackType
from typing import Any, Self

from ..evidence import Bench, Evaluator
from ..evidence.budget import Budget
from ..evidence.mandate import Mandate
from ..evidence.settings import EvidenceSettings
from ..ledger import Ledger, Run, digest
from ..market import Panel
from ..market.actions import Actions
from ..market.known import known_on
from ..sandbox import Runner
from .access import Caller

__all__ = ["Ground", "Rooms"]


@dataclass(frozen=True, eq=False)
class Ground:
    """What every caller's rooms stand on.

    Attributes
    ----------
    panel : Panel
        All that there is; nobody is shown it as it is who has a last day.
    dataset : str
        What it is called.
    ledger : Ledger
        The workspace's record.
    settings, budget, mandate
        The rules of the campaign file that the servers were started with.
    clock : callable
        Returns the time, UTC: names runs.
    actions, volumes
        As `known_on` takes them.
    runner : Runner or None
        Runs Python factors; None: they are refused.
    seed : int
        Of the campaign file.
    rules : mapping
        What the runs say that they were begun with.
    """

    panel: Panel
    dataset: str
    ledger: Ledger
    settings: EvidenceSettings
    budget: Budget
    mandate: Mandate
    clock: Callable[[], datetime]
    actions: Actions | None = None
    volumes: str = ""
    runner: Runner | None = None
    seed: int = 0
    rules: Mapping[str, Any] = field(default_factory=dict)


class Rooms:
    """Opens an evaluator for each caller, once, and closes their runs at the end.

    Parameters
    ----------
    ground : Ground
        What they stand on.
    ceiling : date or None
        The last day that any caller may know; a caller's own may be earlier.
    """

    def __init__(self, ground: Ground, ceiling: date | None = None) -> None:
        self.ground, self.ceiling = ground, ceiling
        self._benches: dict[date | None, Bench] = {}
        self._evaluators: dict[Caller, Evaluator] = {}
        self._runs = ExitStack()
        self._turn = Lock()

    def __enter__(self) -> Self:
        """Return the rooms."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every caller's run."""
        self._runs.close()

    def last_day(self, caller: Caller) -> date | None:
        """Return the last day that a caller may know, None for no limit."""
        days = [day for day in (caller.as_of, self.ceiling) if day is not None]
        return min(days, default=None)

    def evaluator(self, caller: Caller) -> Evaluator:
        """Return a caller's evaluator; the same one as long as it is the same caller.

        Raises
        ------
        MarketError
            Nothing was known yet on its last day.
        EvidenceError
            What was known is too little to fix windows on, or it may read fields that are not there.
        """
        with self._turn:
            if caller not in self._evaluators:
                self._evaluators[caller] = self._opened(caller)
            return self._evaluators[caller]

    def _opened(self, caller: Caller) -> Evaluator:
        ground, bench = self.ground, self._bench(self.last_day(caller))
        panel, now = bench.scorer.panel, ground.clock()
        slug = "-".join(re.findall(r"[A-Za-z0-9]+", caller.id))[:40].lower() or "caller"
        name = f"{now:%Y%m%d-%H%M%S}-serve-{slug}-{digest([now.isoformat(), caller.id])[:4]}"
        evaluator = bench.evaluator(name, ground.budget, mandate=_mandate(ground.mandate, caller))
        config = {"panel": panel.digest, "last_day": str(panel.dates[-1]), "sectors": "sector" in panel.groups}
        rules = dict(ground.rules)
        ground.ledger.start_run(
            Run(name, config | {"rules": rules}, ground.seed, bench.windows.boundaries.dataset, now.isoformat())
        )
        self._runs.callback(ground.ledger.finish_run, name, "done")
        self._runs.enter_context(ground.ledger.lock(name))
        return evaluator

    def _bench(self, day: date | None) -> Bench:
        if day not in self._benches:
            ground = self.ground
            panel = ground.panel if day is None else known_on(ground.panel, day, ground.actions, ground.volumes)
            dataset = ground.dataset if day is None else f"{ground.dataset} as of {day}"
            self._benches[day] = Bench.set_up(panel, ground.ledger, ground.settings, dataset, runner=ground.runner)
        return self._benches[day]


def _mandate(mandate: Mandate, caller: Caller) -> Mandate:
    """Return the limits of the campaign file and of the caller's token together."""
    if caller.fields is None:
        return mandate
    fields = caller.fields & {*mandate.fields} if mandate.fields else caller.fields
    return Mandate(tuple(sorted(fields)), mandate.avoid, mandate.seeds)
