"""Who wrote the hypothesis and the formula of a factor: models, rules of the program, or a person.

A model wrote a text if one of its replies on record contains it. A factor's authors are those of its hypothesis, of its
formula, of the formulas that it was changed from, and of the critiques that asked for the changes. Where no reply
contains a text, every model that answered the agents of the run counts: too many authors make days look exposed, too
few would make them look clean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ...evidence import MECHANISM_EVENT
from ...ledger import Ledger, LedgerError, ModelCall, Run, list_texts

AGENT_ROLES: Final = ("idea", "factor", "eval")
"""Roles whose replies become hypotheses, formulas, and critiques that ask for a change."""
RULES_PROVIDER: Final = "offline"
"""Provider of the offline researcher: rules of this program, no language model."""
MAX_PARENTS: Final = 50
SEED_LIBRARY: Final = "seed library"
"""Source of a hypothesis whose formula is a person's, too."""
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class DeclaredModel:
    """A model as the campaign file declares it.

    Attributes
    ----------
    name
        Its name in the file.
    model
        Provider and model, as it is asked.
    cutoff
        Last day of its training data as its vendor claims, ISO; empty where none is declared.
    """

    name: str
    model: str
    cutoff: str

    @property
    def is_rules(self) -> bool:
        """Return whether it is the offline researcher, which is no language model."""
        return self.model.partition("/")[0] == RULES_PROVIDER


@dataclass(frozen=True)
class Authors:
    """Who wrote a hypothesis and its formula.

    Attributes
    ----------
    models
        Names of models, sorted; the offline researcher among them.
    people
        Parts of a person that it came from, such as the seed library, sorted.
    certain
        False where a text was in no reply on record, so that every model counts that answered the run's agents.
    """

    models: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    certain: bool = True

    def join(self, others: Sequence[Authors]) -> Authors:
        """Return the authors of all."""
        every = [self, *others]
        models, people = ({name for one in every for name in getattr(one, kind)} for kind in ("models", "people"))
        return Authors(tuple(sorted(models)), tuple(sorted(people)), all(one.certain for one in every))


