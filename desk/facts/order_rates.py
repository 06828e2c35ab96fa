"""How fast books sent orders, from the record alone, against the order rates that the rules of markets name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from ..figures import DASH, count, percent, plural

if TYPE_CHECKING:
    from ...execution import AccountDay, OrderMessage, RateCount
    from ...execution.gate import VenueProfile
    from ...ledger import Ledger

PAPER_VENUE: Final = "paper"
ENDED_HERE: Final = "-ended"
"""End of the id of a report that the engine wrote of an order that the venue does not have: nothing was sent."""
MAX_DAYS_SHOWN: Final = 20
FILLS_NOTE: Final = (
    "A fill of a paper book without orders on record counts as one order, sent with the others of its day at "
    "the opening. An order that a venue cancelled counts as one cancel."
)


@dataclass(frozen=True)
class OrderRates:
    """The counted days of each profile; `books` are the books of the report, by id."""

    books: Sequence[str]
    profiles: Mapping[str, tuple[VenueProfile, Sequence[AccountDay]]]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        rows = {
            name: {"description": profile.description, "days": [day.record() for day in days]}
            for name, (profile, days) in self.profiles.items()
        }
        return {"books": list(self.books), "note": FILLS_NOTE, "profiles": rows}


def read_order_rates(ledger: Ledger, book: str = "", profile: str = "") -> OrderRates:
    """Return the order rates of a book, or of all, against a venue's profile, or against all.

    Raises
    ------
    RiskError
        There is no such book.
    ExecutionError
        There is no such profile.
    """
    from ...campaign import find_book
    from ...execution import ExecutionError, count_rates
    from ...execution.gate import read_profiles

    every = read_profiles()
    if profile and profile not in every:
        raise ExecutionError(
            "There is no such profile.", field="--profile", got=profile, allowed=sorted(every), code="unknown_profile"
        )
    chosen = {profile: every[profile]} if profile else every
    books = [find_book(ledger, book)[0]] if book else [run.id for run in ledger.runs.all() if "book" in run.config]
    return OrderRates(
        books,
        {
            name: (one, count_rates((row for run in books for row in _list_messages(ledger, run, one)), one))
            for name, one in chosen.items()
        },
    )


def _list_messages(ledger: Ledger, run: str, profile: VenueProfile) -> Iterator[OrderMessage]:
    """Yield the messages of a book: orders on record, and the fills of days for which none were planned."""
    from ...campaign import list_steps
    from ...execution import US_PER_SECOND, OrderMessage, OrderRecord, list_planned

    sessions = list_planned(ledger, run)
    for session in sessions:
        found = OrderRecord(ledger, run, date.fromisoformat(session)).read()
        venue = str((found.plan or {}).get("venue"))
        for state in (one for one in found.orders.values() if one.passed):
            yield OrderMessage(state.at_us, run, venue, "new")
            cancels = (one for one in state.reports if one.kind == "cancelled" and not one.exec_id.endswith(ENDED_HERE))
            yield from (OrderMessage(report.at_us, run, venue, "cancel") for report in cancels)
    for step in list_steps(ledger, run):
        opening = datetime.fromisoformat(f"{step['day']}T{profile.hours[0][0]}")
        at = int(opening.replace(tzinfo=ZoneInfo(profile.time_zone)).timestamp())
        for _ in step["fills"] if step["day"] not in sessions else ():
            yield OrderMessage(at * US_PER_SECOND, run, PAPER_VENUE, "new")


def describe_order_rates(rates: OrderRates) -> Iterator[str]:
    """Yield the report in lines for a person: each profile with its largest share, and the days that come near."""
    from ...execution import NEAR_SHARE

    yield FILLS_NOTE
    for name, (profile, days) in rates.profiles.items():
        sent = sum(day.messages.total for day in days)
        near = [day for day in days if day.share >= NEAR_SHARE]
        yield (
            f"{name} ({profile.description}): {plural(sent, 'message')} on {plural(len(days), 'day')}, "
            f"{count(len(near))} of them at {percent(NEAR_SHARE, 0)} of a limit or more"
        )
        if days:
            yield f"  most used: {_describe_day(max(days, key=lambda day: day.share), profile)}"
        for day in near[-MAX_DAYS_SHOWN:]:
            yield f"  near: {_describe_day(day, profile)}"
        if near[MAX_DAYS_SHOWN:]:
            yield f"  and {count(len(near) - MAX_DAYS_SHOWN)} days before: --json has all"


def _describe_day(day: AccountDay, profile: VenueProfile) -> str:
    parts = [
        f"{what} {_describe_count(rate, profile)}"
        for what, rate in (("orders", day.orders), ("orders and cancels", day.messages))
        if rate.limit.per_second or rate.limit.per_day
    ]
    return f"{day.day} {day.account} at {day.venue}, {percent(day.share)}: {'; '.join(parts)}"


def _describe_count(rate: RateCount, profile: VenueProfile) -> str:
    """Return the counts of a day with their limits, and when the busiest second was, in the venue's time."""
    limit, words = rate.limit, []
    if limit.per_second:
        times = f" at {limit.times_a_day} times of a day" if limit.times_a_day > 1 else ""
        busy = f", {count(max(rate.busy_rolling, rate.busy_calendar))} such seconds" if limit.times_a_day > 1 else ""
        words.append(
            f"{count(rate.rolling)} in a rolling second (to {_name_time(rate.rolling_us, profile)}), "
            f"{count(rate.calendar)} in one of the clock ({_name_time(rate.calendar_us, profile)}), "
            f"too many: {count(limit.per_second)}{times}{busy}"
        )
    if limit.per_day:
        words.append(f"{count(rate.total)} in the day, too many: {count(limit.per_day)}")
    return ", ".join(words)


def _name_time(at_us: int, profile: VenueProfile) -> str:
    from ...execution import US_PER_SECOND

    if not at_us:
        return DASH
    return datetime.fromtimestamp(at_us // US_PER_SECOND, ZoneInfo(profile.time_zone)).strftime("%H:%M:%S")
