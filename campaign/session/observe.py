"""What the circuit breakers of a book are shown when a session is executed, and where each figure comes from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final

from ...execution import (
    CLEARED_EVENT,
    US_PER_SECOND,
    Breakers,
    BreakerWatch,
    ExecutionError,
    HaltSwitch,
    MarketHours,
    OrderGate,
    act_on_trips,
    list_tripped,
    read_execution_policy,
    record_trips,
)
from ...execution.guard import read_beat
from ...ledger import PICO, Ledger, find_unapproved, picos, utc_day
from ...news import NEWS_FOLDER, NewsStore
from ...portfolio import PaperAccount
from ..book_record import STEP_EVENT, find_book
from ..facts import CENTS
from .plan import BookClose

EVERY_ZONE: Final = time(10, 30, tzinfo=UTC)
"""A time that lies in the same day in all time zones from Hawaii to New Zealand."""
DECISION_DIFFERS: Final = "decision_differs"
"""The code of a refusal: another process decided otherwise from the same inputs."""
MICROS_PER_USD: Final = 1_000_000


def watch_breakers(
    ledger: Ledger, close: BookClose, gate: OrderGate, switch: HaltSwitch, opens_us: int, now: datetime
) -> BreakerWatch:
    """Return the breakers of a book, with the trips that stand, after a look at all that is known before its session.

    Parameters
    ----------
    ledger, close
        The record, and the book before the session.
    gate, switch
        What a trip holds to reductions, and what it halts.
    opens_us
        When the session opens, microseconds since 1970 in UTC.
    now
        The present: the day whose spending counts.
    """
    book, now_us = close.book, round(now.timestamp() * US_PER_SECOND)
    breakers = Breakers(read_execution_policy(ledger.workspace).breakers, list_tripped(ledger, book))
    keep = partial(record_trips, ledger, book)
    watch = BreakerWatch(breakers, gate, switch, keep, close.mode, find_beat=partial(read_beat, ledger.workspace))
    account = PaperAccount.restore(close.step["account"])
    equity, high, gain = (round(value * CENTS) for value in (account.equity, account.high_water, account.pnl))
    watch.see_equity(equity, high, equity - gain, now_us)
    decided = date.fromisoformat(close.step["day"])
    watch.act(
        [
            *breakers.see_data(count_missed(gate.hours, decided, close.session), now_us),
            *breakers.see_versions(_find_unapproved(ledger, close), now_us),
            *breakers.see_cost(measure_spent(ledger, utc_day(now.isoformat())), now_us),
            *breakers.see_injections(count_injections(ledger, decided, opens_us), now_us),
        ]
    )
    watch.see_guard(now_us)
    return watch


def count_missed(hours: MarketHours, last: date, session: date) -> int:
    """Return the sessions between the day of the newest closes and the session, which the data lack."""
    days = (last + timedelta(days=one) for one in range(1, (session - last).days))
    times = (int(datetime.combine(day, EVERY_ZONE).timestamp()) * US_PER_SECOND for day in days)
    return sum(bool(hours.find_day(at_us).spans) for at_us in times)


def measure_spent(ledger: Ledger, day: str) -> int:
    """Return what model calls of the workspace cost on a UTC day, in millionths of a US dollar, rounded up.

    A call whose process died before its reply counts with its most.
    """
    spent = sum(picos(call.cost_usd) for call in ledger.holds.calls(day) if call.attempts)
    return -(-(spent + ledger.holds.killed(day=day).picos) * MICROS_PER_USD // PICO)


def count_injections(ledger: Ledger, since: date, until_us: int) -> int:
    """Return the texts with orders to a model that became known from a day on, and that no person has released."""
    folder = ledger.workspace / NEWS_FOLDER
    if not folder.is_dir():
        return 0
    begin = datetime.combine(since, time(tzinfo=UTC))
    with NewsStore(folder) as store:
        held = store.list_quarantine(datetime.fromtimestamp(until_us / US_PER_SECOND, UTC))
    return sum(one.is_injected and one.since >= begin for one in held)


def _find_unapproved(ledger: Ledger, close: BookClose) -> list[str]:
    """Return the models and prompts behind what is traded that came into use after people approved the book.

    They approve it when its first step is made, and again when they clear this breaker.
    """
    events, book = ledger.events, close.book
    steps = (entry.at for entry in events.entries(book) if entry.record.kind == STEP_EVENT)
    cleared = (one.key for one in events.of(book, CLEARED_EVENT) if one.body["trip"]["breaker"] == "version_change")
    times = [next(steps), *(events.find_time(book, CLEARED_EVENT, key) for key in cleared)]
    approved = max(times, key=datetime.fromisoformat)
    return find_unapproved(ledger, [*close.step["library"]["books"]], approved)


@contextmanager
def trip_on_disagreement(ledger: Ledger, name: str, now: datetime) -> Iterator[None]:
    """Trip the breaker of a book where another process decided otherwise from the same inputs; the error goes on."""
    try:
        yield
    except ExecutionError as refused:
        if refused.code == DECISION_DIFFERS:
            book, now_us = find_book(ledger, name)[0], round(now.timestamp() * US_PER_SECOND)
            breakers = Breakers(read_execution_policy(ledger.workspace).breakers, list_tripped(ledger, book))
            trips = breakers.see_decisions(_name_decisions(refused), now_us)
            with HaltSwitch(ledger.workspace) as switch:
                act_on_trips(trips, switch, partial(record_trips, ledger, book))
        raise


def _name_decisions(refused: ExecutionError) -> dict[str, Any]:
    """Return the decisions of a refusal by who made them; a record that was edited under its id is another one."""
    known, again = str(refused.allowed), str(refused.got)
    return {"the record": known, "decided again": again if again != known else f"{again}, with another content"}
