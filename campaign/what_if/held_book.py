"""A paper book after its last step, as the gate reads it, and the policy that holds for what it trades."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ...ledger import Ledger
from ...market import Panel
from ...portfolio import PaperAccount, rename_keys
from ...risk import (
    BookState,
    Mode,
    ModeSet,
    Policy,
    RiskError,
    RiskLimits,
    apply,
    list_ids,
    read_policy,
)
from ..book import begin
from ..book_record import find_book, list_modes, list_orders, list_steps
from ..facts import CENTS, SymbolFacts, bind_policy, list_sessions, make_state, trace_holdings
from ..trade import START_CENTS

FOUND_BY_CAMPAIGN: Final = ("accepted", "member")
"""Origins of evidence that is traded with its campaign's limits."""


@dataclass(frozen=True)
class HeldBook:
    """A book at the close of its last step.

    Attributes
    ----------
    name
        The book's name; empty for an empty book that nobody opened.
    day
        ISO date of the close; empty before the first step.
    account
        What it holds.
    modes
        What may pass after the step, and then each order of a person that no step has taken in.
    recent_e8
        Bought plus sold on each of the last days, in 1e-8 of equity.
    parts
        Target weight of each symbol, by the run or factor that asks for it.
    evidence
        Ids behind the last targets, as a signal names them; empty without a step.
    run
        The run to which the book is held; empty for all that is accepted and live.
    """

    name: str
    day: str
    account: PaperAccount
    modes: tuple[Mode, ...]
    recent_e8: tuple[int, ...]
    parts: Mapping[str, Mapping[str, float]]
    evidence: str
    run: str = ""

    @classmethod
    def empty(cls) -> HeldBook:
        """Return an empty book, such as a campaign asks about at its close."""
        return cls("", "", PaperAccount.of_cash(START_CENTS / CENTS), ("active",), (), {}, "")

    def state(self, facts: Mapping[str, SymbolFacts], panel: Panel) -> BookState:
        """Return the book as the gate reads it, with what a panel says of symbols at its last close."""
        plain = make_state(self.account, facts, list_sessions(panel))
        state = replace(plain, recent_e8=self.recent_e8, mode=self.modes[0])
        for mode in self.modes[1:]:
            state = apply(state, ModeSet(mode))
        return state

    def cut(self, panel: Panel) -> Panel:
        """Return a panel up to the day of the last step, which it must have; a book without a step takes all of it."""
        if not self.day:
            return panel
        rows = int(np.searchsorted(panel.dates, np.datetime64(self.day, "D"), side="right"))
        if rows == 0 or str(panel.dates[rows - 1]) != self.day:
            raise RiskError(
                "The panel lacks the day of the book's last step.",
                field="--panel",
                got=f"{panel.dates[0]} to {panel.dates[-1]}",
                allowed=f"a panel with a row for {self.day}",
                hint="Name the panel on which the book is stepped.",
                code="book_data",
            )
        return panel.rows(0, rows)

    def follow(self, panel: Panel) -> HeldBook:
        """Return the book under the symbols of a panel."""
        days = {name: self.day for part in self.parts.values() for name in part}
        held = {name: one.day for name, one in self.account.holdings.items()}
        renamed = trace_holdings(panel, days | held)
        parts = {run: rename_keys(part, renamed) for run, part in self.parts.items()}
        return replace(self, account=self.account.rename(renamed), parts=parts)


def read_held_book(ledger: Ledger, name: str) -> HeldBook:
    """Return a book as its last step left it."""
    book, settings = find_book(ledger, name)
    steps = list_steps(ledger, book)
    last = steps[-1] if steps else begin(settings)
    inputs = json.loads(ledger.objects.get(last["inputs"])) if steps else {}
    return HeldBook(
        name=name,
        day=last["day"] if steps else "",
        account=PaperAccount.restore(last["account"]),
        modes=list_modes(list_orders(ledger, book), steps),
        recent_e8=tuple(last["recent_e8"]),
        parts=inputs.get("parts", {}),
        evidence=inputs["sizing"][-1] if inputs else "",
        run=settings.run,
    )


def find_policy(
    ledger: Ledger, evidence: Sequence[str], panel: Panel, policy: Policy | None = None, asked: RiskLimits | None = None
) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy that holds for signals on a panel, and a note on each symbol of it that the panel lacks.

    It is the workspace's by default, as the campaigns of the evidence tighten it.

    Parameters
    ----------
    evidence
        What each signal names as its evidence.
    asked
        What a campaign file asks of the gate: it may tighten the policy further.
    """
    policy = policy or read_policy(ledger.workspace)
    names = {name for text in evidence for name in list_ids(text)}
    found = {row.run for row in ledger.library.rows() if row.factor_id in names and row.origin in FOUND_BY_CAMPAIGN}
    for run in ledger.runs.all():
        if run.id in found:
            own = (run.config.get("settings") or {}).get("risk") or {}
            policy, _ = policy.tightened(RiskLimits.model_validate_json(json.dumps(own)))
    return bind_policy(policy if asked is None else policy.tightened(asked)[0], panel)
