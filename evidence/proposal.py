"""A proposal to be scored: a formula, and the claim that it tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ledger import Ledger, canonical_json
from .errors import EvidenceError

DATA_MINED_TITLE = "data-mined: no mechanism"
"""Title of a factor that came without a mechanism."""
MECHANISM_EVENT = "mechanism"
"""Kind of the event, by factor id, that holds a mechanism stated after scoring: `{claim, refuter, stands, ...}`."""
SET_PREFIX = "set-"
"""Start of the id of a set's hypothesis."""
MAX_ID_CHARS_SHOWN = 100


@dataclass(frozen=True)
class Proposal:
    """A proposed formula with the hypothesis that it tests.

    `key` orders attempts within a run; a repeated key is the same attempt. `description` is the author's description of
    the formula: it is compared with the formula, and may raise a doubt.
    """

    text: str
    claim: Claim
    key: str
    description: str = ""

    def refuse_retold(self, ledger: Ledger, run: str) -> None:
        """Refuse a key or a hypothesis id that already has other contents, before any write or score.

        Raises
        ------
        EvidenceError
            The key belongs to another formula, or the hypothesis id to other words.
        """
        attempt = ledger.attempts.get(run, self.key)
        if attempt and (attempt.text, attempt.hypothesis) != (self.text, self.claim.id):
            raise EvidenceError(
                "This key names an attempt at another formula or hypothesis.",
                field="key",
                got=self.key[:MAX_ID_CHARS_SHOWN],
                allowed="a new key, or the same formula and hypothesis",
                hint="Give every new attempt a key of its own.",
            )
        claim = ledger.events.get(run, "claim", self.claim.id)
        words = self.claim.record()
        if claim and "either_way" not in claim.body:  # a run of before surveys were marked; its own words stand
            words.pop("either_way", None)
        if claim and canonical_json(claim.body) != canonical_json(words):
            raise EvidenceError(
                f"The hypothesis {self.claim.id[:MAX_ID_CHARS_SHOWN]!r} was told otherwise before.",
                field="hypothesis",
                got=self.claim.id[:MAX_ID_CHARS_SHOWN],
                allowed="the same words for the same id",
                hint="Give a changed hypothesis an id of its own.",
            )


def reserved_name_error(name: str) -> EvidenceError:
    """Return the error of a hypothesis with a name that is kept for sets."""
    return EvidenceError(
        f"A hypothesis may not be called {name[:MAX_ID_CHARS_SHOWN]!r}.",
        field="hypothesis.id",
        got=name[:MAX_ID_CHARS_SHOWN],
        allowed=f"an id that does not begin with {SET_PREFIX!r}",
    )


def make_plain_error(message: str, hint: str = "") -> dict[str, Any]:
    """Return the error of a proposal as a whole, without a place in its text."""
    return {"message": message, "hint": hint, "at": None}


@dataclass(frozen=True)
class Claim:
    """The parts of a hypothesis that a rule can check.

    Attributes
    ----------
    direction
        1: a higher factor means a higher return; -1: a lower return.
    horizon_days
        Days over which the mechanism is claimed to work.
    fields
        Columns that the mechanism is about.
    """

    id: str
    mechanism: str
    statement: str
    direction: int
    horizon_days: int
    fields: tuple[str, ...]
    detail: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def data_mined(self) -> bool:
        """Tell whether it states no mechanism: a survey, marked by `either_way`, takes either direction."""
        return bool(self.detail.get("either_way"))

    @property
    def title(self) -> str:
        """Return the statement, or that there is no mechanism."""
        return DATA_MINED_TITLE if self.data_mined else self.statement

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Claim:
        """Read a claim from a record that the caller has validated."""
        plain = {"id", "mechanism", "statement", "direction", "horizon_days", "fields"}
        detail = {key: value for key, value in sorted(record.items()) if key not in plain}
        return cls(
            id=str(record["id"]),
            mechanism=str(record["mechanism"]),
            statement=str(record["statement"]),
            direction=int(record["direction"]),
            horizon_days=int(record["horizon_days"]),
            fields=tuple(sorted({str(name) for name in record["fields"]})),
            detail=detail,
        )

    def restated(self, statement: Mapping[str, Any] | None) -> Claim:
        """Return the claim of a mechanism that was stated after scoring, where it stands; else this one."""
        return Claim.from_record(statement["claim"]) if statement and statement["stands"] else self

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **self.detail,
            "id": self.id,
            "mechanism": self.mechanism,
            "statement": self.statement,
            "direction": self.direction,
            "horizon_days": self.horizon_days,
            "fields": list(self.fields),
        }
