"""The command that prints the events of a run in order, and follows it while it runs.

`Chronicle` reads the ledger; one function per kind of event describes it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.standing import STATE_INTERRUPTED, state_of
from ...figures import number, plural
from ...formula_views import summarise_formula
from ..console import print_object, print_plain, stderr_console
from ..options import RunName, Workspace

if TYPE_CHECKING:
    from ....ledger import Event, Ledger, Run, VerdictRow


LOG_POLL_SECONDS = 0.5
ACTOR_WIDTH = 7  # characters of the widest name


def log(
    run: RunName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends or rests.")] = False,
    workspace: Workspace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, and nothing else.")] = False,
) -> None:
    """Tell what happened in a run: hypotheses, formulas, refusals, scores, critiques, verdicts, what people said."""
    from .status import open_run

    with open_run(run, workspace) as (ledger, row):
        chronicle = Chronicle(ledger, row.id)
        entries = (
            follow_chronicle(chronicle, lambda: ledger.runs.holder(row.id) is not None) if follow else chronicle.read()
        )
        day = ""
        for entry in entries:
            day = _print(entry, day, as_json=as_json)
        if follow and not as_json:
            _print_interruption(ledger, ledger.runs.find(row.id))


def follow_chronicle(
    chronicle: Chronicle, running: Callable[[], bool], wait: Callable[[float], None] = time.sleep
) -> Iterator[ChronicleEntry]:
    """Yield the entries of a run until no process works on it any more, and all that it wrote by then."""
    while True:
        runs = running()
        yield from chronicle.read()
        if not runs:
            return
        wait(LOG_POLL_SECONDS)


def _print(entry: ChronicleEntry, day: str, *, as_json: bool) -> str:
    """Print an entry, after its day if that has changed; return the day."""
    if as_json:
        print_object(entry.record())
        return day
    date, _, time_of_day = entry.at.partition("T")
    if date != day:
        print_plain(date)
    first, *more = entry.lines
    print_plain(f"{time_of_day[:8]}  {entry.who:<{ACTOR_WIDTH}} {first}")
    for line in more:
        print_plain(f"{'':{8 + 2 + ACTOR_WIDTH}}   {line}")
    return date


def _print_interruption(ledger: Ledger, row: Run) -> None:
    """Report that a followed run was interrupted, since its record does not say so."""
    if state_of(row.status, ledger.runs.holder(row.id), waits=False) == STATE_INTERRUPTED:
        stderr_console().print(f"interrupted; resume with: alphaloom resume {row.id}", markup=False, soft_wrap=True)


Body = Mapping[str, Any]
PASSAGE_CHARS = 60
"""Characters of a passage that identify it to a person."""


@dataclass(frozen=True)
class ChronicleEntry:
    """One event: its time, who did it, its kind, the key of its record, and its description in lines."""

    at: str
    who: str
    what: str
    key: str
    lines: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"at": self.at, "who": self.who, "what": self.what, "key": self.key, "said": list(self.lines)}


@dataclass
class Chronicle:
    """Read a run's events in order; every call of `read` yields those since the last call."""

    ledger: Ledger
    run: str
    _places: dict[str, int] = field(default_factory=lambda: {"events": 0, "verdicts": 0, "statuses": 0})

    def read(self) -> Iterator[ChronicleEntry]:
        """Yield the entries since the last call, in the order of time."""
        return heapq.merge(
            self._read_statuses(), self._read_events(), self._read_verdicts(), key=lambda entry: entry.at
        )

    def _read_events(self) -> Iterator[ChronicleEntry]:
        for entry in self.ledger.events.entries(self.run, self._places["events"]):
            self._places["events"] = entry.place
            if text := describe_event(entry.record):
                who, what, lines = text
                yield ChronicleEntry(entry.at, who, what, entry.record.key, tuple(map(flatten_lines, lines)))

    def _read_verdicts(self) -> Iterator[ChronicleEntry]:
        for entry in self.ledger.verdicts.entries(self.run, self._places["verdicts"]):
            self._places["verdicts"] = entry.place
            lines = tuple(map(flatten_lines, describe_verdict(entry.record)))
            yield ChronicleEntry(entry.at, "gate", "verdict", entry.record.factor_id, lines)

    def _read_statuses(self) -> Iterator[ChronicleEntry]:
        rows = self.ledger.runs.statuses(self.run)
        for place, (at, status) in enumerate(rows):
            if place >= self._places["statuses"]:
                self._places["statuses"] = place + 1
                words = STATUSES.get(status, status)
                yield ChronicleEntry(
                    at, "run", status, "", (words if place or status != "running" else "the run begins",)
                )


