"""Sentences of an account: made from values of the record by rule, each with the leaves that it rests on."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .rows import RecordReader, RecordRow

MAX_QUOTED_CHARS = 400
"""Characters of a text of a model or a person that a sentence quotes."""
SHOWN_DIGEST_CHARS = 12
"""Of a SHA-256; the values beside a sentence have all of it."""
DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Quoted:
    """A text that a model or a person wrote; a sentence puts it in quotation marks."""

    text: str


@dataclass(frozen=True)
class Sentence:
    """One fact.

    Attributes
    ----------
    text
        The sentence.
    leaves
        Indexes in the log of the rows that it rests on.
    values
        The values of the record in it, by name.
    kept
        Words that a rephrasing must keep together in a sentence: of a refusal, a failed step, a verdict.
    quoted
        What it quotes of a model or a person.
    """

    text: str
    leaves: tuple[int, ...]
    values: Mapping[str, Any]
    kept: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the sentence as JSON."""
        return {"text": self.text, "leaves": list(self.leaves), "values": dict(self.values)}


@dataclass(frozen=True)
class Responsible:
    """Who answers for a decision; each part is empty where the record does not say."""

    vendor: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()
    deployer: tuple[str, ...] = ()
    approver: tuple[str, ...] = ()

    def record(self) -> dict[str, list[str] | None]:
        """Return the parts as JSON, None where the record does not say."""
        return {
            name: list(part) or None
            for name, part in (
                ("vendor", self.vendor), ("provider", self.provider), ("deployer", self.deployer),
                ("approver", self.approver),
            )
        }  # fmt: skip  # a table


@dataclass(frozen=True)
class DecisionAccount:
    """What the record says of one decision.

    Attributes
    ----------
    kind, subject
        What is explained, such as "factor", and its id.
    sentences
        In the order in which they are told.
    responsible
        Who answers for it.
    changed
        Leaves of rows that differ from them: these rows were changed after they were written.
    labels
        Labels of what its runs were told, such as "confidential".
    size
        Leaves of the log that were read. A sentence without a leaf says what none of them has.
    """

    kind: str
    subject: str
    sentences: tuple[Sentence, ...]
    responsible: Responsible
    changed: tuple[int, ...] = ()
    labels: frozenset[str] = frozenset()
    size: int = 0

    @property
    def text(self) -> str:
        """All sentences."""
        return " ".join(sentence.text for sentence in self.sentences)

    def record(self) -> dict[str, Any]:
        """Return the account as JSON."""
        return {
            "kind": self.kind,
            "id": self.subject,
            "made_by": "rule",
            "sentences": [sentence.record() for sentence in self.sentences],
            "responsible": self.responsible.record(),
            "changed_leaves": list(self.changed),
            "leaves_read": self.size,
        }


@dataclass
class Telling:
    """An account that is being written.

    Attributes
    ----------
    reader
        The record.
    sentences, rows
        What is written, and the rows that it rests on.
    """

    reader: RecordReader
    sentences: list[Sentence] = field(default_factory=list)
    rows: dict[tuple[str, Any], RecordRow] = field(default_factory=dict)
    vendor: list[str] = field(default_factory=list)
    provider: list[str] = field(default_factory=list)
    approver: list[str] = field(default_factory=list)

    def say(self, template: str, rows: Iterable[RecordRow], kept: Sequence[str] = (), **values: Any) -> None:
        """Add a sentence whose places are filled with values; a sentence that was told is not told again."""
        based = list(rows)
        self.rows |= {(row.table, row.number): row for row in based}
        text = template.format(**{name: show_value(value) for name, value in values.items()})
        if any(sentence.text == text for sentence in self.sentences):
            return
        leaves = sorted({row.leaf for row in based if row.leaf is not None})
        named = [name for _, name, _, _ in string.Formatter().parse(template) if name]
        plain = {name: one.text if isinstance(one := values[name], Quoted) else one for name in named}
        quoted = tuple(quote(one.text) for one in values.values() if isinstance(one, Quoted))
        self.sentences.append(Sentence(text, tuple(leaves), plain, tuple(kept), quoted))

    def finish(self, kind: str, subject: str) -> DecisionAccount:
        """Return the account, with who answers for it and what was changed."""
        deployers = self._say_responsible()
        changed = tuple(sorted({row.leaf for row in self.rows.values() if row.changed and row.leaf is not None}))
        found = list(self.sentences)
        if changed:
            numbers = ", ".join(map(str, changed))
            text = (
                f"Warning: what follows cannot be relied on. Rows were changed after they were recorded: those of leaf "
                f"{numbers}. alphaloom record verify says more."
            )
            found.insert(0, Sentence(text, changed, {"changed": list(changed)}))
        unlogged = [row for row in self.rows.values() if row.leaf is None]
        if unlogged:
            rows = ", ".join(f"{row.table}/{row.number}" for row in unlogged)
            found.insert(0, Sentence(f"Warning: these rows have no leaf in the log: {rows}.", (), {"rows": rows}))
        labels = frozenset(label for row in self.rows.values() for label in self.reader.labels(row.run))
        parts = (self.vendor, self.provider, deployers, self.approver)
        responsible = Responsible(*(tuple(dict.fromkeys(part)) for part in parts))
        return DecisionAccount(kind, subject, tuple(found), responsible, changed, labels, self.reader.size)

    def _say_responsible(self) -> list[str]:
        """Say who answers for the decision; return the desks that signed the rows."""
        reader, keys = self.reader, {row.leaf: row for row in self.reader.rows("log_keys")}
        signed = {reader.find_signer(row.leaf) for row in self.rows.values()}
        deployers = sorted(name for name, _ in signed if name)
        for name, leaf in sorted(one for one in signed if one[0]):
            based = [keys[leaf]] if leaf in keys else []
            self.say("The deployer is the desk whose key {deployer} signed these records.", based, deployer=name)
        if not deployers:
            self.say("No checkpoint covers these records yet, so the record does not name a deployer.", ())
        for part, names in (("model vendor", self.vendor), ("model provider", self.provider)):
            if not names:
                self.say("The record does not name a {part} behind this decision.", (), part=part)
        if not self.approver:
            self.say("The record does not name a person who approved it.", ())
        return deployers


def show_value(value: Any) -> str:
    """Return a value as a sentence has it: numbers with seven digits at most, texts of others in quotation marks."""
    match value:
        case Quoted(text):
            return quote(text)
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.7g}"
        case None:
            return "not known"
        case list() | tuple():
            return ", ".join(map(show_value, value)) or "none"
        case str():
            line = value[:SHOWN_DIGEST_CHARS] if DIGEST.fullmatch(value) else _clean(value)
            return line if len(line) <= MAX_QUOTED_CHARS else line[: MAX_QUOTED_CHARS - 1] + "…"
    return str(value)


def quote(text: str) -> str:
    """Return a text on one line in quotation marks, without characters that steer a terminal, cut where it is long."""
    line = _clean(text).replace('"', "'")
    return f'"{line if len(line) <= MAX_QUOTED_CHARS else line[: MAX_QUOTED_CHARS - 1] + "…"}"'


def _clean(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def list_numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, float | int]]:
    """Yield the numbers of a mapping, by name; true and false are none."""
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
