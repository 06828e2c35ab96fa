"""RSS 2.0 and Atom: feeds of articles, read by expat with every document type refused.

Without a document type there are no entities but the five of XML, so none can be fetched and none can grow.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from .instants import ZONED_FORMAT, from_feed
from .records import Findings, RawRecord

MAX_FEED_DEPTH = 200
_ATOM = "http://www.w3.org/2005/Atom"
_CONTENT = "http://purl.org/rss/1.0/modules/content/"
_DUBLIN = "http://purl.org/dc/elements/1.1/"
_ITEMS = ("item", f"{_ATOM} entry")
_TEXT_TAGS = {
    "title": "title", "link": "url", "description": "summary", "pubDate": "published", "guid": "guid", "author": "author",
    f"{_CONTENT} encoded": "body", f"{_DUBLIN} date": "date", f"{_DUBLIN} creator": "author", "category": "category",
    f"{_ATOM} title": "title", f"{_ATOM} summary": "summary", f"{_ATOM} content": "body", f"{_ATOM} published": "published",
    f"{_ATOM} updated": "updated", f"{_ATOM} id": "guid",
}  # fmt: skip
_MARKET_DOMAINS = ("ticker", "stock", "symbol", "finance", "security")


class _Refused(Exception):
    """A feed that expat must not go on with; its text says why."""


@dataclass
class _Feed:
    """What expat has told so far."""

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

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """Enter an element."""
        self.path.append(name)
        if len(self.path) > MAX_FEED_DEPTH:
            raise _Refused(f"elements are more than {MAX_FEED_DEPTH} deep")
        if self.inside:
            said = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items())
            self.text.append(f"<{name.rpartition(' ')[2]}{said}>")
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

    def closed(self, name: str) -> None:
        """Leave an element."""
        if self.inside == len(self.path):
            self._note(_TEXT_TAGS[name], "".join(self.text).strip())
            self.inside = 0
        elif self.inside:
            self.text.append(f"</{name.rpartition(' ')[2]}>")
        elif name in _ITEMS and self.current is not None:
            self.records.append(
                (self.current, tuple(self.symbols), self.body[self.start : self.parser.CurrentByteIndex])
            )
            self.current = None
        self.path.pop()

    def said(self, text: str) -> None:
        """Take a piece of text; what Atom calls plain text is no markup, whatever it looks like."""
        if self.inside:
            self.text.append(html.escape(text, quote=False) if self.markup or len(self.path) > self.inside else text)

    def _note(self, name: str, text: str) -> None:
        """Keep what an element said, the first if there are several."""
        if self.current is None:
            self.title = self.title or (text if name == "title" else "")
        elif name == "category":
            self.symbols += [text] if self.ticker and text else []
        else:
            self.current.setdefault(name, text)


def _is_market_domain(name: str) -> bool:
    """Tell whether a list of categories is one of securities."""
    return any(each in name.lower() for each in _MARKET_DOMAINS)


def read_feed(path: Path, body: bytes, findings: Findings) -> tuple[list[RawRecord], str]:
    """Return the records of a feed and its title; what is wrong with the file as a whole is noted."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    feed = _Feed(parser, body)
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = (
        feed.opened,
        feed.closed,
        feed.said,
    )
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(body, True)
    except _Refused as problem:
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
    raise _Refused("a document type is refused")


def _make_record(number: int, said: dict[str, str], symbols: tuple[str, ...], body: bytes) -> RawRecord:
    """Return the record of an item; an entry that was changed later is known from the change on."""
    fields = {
        "title": said.get("title", ""),
        "body": said.get("body") or said.get("summary", ""),
        "url": said.get("url", ""),
    }
    if not fields["url"] and said.get("guid", "").startswith("http"):
        fields["url"] = said["guid"]
    fields["published"] = said.get("published") or said.get("date") or said.get("updated", "")
    if said.get("updated") and said.get("published"):
        fields["known"] = said["updated"]
    allowed = f"{ZONED_FORMAT}, or as mail writes it: Fri, 30 Jan 2015 21:30:00 GMT"
    return RawRecord(number, fields, body, from_feed, allowed, symbols)