def flatten_lines(text: str) -> str:
    """Return a text on one line, without terminal control characters: most of it comes from models."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


STATUSES = {
    "running": "the run goes on",
    "paused": "the run pauses and waits for a person",
    "stopped": "the run stops, to be gone on with",
    "done": "the run is done",
}
EventText = tuple[str, str, list[str]]


def describe_event(event: Event) -> EventText | None:
    """Describe an event: who did what, and how; None for internal events."""
    describe = EVENT_DESCRIBERS.get(event.kind)
    return describe(event.key, event.body) if describe else None


def describe_verdict(row: VerdictRow) -> list[str]:
    """Describe a verdict with the step that decided it."""
    failed = [reason for reason in row.reasons if not reason["passed"]]
    deciding = failed[0] if failed else row.reasons[-1]
    return [f"{row.factor_id} {row.verdict}: {deciding['step']}: {deciding['message']}"]


def _describe_hypothesis(key: str, body: Body) -> EventText:
    way = "higher values, higher returns" if body.get("direction") == 1 else "higher values, lower returns"
    lines = [
        f"hypothesis {key}, {str(body.get('mechanism', '')).replace('_', ' ')}: {body.get('statement', '')}",
        f"expects {way} over {body.get('horizon_days')} days; refuted by: {body.get('refuted_by', '')}",
    ]
    request = body.get("asked")
    lines += [f"sent back by a person for {request['factor']}: {request['comment']}"] if request else []
    return "idea", "hypothesis", lines


def _describe_ideas(key: str, body: Body) -> EventText | None:
    reason = body.get("failed") or body.get("ended")
    return ("idea", "no hypotheses", [f"no hypotheses in {key}: {reason}"]) if reason else None


def _describe_recall(key: str, body: Body) -> EventText | None:
    """List the person's documents in a round's context, with the beginnings of the passages."""
    lines = [
        f"told of {row.get('untrusted_name', '')} ({row.get('document', '')}): {_describe_document(row)}"
        for row in body.get("documents", [])
    ]
    return ("idea", "documents", [f"documents in {key}", *lines]) if lines else None


def _describe_document(row: Body) -> str:
    passages = row.get("untrusted_passages", [])
    amount = plural(len(passages), "passage")
    begins = "; ".join(f'"{" ".join(str(passage).split())[:PASSAGE_CHARS]}"' for passage in passages)
    return f"{amount}{', a summary' if row.get('untrusted_summary') else ''}{f': {begins}' if begins else ''}"


def _describe_proposal(key: str, body: Body) -> EventText:
    items = body.get("items", [])
    lines = [f"{plural(len(items), 'formula')} for {key.split('/s')[0]}"]
    lines += [f"{item['intent']}{_describe_parent(item)}: {summarise_formula(item['text'])}" for item in items]
    lines += [str(body[name]) for name in ("failed", "ended") if body.get(name)]
    return "factor", "formulas", lines


def _describe_parent(body: Body) -> str:
    """Return the parent of a changed formula with its figures; empty if it has none."""
    if "parent" not in body:
        return ""
    weak = "" if body.get("where", "none") == "none" else f", {body['where']}"
    return f" of {body['parent']} (t {number(body.get('parent_t'), 2, sign=True)}{weak})"


def _describe_operators(key: str, body: Body) -> EventText | None:
    from ....agents.memory import pool_rows

    rows = sorted(pool_rows(body.get("rows", [])), key=lambda row: (-row["tried"], row["operator"]))
    lines = [f"what changes did until the end of {key}: children better than their parent in |t|, and the mean gain"]
    lines += [
        f"{row['operator']}: {row['better']} of {row['tried']}, {number(row['gained'] / row['tried'], 2, sign=True)}"
        for row in rows
    ]
    return ("eval", "changes", lines) if rows else None


def _describe_score(key: str, body: Body) -> EventText:
    text = summarise_formula(str(body.get("text", "")))
    if not body.get("ok"):
        why = "; ".join(str(error.get("message", "")) for error in body.get("errors", []))
        return "eval", "refused", [f"refused at {body.get('stage', '')}: {text}", why]
    sheet = body.get("sheet", {})
    figures = f"t {number(sheet.get('t'), 2, sign=True)}, RankIC {number(sheet.get('rank_ic'), 4, sign=True)}"
    weak = ", ".join(str(weakness["code"]) for weakness in body.get("weaknesses", []))
    change = [f"{body.get('intent')}{_describe_parent(body)}"] if "parent" in body else []
    return (
        "eval",
        "scored",
        [f"scored {body.get('id')}: {figures} on search: {text}", *change, *([f"weak: {weak}"] if weak else [])],
    )


def _describe_critique(key: str, body: Body) -> EventText:
    reason = body.get("failed") or body.get("ended")
    if reason:
        return "eval", "no critique", [f"no critique of {key}: {reason}"]
    verdict = "goes on" if body.get("keep") else "is given up"
    lines = [f"{key.rpartition('/s')[0]} {verdict} after step {key.rpartition('/s')[2]}"]
    lines += [f"{weakness['code']}: {weakness['message']}" for weakness in body.get("weaknesses", [])]
    lines += [
        f"asks to {str(advice['operator']).replace('_', ' ')}: {advice['why']}" for advice in body.get("advice", [])
    ]
    return "eval", "critique", lines


def _describe_set(key: str, body: Any) -> EventText:
    return "gate", "set", [f"{key} is a combination of {len(body)}: {', '.join(map(str, body))}"]


def _describe_case(key: str, body: Body) -> EventText:
    return "gate", "case", [f"{key} waits for a person's approval: {summarise_formula(str(body.get('canonical', '')))}"]


def _describe_failure(key: str, body: Body) -> EventText:
    agent, _, place = key.partition("/")
    place, _, number_of_try = place.rpartition("/")
    return agent, "no answer", [f"{place}, failure {number_of_try}: {body.get('reason', '')}"]


def _describe_review(key: str, body: Body) -> EventText:
    from ....evaluation import PersonDecision

    name, _, _ = key.partition("/")
    return "person", "review", [f"{name}: {PersonDecision(name, **body).sentence}"]


def _describe_seal_request(_: str, body: Body) -> EventText:
    days = f"{plural(body['days'], 'day')}, {body['first_day']} to {body['last_day']}"
    return "run", "seal request", [f"asks to open its sealed days: {days}, opened {len(body['earlier'])} times before"]


def _describe_seal_decision(_: str, body: Body) -> EventText:
    from ....evaluation.closing import SealDecision

    return "person", "seal decision", [SealDecision(**body).sentence]


def _make_request_describer(word: str) -> Callable[[str, Body], EventText]:
    return lambda _, body: ("person", word, [f"{body.get('by', '')} asks the run to {word}"])


def _describe_start(_: str, body: Body) -> EventText:
    return "person", "start", [f"{body.get('by', '')} sets the run running"]


EVENT_DESCRIBERS: Mapping[str, Callable[[str, Any], EventText | None]] = {
    "agents.hypothesis": _describe_hypothesis,
    "agents.ideas": _describe_ideas,
    "agents.recall": _describe_recall,
    "agents.proposal": _describe_proposal,
    "agents.score": _describe_score,
    "agents.critique": _describe_critique,
    "agents.failure": _describe_failure,
    "agents.operators": _describe_operators,
    "set": _describe_set,
    "case": _describe_case,
    "review": _describe_review,
    "seal-request": _describe_seal_request,
    "seal-decision": _describe_seal_decision,
    "start": _describe_start,
    "stop": _make_request_describer("stop"),
    "close": _make_request_describer("close"),
}
"""The events that are shown, and their descriptions; all others are internal."""
