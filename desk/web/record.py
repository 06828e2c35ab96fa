"""The page of the record: whether its verdicts and its log of calls still check out, and what people decided lately."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ...ledger import CHANGE_KINDS, list_changes
from ..errors import DeskError
from ..facts.changes import ChangeLine, describe_bench, describe_change
from ..facts.record_log import RecordCheck, describe_record_log, read_record_log
from ..facts.verification import (
    PanelFiles,
    choose_verdicts,
    describe_calls,
    describe_difference,
    describe_verdicts,
    verify_verdicts,
)
from ..figures import number
from .campaigns import is_campaign
from .pages import PageRequest
from .review import is_blind_for

if TYPE_CHECKING:
    from ...ledger import Event, Ledger, Run

RUNS_LISTED: Final = 25
DEEDS_SHOWN: Final = 60
CHANGES_SHOWN: Final = 20
MAX_VERIFY_SECONDS: Final = 20.0
"""How long a page verifies; what it did not reach by then is named."""
MAX_LOG_BYTES: Final = 512 * 2**20
"""Largest log of calls that a page reads: a larger one takes minutes."""
MAX_FAULTS: Final = 50
"""Differences of one run that are shown; `alphaloom evidence verify --json` has all."""
EVERY_RUN, CALL_LOG, RECORD_LOG = "all", "calls", "record"
HIDDEN_NOTE = "What differs is shown after your first judgement of its waiting case."
_verifying = Lock()
"""One check at a time: each takes a core."""


@dataclass(frozen=True)
class RunCheck:
    """What replaying the verdicts of one run found: a word, a sentence, and what is wrong, line by line."""

    run: str
    word: str
    sentence: str
    faults: list[str]


@dataclass(frozen=True)
class CallCheck:
    """What checking the log of calls found; `sound` is None where it was not read."""

    sound: bool | None
    lines: list[str]


@dataclass(frozen=True)
class Deed:
    """What a person decided: when, who, what, about what, with its page, and why."""

    at: str
    who: str
    what: str
    about: str
    href: str
    why: str


@dataclass(frozen=True)
class Override:
    """A rule of evidence that something need not pass, by the policy of the workspace."""

    evidence: str
    rule: str
    reason: str
    owner: str
    until: str
    holds: bool


@dataclass(frozen=True)
class RecordPage:
    """What was asked to be verified and what came of it; runs to choose from; deeds, changes and overrides.

    The newest come first. `missed` says what the time did not suffice for; `bench` has the lines of the last bench and
    when it was.
    """

    asked: str
    checks: list[RunCheck]
    missed: str
    calls: CallCheck | None
    log: RecordCheck | None
    runs: list[str]
    total: int
    deeds: list[Deed]
    changes: list[ChangeLine]
    bench: tuple[str, list[str]] | None
    overrides: list[Override]
    max_seconds: float = MAX_VERIFY_SECONDS


def load_record(view: PageRequest) -> RecordPage:
    """Return the page; `?verify=RUN`, `all`, `calls` or `record` asks for a check, of which one runs at a time.

    Raises
    ------
    DeskError
        Another check is under way.
    """
    asked = view.query.get("verify", "").strip()
    campaigns = [run for run in view.ledger.runs.all() if is_campaign(run)][::-1]
    checks, missed, calls, log = list[RunCheck](), "", None, None
    if asked:
        if not _verifying.acquire(blocking=False):
            raise DeskError("Another check is under way.", code="busy", hint="Ask again when it has ended.")
        try:
            if asked == CALL_LOG:
                calls = _check_calls(view.ledger)
            elif asked == RECORD_LOG:
                log = _check_log(view.ledger)
            else:
                chosen = campaigns if asked == EVERY_RUN else [view.ledger.runs.find(asked)]
                checks, missed = _check_runs(view, chosen)
        finally:
            _verifying.release()
    listed = [run.id for run in campaigns[:RUNS_LISTED]]
    changes = [describe_change(row) for row in list_changes(view.ledger, kinds=CHANGE_KINDS, most=CHANGES_SHOWN)]
    return RecordPage(
        asked, checks, missed, calls, log, listed, len(campaigns), list_deeds(view), changes, _find_bench(view.ledger),
        _list_overrides(view),
    )  # fmt: skip  # a table


def _check_log(ledger: Ledger) -> RecordCheck:
    """Compare the record with its log, as `alphaloom record verify` does."""
    return describe_record_log(ledger.workspace, *read_record_log(ledger.workspace))


def _find_bench(ledger: Ledger) -> tuple[str, list[str]] | None:
    """Return the time and the lines of the last bench; None if there was none."""
    from ...campaign.changes import list_benches

    last = next(iter(list_benches(ledger)), None)
    return (last.at, list(describe_bench(last))) if last else None


def _check_runs(view: PageRequest, runs: list[Run]) -> tuple[list[RunCheck], str]:
    """Return what was found of each run that was reached in time, and a sentence on the others."""
    end = time.monotonic() + MAX_VERIFY_SECONDS
    checks = list[RunCheck]()
    for run in runs:
        if time.monotonic() > end:
            break
        checks.append(_check_run(view, run, lambda: time.monotonic() < end))
    left = len(runs) - len(checks)
    limit = f"after {MAX_VERIFY_SECONDS:g} s"
    return checks, f"{left} of {len(runs)} campaigns were not reached {limit}; the newest come first." if left else ""


def _check_run(view: PageRequest, run: Run, goes_on: Callable[[], bool]) -> RunCheck:
    from ...evidence import RunArchive

    archive = RunArchive(view.ledger, run)
    names = choose_verdicts(archive, ())
    facts = verify_verdicts(archive, names, PanelFiles(ledger_only=True), goes_on)
    wrong = [row for row in facts["verdicts"] if row["replay"] != "same"]
    found = [(row["id"], text) for row in wrong for text in (*map(describe_difference, row["differs"]), row["missing"])]
    found += [("the run's record", describe_difference(end)) for end in facts["record"]]
    faults = [f"{place}: {' '.join(text.split())}" for place, text in found if text][:MAX_FAULTS]
    if faults and _hides_verdicts(view, run):
        faults = [HIDDEN_NOTE]
    left = len(names) - len(facts["verdicts"])
    word = "cannot be replayed" if facts["cannot"] else "not finished" if left else "checks out"
    word = word if names else "has nothing to replay"
    word = "differs" if facts["differ"] or facts["record"] else word
    late = f"; {left} were not reached in time" if left else ""
    return RunCheck(run.id, word, describe_verdicts(facts) + late, faults)


def _hides_verdicts(view: PageRequest, run: Run) -> bool:
    """Tell whether a case of a run waits that who asks must judge blind first."""
    from ...evaluation import Reviews

    reviews = Reviews.of(view.ledger, run)
    return any(is_blind_for(view, reviews, name) for name in reviews.waiting())


def _check_calls(ledger: Ledger) -> CallCheck:
    from ...ledger.calls import CALLS_FOLDER, verify_calls

    folder = ledger.workspace / CALLS_FOLDER
    if not folder.is_dir():
        return CallCheck(None, ["There is no log of calls: an MCP server that is attached to begins it."])
    if sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) > MAX_LOG_BYTES:
        return CallCheck(None, ["The log is too large for a page. On the command line: alphaloom audit verify"])
    reading = verify_calls(folder)
    return CallCheck(not reading.findings, describe_calls(reading, compared=False))


def list_deeds(view: PageRequest) -> list[Deed]:
    """Return what people decided lately, without decisions on cases that who asks has yet to judge blind."""
    ledger = view.ledger
    deeds = [_describe_deed(entry.at, entry.record) for entry in ledger.events.latest([*DEEDS], DEEDS_SHOWN)]
    hidden = _list_hidden_cases(view, deeds)
    deeds = [deed for deed in deeds if deed.href not in hidden]
    deeds += [*_list_openings(ledger), *_list_standings(ledger), *_list_releases(ledger)]
    return sorted(deeds, key=lambda deed: deed.at, reverse=True)[:DEEDS_SHOWN]


def _list_hidden_cases(view: PageRequest, deeds: list[Deed]) -> set[str]:
    """Return the pages of cases on which nothing may be shown: what others think would spoil a blind judgement."""
    from ...evaluation import Reviews

    hidden = set()
    for href in {deed.href for deed in deeds if "/cases/" in deed.href}:
        _, _, run, _, case = href.split("/")
        if is_blind_for(view, Reviews.of(view.ledger, view.ledger.runs.find(run)), case):
            hidden.add(href)
    return hidden


def _describe_deed(at: str, event: Event) -> Deed:
    what, about, href, why = DEEDS[event.kind](event)
    who = " and ".join(name for name in (event.body.get("by", ""), event.body.get("second", "")) if name)
    return Deed(at, who, what, about, href, why)


Words = tuple[str, str, str, str]
"""What was done, about what, its page, and why."""


def _describe_review(event: Event) -> Words:
    from ...evaluation import PersonDecision

    case, _, _ = event.key.partition("/")
    what = PersonDecision(case, **event.body).verb
    return what, f"{case} of {event.run}", f"/runs/{event.run}/cases/{case}", event.body.get("comment", "")


def _describe_alarm(event: Event) -> Words:
    size = f"RankIC {number(event.body.get('rank_ic'), 3, sign=True)}"
    about = f"{event.key} of {event.run}"
    return f"acknowledged a leak alarm ({size})", about, f"/runs/{event.run}/factors/{event.key}", event.body["reason"]


def _describe_seal(event: Event) -> Words:
    what = "agreed to open the sealed days" if event.body["agrees"] else "refused to open the sealed days"
    return what, event.run, f"/runs/{event.run}/seal", event.body["reason"]


def _describe_mode(event: Event) -> Words:
    words = {"active": "resumed a book", "reducing": "held a book to reductions", "halted": "halted a book"}
    name = event.run.removeprefix("book-")
    return words[event.body["mode"]], name, f"/books/{name}", event.body["reason"]


def _describe_flow(event: Event) -> Words:
    amount, name = event.body["amount"], event.run.removeprefix("book-")
    what = f"{'paid in' if amount > 0 else 'took out'} {number(abs(amount), 2)}"
    return what, name, f"/books/{name}", ""


def _describe_control(event: Event) -> Words:
    words = {"start": "set a campaign running", "stop": "asked a campaign to stop", "close": "asked for a report"}
    return words[event.kind], event.run, f"/runs/{event.run}", ""


def _describe_revalidation(event: Event) -> Words:
    factor, _, _ = event.key.partition("/")
    return "looked at a factor again: it stays", factor, f"/library/{factor}", event.body["reason"]


DEEDS: Mapping[str, Callable[[Event], Words]] = {
    "review": _describe_review,
    "alarm-acknowledged": _describe_alarm,
    "seal-decision": _describe_seal,
    "book.mode": _describe_mode,
    "book.flow": _describe_flow,
    "revalidation": _describe_revalidation,
    "start": _describe_control,
    "stop": _describe_control,
    "close": _describe_control,
}
"""Kinds of events that are a person's decision, with their words."""


