"""One text: the item that is served, the raw record that it is built from, and the source of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ..ledger import JSON, compute_digest
from .errors import NewsError
from .instants import format_instant, parse_stored
from .screening.credibility import ITEM_KINDS, ItemKind
from .screening.injection.detector import THRESHOLD, Sign


@dataclass(frozen=True)
class Provenance:
    """Where an item was read: the file's name, the number of the record from 1, and the raw record's SHA-256 in hex."""

    file: str
    record: int
    sha256: str


@dataclass(frozen=True)
class NewsItem:
    """A text as it is served: cleaned, dated and weighted by credibility.

    Attributes
    ----------
    source, url : str
        The publisher, `platform/author` for a post; the address, or empty.
    symbols : tuple[str, ...]
        The symbols that it is about, sorted.
    title, body : str
        Plain text; either may be empty, not both.
    published, known : datetime
        UTC. `known` is when it could be known here: never before it was published.
    kind : ItemKind
        `news`, `filing` or `post`.
    provenance : Provenance
        Where it was read.
    credibility : float
        From 0 to 1 (`weigh_source`).
    flags : tuple[Sign, ...]
        The signs of injection found, also where they are too light to hold the item back.

    Raises
    ------
    NewsError
        A time without a zone, `known` before `published`, or a credibility outside 0 to 1.
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
        """Refuse times that would reveal a later day, or that cannot be compared."""
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
        """Return the SHA-256 of the content, publisher, symbols and time; not of the file or of `known`."""
        content = [
            self.source,
            self.url,
            list(self.symbols),
            self.title,
            self.body,
            format_instant(self.published),
            self.kind,
        ]
        return compute_digest(content)

    @property
    def score(self) -> float:
        """Return the sum of the signs' weights."""
        return round(sum(sign.weight for sign in self.flags), 3)

    @property
    def injected(self) -> bool:
        """Return whether its signs hold it back."""
        return self.score >= THRESHOLD

    def record(self, evidence: bool = False) -> dict[str, JSON]:
        """Return the item as JSON; with `evidence` the words of each sign, which are for a person only."""
        flags: list[JSON] = []
        for sign in self.flags:
            flag: dict[str, JSON] = {"name": sign.name, "weight": sign.weight}
            flags.append(flag | ({"evidence": sign.evidence} if evidence else {}))
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
        signs = tuple(Sign(flag["name"], flag["weight"], flag.get("evidence", "")) for flag in flags)
        return cls(**fields, symbols=tuple(symbols), provenance=Provenance(**place), flags=signs)  # type: ignore[arg-type]


@dataclass(frozen=True)
class NewsSource:
    """Where texts come from.

    Attributes
    ----------
    path : Path
        RSS 2.0 or Atom (.xml, .rss, .atom), JSON lines (.jsonl, .ndjson), a filing (.txt, .sgml, .nc) or a table
        (.parquet, .csv).
    source : str
        Publisher of the records that state none; by default the title of the feed, or the file's name without
        extension.
    kind : ItemKind
        Kind of the records that state none; a filing is always a filing.
    ingested : datetime, optional
        When the file was fetched: nothing in it was known before. Without it an item is known from its publication on.
    weights : Mapping[str, float]
        Credibility of sources, by name; `*` is for all others (`screening/credibility.py`).
    symbols : tuple[str, ...]
        Symbols of the records that name none.
    filers : Mapping[str, str]
        Symbol of each filer by its number at the regulator (CIK), which filings state in place of a symbol.
    masked : bool
        Whether the names of authors were removed: then each record without a source is a voice of its own (`crowd`),
        called by the name of the source and the start of the record's hash.
    """

    path: Path
    source: str = ""
    kind: ItemKind = "news"
    ingested: datetime | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()
    filers: Mapping[str, str] = field(default_factory=dict)
    masked: bool = False

    def __post_init__(self) -> None:
        """Turn a path given as text into a path, and names into one spelling."""
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "weights", {name.casefold(): value for name, value in self.weights.items()})
        object.__setattr__(self, "filers", {number.lstrip("0"): symbol for number, symbol in self.filers.items()})


@dataclass(frozen=True)
class RawRecord:
    """A record as its file has it: number from 1, text by field, bytes, and `instant`, the parser of its times."""

    number: int
    fields: Mapping[str, str]
    raw: bytes
    instant: Callable[[str], datetime]
    instant_allowed: str
    symbols: tuple[str, ...] = ()
