"""RSS 2.0 and Atom feeds, parsed by expat; a document type is refused.

Without a document type XML has only its five built-in entities, so none can be fetched and none can expand.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from .errors import Findings
from .instants import ZONED_FORMAT, parse_feed
from .item import RawRecord

MAX_FEED_DEPTH = 200
_ATOM = "http://www.w3.org/2005/Atom"
_CONTENT = "http://purl.org/rss/1.0/modules/content/"
_DUBLIN = "http://purl.org/dc/elements/1.1/"
_ITEMS = ("item", f"{_ATOM} entry")
_TEXT_TAGS = {
    "title": "title", "link": "url", "description": "summary", "pubDate": "published", "guid": "guid",
    "author": "author", f"{_CONTENT} encoded": "body", f"{_DUBLIN} date": "date", f"{_DUBLIN} creator": "author",
    "category": "category", f"{_ATOM} title": "title", f"{_ATOM} summary": "summary", f"{_ATOM} content": "body",
    f"{_ATOM} published": "published", f"{_ATOM} updated": "updated", f"{_ATOM} id": "guid",
}  # fmt: skip  # a table
_MARKET_DOMAINS = ("ticker", "stock", "symbol", "finance", "security")


class _RefusedFeed(Exception):
    """A feed that must not be parsed further; its text says why."""


@dataclass
class _Feed:
    """The state of the parser: the open elements, the current item, and the records so far."""

    parser: expat.XMLParserType
    body: bytes
    path: list[str] = field(default_factory=list)
    current: dict[str, str] | None = None
    symbols: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    inside: int = 0
    markup: bool = False
    ticker: bool = False
    start: int = 0
    title: str = ""
    records: list[tuple[dict[str, str], tuple[str, ...], bytes]] = field(default_factory=list)

    def open_element(self, name: str, attributes: dict[str, str]) -> None:
        """Enter an element."""
        self.path.append(name)
        if len(self.path) > MAX_FEED_DEPTH:
            raise _RefusedFeed(f"elements are more than {MAX_FEED_DEPTH} deep")
        if self.inside:
            markup = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items())
            self.text.append(f"<{name.rpartition(' ')[2]}{markup}>")
        elif name in _ITEMS and self.current is None:
            self.current, self.symbols, self.start = {}, [], self.parser.CurrentByteIndex
        elif name in _TEXT_TAGS and (self.current is not None or len(self.path) <= 3):
            self.text, self.inside = [], len(self.path)
            self.markup = name.startswith(_ATOM) and attributes.get("type", "text") == "text"
            self.ticker = _is_market_domain(attributes.get("domain", ""))
        elif name == f"{_ATOM} link" and self.current is not None and attributes.get("rel", "alternate") == "alternate":
            self.current.setdefault("url", attributes.get("href", ""))
        elif (
            name == f"{_ATOM} category" and self.current is not None and _is_market_domain(attributes.get("scheme", ""))
        ):
            self.symbols.append(attributes.get("term", ""))

    def close_element(self, name: str) -> None:
        """Leave an element."""
        if self.inside == len(self.path):
            self._set_field(_TEXT_TAGS[name], "".join(self.text).strip())
            self.inside = 0
        elif self.inside:
            self.text.append(f"</{name.rpartition(' ')[2]}>")
        elif name in _ITEMS and self.current is not None:
            self.records.append(
                (self.current, tuple(self.symbols), self.body[self.start : self.parser.CurrentByteIndex])
            )
            self.current = None
        self.path.pop()

    def add_text(self, text: str) -> None:
        """Add a piece of text; plain text of Atom is escaped, because `<b>` in it is not markup."""
        if self.inside:
            self.text.append(html.escape(text, quote=False) if self.markup or len(self.path) > self.inside else text)

    def _set_field(self, name: str, text: str) -> None:
        """Set a field of the current item; the first of several elements wins."""
        if self.current is None:
            self.title = self.title or (text if name == "title" else "")
        elif name == "category":
            self.symbols += [text] if self.ticker and text else []
        else:
            self.current.setdefault(name, text)


def _is_market_domain(name: str) -> bool:
    """Return whether a scheme of categories is one of securities."""
    return any(word in name.lower() for word in _MARKET_DOMAINS)


def read_feed(path: Path, body: bytes, findings: Findings) -> tuple[list[RawRecord], str]:
    """Return the records of a feed and its title; mistakes of the file as a whole are findings."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    feed = _Feed(parser, body)
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = (
        feed.open_element,
        feed.close_element,
        feed.add_text,
    )
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(body, True)
    except _RefusedFeed as problem:
        findings.add(0, "", str(problem), hint="Fetch the feed itself; a page or a document with a type is none.")
        return [], ""
    except expat.ExpatError as problem:
        what = f"line {problem.lineno}, column {problem.offset + 1}: {expat.ErrorString(problem.code)}"
        findings.add(len(feed.records) + 1 if feed.current is not None else 0, "", "it is not well-formed XML", what)
        return [], ""
    except (ValueError, LookupError) as problem:
        findings.add(0, "", "its encoding cannot be read", str(problem), "UTF-8, UTF-16 or ISO-8859-1")
        return [], ""
    if not feed.records:
        findings.add(0, "", "there is no item in it", allowed="RSS 2.0 with <item> or Atom with <entry>")
    return [_make_record(number, *record) for number, record in enumerate(feed.records, 1)], feed.title


def _refuse_doctype(*_: object) -> None:
    """Refuse a document type, and with it every entity."""
    raise _RefusedFeed("a document type is refused")


def _make_record(number: int, element: dict[str, str], symbols: tuple[str, ...], body: bytes) -> RawRecord:
    """Return the record of an item; an entry that was updated is known from the update on."""
    fields = {
        "title": element.get("title", ""),
        "body": element.get("body") or element.get("summary", ""),
        "url": element.get("url", ""),
    }
    if not fields["url"] and element.get("guid", "").startswith("http"):
        fields["url"] = element["guid"]
    fields["published"] = element.get("published") or element.get("date") or element.get("updated", "")
    if element.get("updated") and element.get("published"):
        fields["known"] = element["updated"]
    allowed = f"{ZONED_FORMAT}, or as mail writes it: Fri, 30 Jan 2015 21:30:00 GMT"
    return RawRecord(number, fields, body, parse_feed, allowed, symbols)
