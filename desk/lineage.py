"""How a factor came about, from the record alone: its parents with the reason of each change, and the model calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .formula_views import TextChange, compare_texts

if TYPE_CHECKING:
    from ..ledger import Ledger, ModelCall, Run


MAX_ANCESTORS = 12
MAX_CALLS_COMPARED = 48
"""Calls before an answer among which those are sought that led to it; agents work in parallel, so a few lie between."""
MAX_ASKED_AGAIN = 3
"""Questions after failures that are looked for; each has a seed of its own."""
NO_WEAKNESS = "none"


@dataclass(frozen=True)
class LineageStep:
    """One formula on the way to a factor.

    Attributes
    ----------
    id, text, t
        The formula as it was proposed, with its t on search days.
    key
        Its attempt: round, hypothesis, step, candidate, try.
    hypothesis
        The hypothesis that it was proposed for.
    intent
        The change that made it of the formula before, as its author calls it.
    weakness
        The weakness of the formula before that this change addresses, in the words of the critique.
    advice
        What the critique asked for in this way, with its reason; empty if nobody asked.
    rationale
        The author's own words.
    change
        The change of the text, word by word; empty for the first formula.
    """

    id: str
    text: str
    t: float | None
    key: str
    hypothesis: str
    intent: str
    weakness: str
    advice: str
    rationale: str
    change: tuple[TextChange, ...]


@dataclass(frozen=True)
class EarlierTry:
    """A try for the same place of a proposal that was refused, and why."""

    key: str
    text: str
    stage: str
    reason: str


@dataclass(frozen=True)
class LineageCall:
    """One model call that led to a factor; `place` is the piece of work that it answered."""

    place: str
    role: str
    intent: str
    model: str
    tier: str
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True)
class Lineage:
    """How one factor of a run came about; `steps` begin with the oldest known parent and end with the factor."""

    steps: tuple[LineageStep, ...]
    tries: tuple[EarlierTry, ...]
    calls: tuple[LineageCall, ...]


@dataclass(frozen=True)
class LineageReader:
    """Reads lineages of one run; every read is by key, so a long run costs no more than a short one."""

    ledger: Ledger
    run: Run

    def read(self, factor: str) -> Lineage:
        """Return the lineage of a factor; empty where no attempt of an agent is on record."""
        steps = tuple(reversed(list(self._follow(factor))))
        return Lineage(steps, tuple(self._list_tries(steps)), tuple(self._list_calls(steps)))

    def _read_event(self, kind: str, key: str) -> Mapping[str, Any]:
        event = self.ledger.events.get(self.run.id, kind, key)
        body = event.body if event else {}
        return body if isinstance(body, Mapping) else {}

    def _follow(self, factor: str) -> Iterator[LineageStep]:
        """Yield a factor and its parents, the factor first; a circle ends."""
        seen: set[str] = set()
        while factor and factor not in seen and len(seen) < MAX_ANCESTORS:
            seen.add(factor)
            row = self.ledger.evaluations.get(self.run.id, factor)
            key = str(self._read_event("agents.mark", factor).get("key", ""))
            if row is None or not key:
                return
            score = self._read_event("agents.score", key)
            parent = self.ledger.evaluations.get(self.run.id, str(score.get("parent", "")))
            where = str(score.get("where", NO_WEAKNESS))
            yield LineageStep(
                id=factor,
                text=row.text,
                t=row.sheet.get("t"),
                key=key,
                hypothesis=str(score.get("branch", row.hypothesis)),
                intent=str(score.get("intent", "")).replace("_", " "),
                weakness=_find_weakness(parent.sheet, where) if parent else "",
                advice=self._find_advice(key, str(score.get("intent", ""))),
                rationale=self._find_rationale(key),
                change=tuple(compare_texts(parent.text, row.text)) if parent else (),
            )
            factor = parent.factor_id if parent else ""

    def _find_advice(self, key: str, intent: str) -> str:
        """Return why the critique of the step before asked for a change; empty if it did not."""
        branch, step = _split_key(key)
        critique = self._read_event("agents.critique", f"{branch}/s{step - 1}") if step else {}
        asked = (advice for advice in critique.get("advice") or () if advice.get("operator") == intent)
        return next((str(advice.get("why", "")) for advice in asked), "")

    def _find_rationale(self, key: str) -> str:
        items = self._read_event("agents.proposal", _find_work(key)).get("items") or ()
        return next((str(item.get("rationale", "")) for item in items if item.get("key") == key), "")

    def _list_tries(self, steps: Sequence[LineageStep]) -> Iterator[EarlierTry]:
        """Yield the tries for the factor's own place that were refused before it was accepted for scoring."""
        start, _, number = steps[-1].key.rpartition("/a") if steps else ("", "", "")
        for earlier in range(int(number) if number.isdecimal() else 0):
            attempt = self.ledger.attempts.get(self.run.id, f"{start}/a{earlier}")
            if attempt:
                yield EarlierTry(attempt.key, attempt.text, attempt.stage, attempt.reason)

    # The calls. A call is kept under the digest of its request, which holds the seed of the piece of work it answers.

    def _list_calls(self, steps: Sequence[LineageStep]) -> Iterator[LineageCall]:
        shown: set[str] = set()
        works = [place for step in steps for place in _list_works(step.key)]
        if steps and self._read_event("agents.stated", steps[-1].id):
            works += [("agents.mechanisms", work) for work in self._find_statements(steps[-1].id)]
        for kind, work in dict.fromkeys(works):
            for call in self._find_calls(kind, work):
                if call.key not in shown:
                    shown.add(call.key)
                    sizes = call.tokens_in, call.tokens_out, call.cost_usd
                    yield LineageCall(work, call.role, call.intent, call.model, call.tier, *sizes)

    def _find_statements(self, factor: str) -> list[str]:
        """Return the pieces of work in which a mechanism was stated for a factor after it was scored."""
        events = self.ledger.events.of(self.run.id, "agents.mechanisms")
        return [one.key for one in events if factor in {row.get("id") for row in one.body.get("mechanisms") or ()}]

    def _find_calls(self, kind: str, work: str) -> Iterator[ModelCall]:
        """Yield the calls that led to an agent's answer, the first one first."""
        from ..agents import draw_work_seed

        answered = self.ledger.events.find_time(self.run.id, kind, work)
        if not answered:
            return
        asked_again = (f"{work}/anew{number}" for number in range(1, MAX_ASKED_AGAIN + 1))
        wanted = {draw_work_seed(self.run.seed, key) for key in (work, *asked_again)}
        calls = self.ledger.calls.before(self.run.id, answered, MAX_CALLS_COMPARED)
        yield from reversed([call for call in calls if self._read_seed(call) in wanted])

    @cached_property
    def _seeds(self) -> dict[str, int | None]:
        return {}

    def _read_seed(self, call: ModelCall) -> int | None:
        """Return the seed in a call's request; None where its body is gone."""
        from ..ledger import LedgerError

        if call.key not in self._seeds:
            try:
                request = json.loads(self.ledger.objects.get(call.request))
            except (LedgerError, OSError, ValueError):
                request = {}
            self._seeds[call.key] = (request.get("sampling") or {}).get("seed")
        return self._seeds[call.key]


def _find_weakness(sheet: Mapping[str, Any], code: str) -> str:
    rows = (row for row in sheet.get("weaknesses") or () if row.get("code") == code)
    return next((str(row.get("message", code)) for row in rows), "" if code == NO_WEAKNESS else code)


def _split_key(key: str) -> tuple[str, int]:
    """Return the branch and the step of an attempt's key: `r03/h01/s2/c0/a1` is step 2 of r03/h01."""
    branch, _, rest = key.partition("/s")
    step = rest.partition("/")[0]
    return branch, int(step) if step.isdecimal() else 0


def _find_work(key: str) -> str:
    """Return the key of the proposal that holds an attempt: round, hypothesis, step and try."""
    start, _, last = key.rpartition("/")
    return f"{start.rpartition('/')[0]}/{last}"


def _list_works(key: str) -> list[tuple[str, str]]:
    """Return kind and key of the agents' answers that led to an attempt: ideas, the critique before, the proposal."""
    branch, step = _split_key(key)
    before = [("agents.critique", f"{branch}/s{step - 1}")] if step else []
    return [("agents.ideas", branch.partition("/")[0]), *before, ("agents.proposal", _find_work(key))]