@dataclass(frozen=True)
class AuthorReader:
    """Reads authors from the record of one run."""

    ledger: Ledger
    run: Run

    @cached_property
    def models(self) -> Mapping[str, DeclaredModel]:
        """Return the models of the campaign file, and those of other runs whose recorded replies were taken."""
        declared = _list_models(self.run)
        for call in self._calls:
            name = self._names[call.key]
            if name not in declared:
                declared[name] = _list_models(self._find_origin(call)).get(name, DeclaredModel(name, name, ""))
        return declared

    @cached_property
    def everyone(self) -> Authors:
        """Return every model that answered the agents, and every part of a person that hypotheses came from."""
        sources = {str(body["source"]) for body in self._hypotheses.values() if body.get("source")}
        return Authors(self._answering, tuple(sorted(sources)))

    @property
    def has_language_model(self) -> bool:
        """Return whether a language model answered the run's agents."""
        return any(not self.models[name].is_rules for name in self._answering)

    def read(self, factor: str, members: Sequence[str] = ()) -> Authors:
        """Return the authors of a factor, or of the members of a combination."""
        if members:
            return Authors().join([self.read(name) for name in members])
        if not self.has_language_model and not self.everyone.people:
            return Authors(self._answering)
        row = self.ledger.evaluations.get(self.run.id, factor)
        steps = list(self._follow(factor))
        if row is None or not steps:
            return Authors(self._answering, certain=False)
        branches = dict.fromkeys([row.hypothesis, *(branch for branch, _, _ in steps)])
        found = [self._read_hypothesis(branch) for branch in branches]
        found += [self._read_formula(branch, text) for branch, _, text in steps]
        found += [self._read_critique(key) for _, key, _ in steps]
        return Authors().join([*found, self._read_statement(factor)])

    # The parts of a factor.

    def _follow(self, factor: str) -> Iterator[tuple[str, str, str]]:
        """Yield branch, attempt and text of a factor and of the formulas that it was changed from; a circle ends."""
        seen: set[str] = set()
        while factor and factor not in seen and len(seen) < MAX_PARENTS:
            seen.add(factor)
            key = str(self._read_event("agents.mark", factor).get("key", ""))
            score = self._read_event("agents.score", key)
            if not score:
                return
            yield str(score.get("branch", "")), key, str(score.get("text", ""))
            factor = str(score.get("parent", ""))

    def _read_hypothesis(self, branch: str) -> Authors:
        body = self._hypotheses.get(branch, {})
        if source := str(body.get("source") or ""):
            return Authors(people=(source,))
        return self._find_writers(str(body.get("statement", "")))

    def _read_formula(self, branch: str, text: str) -> Authors:
        source = str(self._hypotheses.get(branch, {}).get("source") or "")
        return Authors(people=(source,)) if source == SEED_LIBRARY else self._find_writers(text)

    def _read_critique(self, key: str) -> Authors:
        """Return who wrote the critique before an attempt such as r03/h01/s2/c0/a1; rules write one, too."""
        branch, _, rest = key.partition("/s")
        step = rest.partition("/")[0]
        before = self._read_event("agents.critique", f"{branch}/s{int(step) - 1}") if step.isdecimal() else {}
        reasons = [str(advice.get("why", "")) for advice in before.get("advice") or () if isinstance(advice, Mapping)]
        writers = {name for reason in filter(None, reasons) for name in self._search(reason)}
        return Authors(tuple(sorted(writers)))

    def _read_statement(self, factor: str) -> Authors:
        """Return who stated a mechanism after scoring."""
        claim = self._read_event(MECHANISM_EVENT, factor).get("claim") or {}
        words = str(claim.get("statement", ""))
        return self._find_writers(words) if words else Authors()

    def _find_writers(self, text: str) -> Authors:
        writers = self._search(text)
        return Authors(tuple(sorted(writers))) if writers else Authors(self._answering, certain=False)

    def _search(self, text: str) -> set[str]:
        wanted = _BLANKS.sub("", text)
        return {name for name, reply in self._replies if wanted in reply} if wanted else set()

    # The record.

    @cached_property
    def _calls(self) -> Sequence[ModelCall]:
        return [call for call in self.ledger.calls.of(self.run.id) if call.role in AGENT_ROLES]

    @cached_property
    def _answering(self) -> tuple[str, ...]:
        return tuple(sorted({self._names[call.key] for call in self._calls}))

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Return the model of each call as this run's file calls it.

        A reply that was taken from another run has the name of that run's file.
        """
        own = {model.model: name for name, model in reversed(_list_models(self.run).items())}
        names = {}
        for call in self._calls:
            declared = None if call.attempts else _list_models(self._find_origin(call)).get(call.model)
            names[call.key] = own.get(declared.model, call.model) if declared else call.model
        return names

    def _find_origin(self, call: ModelCall) -> Run:
        first = self.ledger.calls.first(call.key)
        return self.run if first is None else self.ledger.runs.find(first.run)

    @cached_property
    def _replies(self) -> Sequence[tuple[str, str]]:
        """Return model and words of each reply, without white space; a reply that is gone has no words."""
        return [(self._names[call.key], self._read_reply(call)) for call in self._calls]

    def _read_reply(self, call: ModelCall) -> str:
        try:
            text = str(json.loads(self.ledger.objects.get(call.reply))["text"])
        except (LedgerError, OSError, ValueError, KeyError):
            return ""
        try:
            return _BLANKS.sub("", "\n".join(list_texts(json.loads(text))))
        except ValueError:  # words around the object
            return _BLANKS.sub("", text.replace("\\n", " ").replace('\\"', '"'))

    @cached_property
    def _hypotheses(self) -> Mapping[str, Mapping[str, Any]]:
        return {event.key: event.body for event in self.ledger.events.of(self.run.id, "agents.hypothesis")}

    def _read_event(self, kind: str, key: str) -> Mapping[str, Any]:
        event = self.ledger.events.get(self.run.id, kind, key)
        return event.body if event and isinstance(event.body, Mapping) else {}


def _list_models(run: Run) -> dict[str, DeclaredModel]:
    """Return the models of a run's settings by name."""
    settings = (run.config.get("settings") or run.config).get("models") or {}
    rows = settings.get("models") or {}
    return {
        name: DeclaredModel(name, str(row.get("model", "")), str(row.get("cutoff") or "")) for name, row in rows.items()
    }