def _list_openings(ledger: Ledger) -> Iterator[Deed]:
    for at, run, count, reason in ledger.trials.latest_openings(DEEDS_SHOWN):
        yield Deed(at, "", f"sealed days opened, no. {count}", run, f"/runs/{run}", reason)


def _list_standings(ledger: Ledger) -> Iterator[Deed]:
    for change in [one for one in ledger.library.standings() if one.by == "hand"][-DEEDS_SHOWN:]:
        href = f"/library/{change.factor_id}"
        yield Deed(change.day, "", f"library: {change.status}", change.factor_id, href, change.reason)


def _list_releases(ledger: Ledger) -> Iterator[Deed]:
    from ...news import NEWS_FOLDER, NewsStore

    folder = ledger.workspace / NEWS_FOLDER
    if not folder.is_dir():
        return
    with NewsStore(folder) as store:
        for one in store.list_releases(datetime.max.replace(tzinfo=UTC))[-DEEDS_SHOWN:]:
            yield Deed(one.at.isoformat(), one.who, "released a text", one.id[:12], f"/texts/{one.id}", one.reason)


def _list_overrides(view: PageRequest) -> list[Override]:
    from ...risk import read_policy

    exceptions: Any = read_policy(view.ledger.workspace).exceptions
    today = view.now.date()
    return [
        Override(one.evidence, one.rule, one.reason, one.owner, one.until.isoformat(), today <= one.until)
        for one in sorted(exceptions, key=lambda one: (one.until, one.evidence, one.rule), reverse=True)
    ]
