"""One text with where it came from and when it could be known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ..ledger import JSON, compute_digest
from .errors import NewsError
from .instants import format_instant, parse_stored
from .screening.credibility import ITEM_KINDS, ItemKind
from .screening.injection.detector import THRESHOLD, Sign


@dataclass(frozen=True)
class Provenance:
    """Where an item was read: the file's name, the record's number in it from 1, the SHA-256 of the raw record in hex."""

    file: str
    record: int
    sha256: str


@dataclass(frozen=True)
class NewsItem:
    """A text as it is served: clean, dated and weighed.

    Attributes
    ----------
    source, url : str
        Who published it, `platform/author` for a post; where, or empty.
    symbols : tuple[str, ...]
        The names that it is about, sorted.
    title, body : str
        Plain text; either may be empty, not both.
    published, known : datetime
        UTC. `known` is when it could be known here: never before it was published.
    kind : Kind
        `news`, `filing` or `post`.
    provenance : Provenance
        Where it was read.
    credibility : float
        From 0 to 1 (`credibility.weight`).
    flags : tuple[Sign, ...]
        The signs of an injection that fired, also where they are too light to hold the item back.

    Raises
    ------
    NewsError
        If a time has no zone, it was known before it was published, or the weight is not from 0 to 1.
    """

    source: str
    url: str
    symbols: tuple[str, ...]
    title: str
    body: str
    published: datetime
    known: datetime
    kind: ItemKind
    provenance: Provenance
    credibility: float
    flags: tuple[Sign, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would let a later day be seen, or could not be compared."""
        for name in ("published", "known"):
            instant = getattr(self, name)
            if instant.tzinfo is None:
                raise NewsError("an instant needs its zone", field=name, got=str(instant), allowed="UTC")
            object.__setattr__(self, name, instant.astimezone(UTC))
        if self.known < self.published:
            raise NewsError("nothing is known before it is published", field="known", got=format_instant(self.known))
        if not 0.0 <= self.credibility <= 1.0:
            raise NewsError("a weight is out of range", field="credibility", got=self.credibility, allowed="0 to 1")
        if self.kind not in ITEM_KINDS:
            raise NewsError("there is no such kind", field="kind", got=self.kind, allowed=list(ITEM_KINDS))

    @property
    def id(self) -> str:
        """Return the SHA-256 of what was said, by whom, about what and when; not of where it was read or since when known."""
        said = [
            self.source,
            self.url,
            list(self.symbols),
            self.title,
            self.body,
            format_instant(self.published),
            self.kind,
        ]
        return compute_digest(said)

    @property
    def score(self) -> float:
        """Return the sum of the weights of its signs."""
        return round(sum(sign.weight for sign in self.flags), 3)

    @property
    def injected(self) -> bool:
        """Tell whether its signs hold it back."""
        return self.score >= THRESHOLD

    def record(self, evidence: bool = False) -> dict[str, JSON]:
        """Return the item as JSON; the words in which signs showed only for a person."""
        flags: list[JSON] = []
        for sign in self.flags:
            shown: dict[str, JSON] = {"name": sign.name, "weight": sign.weight}
            flags.append(shown | ({"evidence": sign.evidence} if evidence else {}))
        return {
            "id": self.id,
            "source": self.source,
            "url": self.url,
            "symbols": list(self.symbols),
            "title": self.title,
            "body": self.body,
            "published": format_instant(self.published),
            "known": format_instant(self.known),
            "kind": self.kind,
            "provenance": vars(self.provenance).copy(),
            "credibility": self.credibility,
            "flags": flags,
        }

    @classmethod
    def read(cls, record: dict[str, object]) -> NewsItem:
        """Return the item of a record."""
        fields = {name: value for name, value in record.items() if name != "id"}
        place, flags, symbols = fields.pop("provenance"), fields.pop("flags"), fields.pop("symbols")
        assert isinstance(place, dict)
        assert isinstance(flags, list)
        assert isinstance(symbols, list)
        fields |= {name: parse_stored(str(fields[name])) for name in ("published", "known")}
        signs = tuple(Sign(each["name"], each["weight"], each.get("evidence", "")) for each in flags)
        return cls(**fields, symbols=tuple(symbols), provenance=Provenance(**place), flags=signs)  # type: ignore[arg-type]
