"""HTML to text in one pass: the visible text, and separately the text that the markup hides.

The parser of the standard library is not used: on broken markup some of its releases take quadratic time. A tag ends at
the first `>`, so the rest of an attribute that contains one is read as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_TAG_CHARS = 4000
_TAG_OPENING = re.compile(r"<(?:!--|[a-zA-Z/!?])")
_TAG_NAME = re.compile(r"/?([a-zA-Z][a-zA-Z0-9:._-]*)")
_ATTRIBUTE = re.compile(
    r"([a-zA-Z_:][\w:.-]{0,60})\s{0,10}=\s{0,10}(\"[^\"]*\"?|'[^']*'?|[^\s\"'>]+)|([a-zA-Z][\w:-]{0,60})"
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "center",
        "dd",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "page",
        "pre",
        "section",
        "select",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
    ]
)
_VOID_TAGS = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_UNSEEN_TAGS = frozenset(
    ["script", "style", "template", "noscript", "head", "iframe", "object", "svg", "math", "datalist", "ix:header"]
)
_WRAPPERS = frozenset(
    ["article", "body", "content", "context", "data", "doc", "document", "feed", "item", "message", "news", "passage",
     "quote", "source", "story", "text", "wire", "post", "page", "email", "transcript", "filing"]
)  # fmt: skip  # a table
"""Elements that hold a whole text: closing one that was not opened pretends that the text ends there."""
_THREE_WORDS = re.compile(r"\w\W+\w+\W+\w")
_CODE_TAGS = frozenset(("script", "style"))
_SPOKEN_ATTRIBUTES = frozenset(
    [
        "alt",
        "title",
        "content",
        "value",
        "placeholder",
        "summary",
        "label",
        "aria-label",
        "aria-description",
        "aria-roledescription",
        "aria-valuetext",
        "aria-placeholder",
        "description",
        "prompt",
    ]
)
_CONCEALING_STYLE = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|font-size:0*(?:\.\d+)?(?:[01](?:\.\d+)?)?"
    r"(?:px|pt|em|rem|%)?(?:;|$|!)|opacity:0*\.?0*\d?(?:;|$|!)|color:(?:#fff(?:fff)?|white|transparent|rgba?\(255,255,255|rgba\([\d,.]*,0\))|"
    r"(?:left|top|right|text-indent|margin-left|margin-top):-\d{3,}|(?:max-)?(?:width|height):0(?:px)?(?:;|$|!)|"
    r"clip:rect\(|clip-path:inset\((?:50|100)%|transform:scale\(0|mso-hide:all|line-height:0(?:;|$|!|px)"
)
_CONCEALING_CLASS = re.compile(
    r"(?:^|[\s_-])(?:hidden|invisible|sr-only|visually-hidden|screen-reader\S*|d-none|offscreen|hide)(?:$|[\s_-])"
)


@dataclass
class VisibleText:
    """The visible text, the hidden text, scripts and styles, and the number of tags and forged ends."""

    shown: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    tags: int = 0
    forged: int = 0
    opened: set[str] = field(default_factory=set)
    outside: bool = False
    inside: str = ""
    depth: int = 0

    def add_text(self, piece: str) -> None:
        """Add a piece of text to the part that is open."""
        if self.outside and not self.inside and _THREE_WORDS.search(piece):
            self.forged, self.outside = self.forged + 1, False
        (self.code if self.inside in _CODE_TAGS else self.hidden if self.inside else self.shown).append(piece)

    def add_tag(self, body: str) -> None:
        """Process a tag, without its angle brackets."""
        match = _TAG_NAME.match(body)
        if match is None:
            self.hidden.append(f"\n{body.strip('!?-')}\n")
            return
        self.tags += 1
        name = match[1].lower()
        if not body.startswith("/"):
            self.opened.add(name)
            self._open_element(name, body[match.end() :])
        elif name in _WRAPPERS and name not in self.opened:
            self.outside = True
        elif name == self.inside:
            self.depth -= 1
            self.inside = self.inside if self.depth else ""
        if name in _BLOCKS or self.inside:
            self.add_text("\n")

    def _open_element(self, name: str, rest: str) -> None:
        """Enter an element, and collect the text of its attributes."""
        attributes = [(key or lone, value.strip("\"'")) for key, value, lone in _ATTRIBUTE.findall(rest)]
        self.hidden += [
            f"\n{value}\n"
            for key, value in attributes
            if key.lower() in _SPOKEN_ATTRIBUTES or (key.lower().startswith(("data-", "aria-")) and " " in value)
        ]
        if self.inside:
            if name == self.inside == "p":
                self.inside = "p" if _is_concealed(name, attributes) else ""  # one paragraph ends where the next begins
            elif name == self.inside:
                self.depth += 1
        elif name not in _VOID_TAGS and not rest.endswith("/") and _is_concealed(name, attributes):
            self.inside, self.depth = name, 1


def strip_markup(text: str) -> VisibleText:
    """Return the text that the markup shows and the text that it hides."""
    visible, place = VisibleText(), 0
    close: int | None = -1
    while (match := _TAG_OPENING.search(text, place)) is not None:
        start = match.start()
        visible.add_text(text[place:start])
        if match[0] == "<!--":
            place = _skip_comment(text, start, visible)
            continue
        if close is not None and close < start:
            close = _find_mark(text, ">", start)
        if close is None:
            visible.add_text(text[start:])
            return visible
        inner = text[start + 1 : min(close, start + MAX_TAG_CHARS)]
        if close - start > MAX_TAG_CHARS or "<" in inner:
            visible.add_text("<")
            place = start + 1
        else:
            visible.add_tag(inner)
            place = close + 1
    visible.add_text(text[place:])
    return visible


def _skip_comment(text: str, start: int, visible: VisibleText) -> int:
    """Add a comment to the hidden text and return its end: that of the text if it is never closed."""
    end = text.find("-->", start + 4)
    visible.hidden.append(f"\n{text[start + 4 : end if end >= 0 else len(text)]}\n")
    return end + 3 if end >= 0 else len(text)


def _find_mark(text: str, what: str, start: int) -> int | None:
    """Return the next place of a mark, or None."""
    place = text.find(what, start)
    return place if place >= 0 else None


def _is_concealed(name: str, attributes: list[tuple[str, str]]) -> bool:
    """Return whether a person would not see an element."""
    if name in _UNSEEN_TAGS:
        return True
    for key, value in attributes:
        low, key = value.lower(), key.lower()
        if key == "hidden" or (key == "aria-hidden" and low == "true") or (key == "type" and low == "hidden"):
            return True
        if key == "style" and _CONCEALING_STYLE.search(re.sub(r"\s+", "", low)):
            return True
        if (key == "class" and _CONCEALING_CLASS.search(low)) or (
            key == "color" and low in ("#fff", "#ffffff", "white")
        ):
            return True
        if key == "size" and low in ("0", "0px", "-7"):
            return True
    return False
