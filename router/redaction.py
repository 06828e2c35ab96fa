"""Redaction of logs and error texts: keys, and positions (symbols with amounts).

Prompts are not redacted: a text that a model may not see is not sent at all (`bar_reason`), and any other is sent
unchanged.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from urllib.parse import quote

from .keys import ADDRESS_WITH_PASSWORD, KEY_PATTERN, NAMED_KEY

KEY_MASK, POSITION_MASK = "***", "[position]"
OWN_LOGGER = "alphaloom.router"
LIBRARY_LOGGERS = (
    "LiteLLM",
    "LiteLLM Router",
    "LiteLLM Proxy",
    "openai",
    "httpx",
    "httpcore",
    "httpx2",
    "httpcore2",
    "aiohttp",
)
GUARDED_LOGGERS = (OWN_LOGGER, *LIBRARY_LOGGERS)
"""Loggers of this room and of its HTTP libraries, which could repeat a text; their child loggers are guarded too."""
SILENCED_LOGGERS = ("LiteLLM", "LiteLLM Router")
"""Loggers of which no record of our calls is written unless LITELLM_LOG is set: failures arrive as errors."""
MIN_BARE_KEY_CHARS = 4
"""A shorter key, in characters, is masked only as a whole word: elsewhere it would cut words apart."""

_SECURITY_NAME = r"(?:[A-Z]{1,6}|\d{4,6}(?=\.[A-Z]))(?:[./-][A-Z]{1,3})?(?: [A-Z]{2} Equity)?"
_AMOUNT = r"[-+\u2212]?[$€£]?\d(?:[\d,._'\u00a0]{0,30}\d)?"
_SCALE = r"(?:\s?(?:[kKmM]|mm|bn)\b)?"
_UNIT = r"(?:\s?%|\s?(?i:shs?|shares?|units?|contracts?|lots?|bps?|pct|usd|eur|gbp|chf|jpy|notional|nominal)\b)"
_SIDE = (
    r"(?i:(?:target|current|net|gross|new|old)\s)?"
    r"(?i:long|short|buys?|bought|buying|sells?|sold|selling|holds?|held|holding|own|owns|cover(?:ed|s)?|"
    r"position(?: (?:in|of))?|target|weight|notional|quantity|qty|exposure(?: to)?|"
    r"order(?: (?:for|of))?|trim(?:med)?|add(?:ed)?)"
)
_WORD_START, _WORD_END = r"(?<![\w.$/-])", r"(?![\w])"
_SPOKEN_POSITIONS = tuple(
    re.compile(_WORD_START + pattern + _WORD_END)
    for pattern in (
        rf"{_SIDE}:?\s{_AMOUNT}{_SCALE}{_UNIT}?(?:\s(?i:of|in))?\s{_SECURITY_NAME}",
        rf"{_SIDE}:?\s{_SECURITY_NAME}(?:\s?[:=@]\s?|\s(?:(?i:at|to|of)\s)?){_AMOUNT}{_SCALE}{_UNIT}?",
        rf"{_SECURITY_NAME}(?:\s?[:=,]\s?|\s){_SIDE}(?:\s?[:=]\s?|\s){_AMOUNT}{_SCALE}{_UNIT}?",
        rf"{_SECURITY_NAME}(?:\s?[:=,]\s?|\s){_AMOUNT}{_SCALE}{_UNIT}",
        rf"{_AMOUNT}{_SCALE}{_UNIT}(?:\s(?i:of|in))?\s{_SECURITY_NAME}",
    )
)
"""Positions as people write them: a side, a name and an amount, or a name and an amount with its unit."""

_QUOTE = r"[\"'\\]{0,4}"
_MEMBER = r"(?<![A-Za-z0-9])({quote}\b(?:{names}){quote}\s?[:=]\s?)"
_NAME_KEYS = "symbols?|tickers?|assets?|instruments?|isins?|cusips?|sedols?|securit(?:y|ies)|ric|figi"
_AMOUNT_KEYS = (
    "quantit(?:y|ies)|qty|shares|units|contracts|lots|size|target(?:_(?:bp|bps|e8|weight|shares|position))?|targets|weights?"
    "|notional(?:_usd)?|positions?|holdings?|exposures?|held(?:_bp|_e8)?|(?:lo|hi)_(?:bp|e8)|amount|market_value|side"
)
_VALUE = r"(?:\\?\"(?:[^\"\\]|\\(?!\")){0,200}\\?\"|'[^'\\]{0,200}'|[-+]?[\w.:%-]{1,60}(?:,\d{3}[\w.%]{0,20}){0,6})"
_NAMES = re.compile("(?i)" + _MEMBER.format(quote=_QUOTE, names=_NAME_KEYS) + _VALUE)
_AMOUNTS = re.compile("(?i)" + _MEMBER.format(quote=_QUOTE, names=_AMOUNT_KEYS) + _VALUE)
_BOOKS = re.compile(
    "(?i)"
    + _MEMBER.format(quote=_QUOTE, names=f"{_NAME_KEYS}|{_AMOUNT_KEYS}|orders|book|portfolio|trades|fills")
    + r"(?=[\[{])"
)
_HAS_NAME = re.compile(rf"(?i)(?<![A-Za-z0-9]){_QUOTE}\b(?:{_NAME_KEYS}){_QUOTE}\s?[:=]\s?[\"'\\\[\w]")
_OPENING_BRACKETS, _CLOSING_BRACKETS = "[{", "]}"


class Redactor:
    """Masks keys and positions in a text. A text without any is returned unchanged, and masking twice changes nothing.

    Parameters
    ----------
    keys : iterable of str
        Known keys. Text in the shape of a key of a known service is masked as well.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._keys: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self.learn(keys)

    def learn(self, keys: Iterable[str]) -> None:
        """Add known keys."""
        self._keys |= {key for key in keys if key and key not in KEY_MASK}
        spellings = {
            spelling
            for key in self._keys
            for spelling in (key, quote(key, safe=""), json.dumps(key)[1:-1], repr(key)[1:-1])
        }
        longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        parts = [
            re.escape(spelling) if len(spelling) >= MIN_BARE_KEY_CHARS else rf"(?<!\w){re.escape(spelling)}(?!\w)"
            for spelling in longest_first
        ]
        self._known = re.compile("|".join(parts)) if parts else None

    def __call__(self, text: str) -> str:
        """Return the text without keys and positions."""
        return mask_positions(self.without_keys(text))

    def holds_known_key(self, text: str) -> bool:
        """Return whether the text has a key that was learnt."""
        return self._known is not None and bool(self._known.search(text))

    def without_keys(self, text: str) -> str:
        """Return the text without keys."""
        if self._known is not None:
            text = self._known.sub(KEY_MASK, text)
        text = KEY_PATTERN.sub(KEY_MASK, text)
        text = NAMED_KEY.sub(lambda match: match[1] + KEY_MASK, text)
        return ADDRESS_WITH_PASSWORD.sub(lambda match: f"{match[1]}{KEY_MASK}@", text)


def mask_positions(text: str) -> str:
    """Return the text without positions and orders, in prose and in records."""
    text = _mask_books(text)
    if _HAS_NAME.search(text):  # a weight without a symbol reveals no position
        for members in (_NAMES, _AMOUNTS):
            text = members.sub(_mask_member, text)
    for pattern in _SPOKEN_POSITIONS:
        text = pattern.sub(POSITION_MASK, text)
    return text


def _mask_member(match: re.Match[str]) -> str:
    """Return a member with its value masked."""
    return f'{match[1]}"{POSITION_MASK}"'


def _mask_books(text: str) -> str:
    """Return the text without lists and objects that hold positions, such as `"weights": {"AAPL": 0.03}`."""
    parts, start = [], 0
    for match in _BOOKS.finditer(text):
        if match.end() < start:  # inside a masked one
            continue
        parts += [text[start : match.end()], f'"{POSITION_MASK}"']
        start = _find_bracket_end(text, match.end())
    return "".join([*parts, text[start:]])


def _find_bracket_end(text: str, start: int) -> int:
    """Return the index after the closing bracket; the length of the text if it has none."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in _OPENING_BRACKETS) - (text[at] in _CLOSING_BRACKETS)
        if not depth:
            return at + 1
    return len(text)


_SHARED_REDACTOR = Redactor()
"""The redactor of all loggers: they belong to the process, and so do the keys that they must not write."""


def redact_text(text: str) -> str:
    """Return a text without positions and without the keys of any router of this process."""
    return _SHARED_REDACTOR(text)


_OWN_CALL: ContextVar[bool] = ContextVar("alphaloom_own_call", default=False)


@contextlib.contextmanager
def hold_own_call() -> Iterator[None]:
    """Mark what is done meanwhile as a call of ours: what libraries log of it is masked."""
    token = _OWN_CALL.set(True)
    try:
        yield
    finally:
        _OWN_CALL.reset(token)


class _Filter(logging.Filter):
    """Masks keys and positions in the records of this room, and in those of a library about calls of this room.

    A library belongs to the whole process: a record about somebody else's call stays as it is, unless it has a key of
    ours.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; return whether it is written."""
        if not record.name.startswith(OWN_LOGGER):
            if not _OWN_CALL.get() and not _holds_known_key(record):
                return True
            if _OWN_CALL.get() and record.name in SILENCED_LOGGERS and "LITELLM_LOG" not in os.environ:
                return False
        record.msg, record.args = _SHARED_REDACTOR(_read_message(record)), None
        record.exc_text = _read_traceback(record) or record.exc_text
        record.exc_info = None
        for name, value in _list_extras(record):
            record.__dict__[name] = _SHARED_REDACTOR(value)
        return True


def _read_message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} (its arguments do not fit)"


def _read_traceback(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[0] is None:
        return ""
    return "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")


def _list_extras(record: logging.LogRecord) -> list[tuple[str, str]]:
    """Return the attributes of a record that may contain a part of a message, as texts."""
    return [
        (name, value if isinstance(value, str) else repr(value))
        for name, value in record.__dict__.items()
        if name not in _RECORD_ATTRIBUTES and not isinstance(value, int | float | bool | None)
    ]


def _holds_known_key(record: logging.LogRecord) -> bool:
    texts = [_read_message(record), _read_traceback(record), *(value for _, value in _list_extras(record))]
    return any(map(_SHARED_REDACTOR.holds_known_key, texts))


_RECORD_ATTRIBUTES = logging.makeLogRecord({}).__dict__.keys() - {"exc_text", "stack_info"}
"""Attributes of every record that contain no part of a message; the error's text and the stack are masked."""
_FILTER = _Filter()


def guard_loggers(keys: Iterable[str] = (), find: Callable[[str], logging.Logger] = logging.getLogger) -> None:
    """Mask keys and positions in what the loggers of this room and of its HTTP libraries write of its calls.

    A filter sees only the records of its own logger, so every existing logger gets one. This is called again with the
    keys of each backend, and after a library was loaded.
    """
    _SHARED_REDACTOR.learn(keys)
    prefixes = tuple(f"{name}." for name in GUARDED_LOGGERS)
    children = [name for name in logging.root.manager.loggerDict if name.startswith(prefixes)]
    for name in (*GUARDED_LOGGERS, *children):
        find(name).addFilter(_FILTER)  # adding it twice changes nothing
