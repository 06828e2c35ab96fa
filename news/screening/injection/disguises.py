# ruff: noqa: RUF001 - look-alike letters are what this is about
"""Disguises of a text: encodings and changed letters, each undone so that the result can be judged too.

News has no reason to hide words, so a stretch that makes sense only when decoded is a sign, whatever its content. Every
reading costs time in proportion to the text; readings are nested twice at most (base64 within base64).
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import urllib.parse
from collections.abc import Iterator, Sequence

from .concepts import segment_words
from .fold import fold_lookalikes, gather_scattered, read_leetspeak

MAX_VIEW_DEPTH = 2
PAYLOADS = frozenset(("base64", "base32", "base85", "hexadecimal", "binary", "octal", "character codes", "Morse"))
"""Readings of stretches that are no words before they are decoded."""
DISGUISES = frozenset(("upside down", "Braille", "shifted letters", "reversed prose"))
"""Readings that are made only where English words result."""
_BASE85 = re.compile(r"(?<!\S)(?=[!-~]{0,60}[!-/:-@\[-`])[!-u]{24,2000}(?!\S)")
_OCTAL = re.compile(r"(?<!\d)(?:\\?[01]?[0-7]{2}[\s,]{1,2}){7,}+(?:\\?[01]?[0-7]{2}(?!\d))?")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_BROKEN_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{6,}+(?:\s{1,3}[A-Za-z0-9+/_=-]{6,}+){2,}")
_BASE32 = re.compile(r"\b[A-Z2-7]{16,}={0,6}")
_HEX_RUN = re.compile(r"(?:(?:0x|\\x|%)?[0-9A-Fa-f]{2}[\s:,;-]?){8,}")
_BITS = re.compile(r"(?:[01]{7,8}[\s,]*){6,}")
_CODES = re.compile(r"(?<!\d)(?:&?#?\d{2,3}[\s,;-]{1,4}){8,}+(?:&?#?\d{2,3}(?!\d))?")
_ESCAPES = re.compile(r"(?:\\u\{?([0-9a-fA-F]{4,6})\}?)")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}|(?<=\w)\+(?=\w)")
_LEETED = re.compile(
    r"(?<![^\W_])[A-Za-z@$!|+]{0,20}[A-Za-z][0134578@$!|+]{1,4}[A-Za-z][A-Za-z0-9@$!|+]*+|"
    r"(?<![^\W_])[0134578@$!|+]{1,2}[A-Za-z]+[0134578@$!|+][A-Za-z]*"
)
_GLUED = re.compile(r"[A-Za-z]{18,}")
_MORSE = re.compile(r"(?:[.\-·−–_]{1,5}[ /|]{1,4}){10,}[.\-·−–_]{1,5}")
_SPLIT = re.compile(r"(?<=[a-z])[-*_.|~^\u00ad](?=[a-z])", re.IGNORECASE)
_BROKEN = re.compile(r"(?:[a-z]{1,4}[-*_.|~^]){2,}[a-z]{1,4}", re.IGNORECASE)
_LETTERS = re.compile(r"[A-Za-z]{3}")
_MORSE_LETTERS = dict(
    zip(
        [
            ".-",
            "-...",
            "-.-.",
            "-..",
            ".",
            "..-.",
            "--.",
            "....",
            "..",
            ".---",
            "-.-",
            ".-..",
            "--",
            "-.",
            "---",
            ".--.",
            "--.-",
            ".-.",
            "...",
            "-",
            "..-",
            "...-",
            ".--",
            "-..-",
            "-.--",
            "--..",
        ],
        "abcdefghijklmnopqrstuvwxyz",
        strict=True,
    )
)
MIN_ENGLISH_WORDS, MIN_ENGLISH_SHARE = 2, 0.4
ENGLISH_WINDOW_WORDS, MAX_RUN_WORDS = 6, 24
"""Words that are read at a time, and the most words read of a sentence."""
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_FREQUENT = (
    "the this that and your you rules all not for give say buy sell stock rate rating score ignore system from "
    "with have tell was are his her but they will its into has shares share fund bonds previous prior "
    "instructions prompt now never always put set make top highest best out any these their should must please "
    "review bank market agent assistant model output answer skip forget hide send long short strong print reveal "
    "nobody then when"
)
_COMMON = frozenset(_FREQUENT.split())
"""Frequent words of three letters and more, by which English is recognised."""
_LATIN_SENTENCE = re.compile(r"[A-Za-z][A-Za-z' ,;:-]{14,}")
_LATIN_WORD = re.compile(r"[a-z]{2,}")
_PROSE = re.compile(r"[^\W\d_]{2}[,;:]? [^\W\d_]")
_FLIPPED_TABLE = str.maketrans("ɐqɔpǝɟƃɥıɾʞןɯuodbɹsʇnʌʍxʎz", _LATIN)
_FLIPPED_LETTERS = re.compile("[ɐɔǝɟƃɥɾʞɯɹʇʌʍʎ]")
_BRAILLE = str.maketrans(
    {
        0x2800 + code: letter
        for letter, code in zip(
            _LATIN,
            (1, 3, 9, 25, 17, 11, 27, 19, 10, 26, 5, 7, 13, 29, 21, 15, 31, 23, 14, 30, 37, 39, 58, 45, 61, 53),
            strict=True,
        )
    }
)
_SQUARED = re.compile("[\U0001f130-\U0001f18a\U0001f1e6-\U0001f1ff]")
_EMBOSSED = re.compile("[\u2801-\u283f]{2,}")
_SHIFTS = [str.maketrans(_LATIN, _LATIN[by:] + _LATIN[:by]) for by in range(1, 26)] + [
    str.maketrans(_LATIN, _LATIN[::-1])
]


def find_views(text: str, deep: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each other reading of a text: the disguise that was undone, and the resulting text."""
    yield from _undo_spellings(text)
    for name, hidden in _decode_payloads(text):
        yield name, hidden
        if deep + 1 < MAX_VIEW_DEPTH:
            yield from ((f"{name}, {inner}", again) for inner, again in find_views(hidden, deep + 1))


def _undo_spellings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the readings of a text whose letters were changed, turned round or pulled apart."""
    yield from (("reversed prose" if name == "reversed" else name, plain) for name, plain in decipher_sentences(text))
    if _LETTERS.search(text):
        yield "rot13", codecs.encode(text, "rot13")
        yield "reversed", text[::-1]
        if not text.isascii() or " " in text:
            yield "reversed words", " ".join(word[::-1] for word in text.split())
    if len(_LEETED.findall(text)) > 1:
        for reading in read_leetspeak(text):
            yield "leetspeak", reading
    letters = gather_scattered(text)
    if letters:
        joined = "".join(letters)
        yield "scattered letters", " ".join([*letters, segment_words(joined), segment_words(joined[::-1])])
    if _BROKEN.search(text):
        yield "broken words", _SPLIT.sub("", text)
    glued = _GLUED.findall(text)
    if glued:
        yield "glued words", " ".join(segment_words(run) for run in glued)
    initials = _join_initials(text)
    if initials:
        yield "first letters", initials


def _join_initials(text: str) -> str:
    """Return the words that the first letters of the lines spell, where there are many lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return segment_words("".join(line[0] for line in lines)) if len(lines) > 11 else ""


def _decode_payloads(text: str) -> Iterator[tuple[str, str]]:
    """Yield the decoded text of the encoded stretches of a text, by kind of encoding."""
    for name, decoded in (
        ("base64", _decode_matches(_BASE64, text, _decode_base64)),
        ("base64", _decode_matches(_BROKEN_BASE64, text, lambda run: _decode_base64("".join(run.split())))),
        ("base32", _decode_matches(_BASE32, text, _decode_base32)),
        ("base85", _decode_matches(_BASE85, text, _decode_base85)),
        ("octal", _decode_matches(_OCTAL, text, _decode_octal)),
        ("hexadecimal", _decode_matches(_HEX_RUN, text, _decode_hex)),
        ("binary", _decode_matches(_BITS, text, _decode_bits)),
        ("character codes", _decode_matches(_CODES, text, _decode_codes)),
        ("Morse", _decode_matches(_MORSE, text, _decode_morse)),
    ):
        if decoded:
            yield name, decoded
    if len(_ESCAPES.findall(text)) > 3:
        yield "escapes", _ESCAPES.sub(lambda match: _convert_code(int(match[1], 16)), text)
    if len(_PERCENT.findall(text)) > 2:
        yield "percent-encoding", urllib.parse.unquote_plus(text)
    if "&#" in text or "&lt;" in text:
        yield "entities", html.unescape(text)


def _decode_matches(pattern: re.Pattern[str], text: str, decode: object) -> str:
    """Return the decoded texts of all matches, joined; matches that decode to no text are left out."""
    assert callable(decode)
    return " ".join(decoded for match in pattern.finditer(text) if (decoded := decode(match[0])))


def _decode_base64(run: str) -> str:
    """Return the text of a base64 run; empty if there is none."""
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    body = body[: len(body) - 1] if len(body) % 4 == 1 else body
    try:
        return _decode_text(base64.b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _decode_base32(run: str) -> str:
    """Return the text of a base32 run; empty if there is none."""
    body = run.rstrip("=")
    try:
        return _decode_text(base64.b32decode(body + "=" * (-len(body) % 8)))
    except (binascii.Error, ValueError):
        return ""


def _decode_base85(run: str) -> str:
    """Return the text of a run in either base85; empty if there is none."""
    for decode in (base64.a85decode, base64.b85decode):
        try:
            decoded = _decode_text(decode(run.removeprefix("<~").removesuffix("~>").encode()))
        except ValueError:
            continue
        if decoded:
            return decoded
    return ""


def _decode_octal(run: str) -> str:
    """Return the text of a list of octal codes; empty if there is none."""
    return _decode_text(bytes(int(code, 8) for code in re.findall(r"[0-7]+", run) if int(code, 8) < 256))


def _decode_hex(run: str) -> str:
    """Return the text of a hexadecimal run; empty if there is none."""
    digits = re.sub(r"0x|\\x|[^0-9A-Fa-f]", "", run)
    return _decode_text(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _decode_bits(run: str) -> str:
    """Return the text of a run of bits; empty if there is none."""
    groups = run.replace(",", " ").split()
    if len(groups) == 1:
        groups = [run[place : place + 8] for place in range(0, len(run) - 7, 8)]
    return _decode_text(bytes(int(group, 2) for group in groups if len(group) in (7, 8)))


def _decode_codes(run: str) -> str:
    """Return the text of a list of character codes; empty if there is none."""
    codes = [int(code) for code in re.findall(r"\d+", run)]
    return _decode_text(bytes(code for code in codes if code < 256))


def _decode_morse(run: str) -> str:
    """Return the text of a run of Morse code."""
    plain = re.sub("[−–_]", "-", run).replace("·", ".")
    words = re.split(r"\s*[/|]\s*|\s{2,}", plain)
    return " ".join("".join(_MORSE_LETTERS.get(code, "") for code in word.split()) for word in words)


def _decode_text(body: bytes) -> str:
    """Return bytes as text if they are text: at least five characters, nine in ten of them printable."""
    for coding in ("utf-8", "utf-16-le"):
        try:
            text = body.decode(coding)
        except UnicodeDecodeError:
            text = body.decode("latin-1") if coding == "utf-8" and _is_mostly_ascii(body) else ""
        printable = sum(mark.isprintable() or mark in "\n\t " for mark in text)
        if len(text) > 4 and printable >= 0.9 * len(text):
            return text
    return ""


def _is_mostly_ascii(body: bytes) -> bool:
    """Return whether nearly all bytes are printable ASCII."""
    return sum(32 <= byte < 127 for byte in body) >= 0.9 * max(len(body), 1)


def _convert_code(code: int) -> str:
    """Return the character of a code, or a space."""
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


def is_prose(text: str) -> bool:
    """Return whether a decoded text is prose: letters, and words with spaces between them."""
    if max(text) > "\u2fff":
        return False  # any two bytes are some letter of these scripts
    letters = sum(mark.isalpha() or mark in " ,.:;'\"!?-+%" or mark.isdigit() for mark in text)
    return bool(_PROSE.search(text)) and letters >= 0.9 * len(text)


def decipher_sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a text that are English only when their letters are turned round, shifted or mirrored."""
    if len(_FLIPPED_LETTERS.findall(text)) > 3:
        yield "upside down", text.lower()[::-1].translate(_FLIPPED_TABLE)
    if len(_SQUARED.findall(text)) > 3:
        yield "squared letters", fold_lookalikes(text)
    if _EMBOSSED.search(text):
        yield "Braille", text.translate(_BRAILLE)
    for match in _LATIN_SENTENCE.finditer(text):
        plain = match[0].lower()
        yield from _turn_letters(" ".join(_find_odd_run(plain)))


def _find_odd_run(plain: str) -> list[str]:
    """Return the longest run of words in which none is a frequent one."""
    words = plain.split()
    first, best, size = 0, 0, 0
    for place, word in enumerate(words):
        if word.strip(" ,;:'-") in _COMMON:
            first = place + 1
        elif place + 1 - first > size:
            best, size = first, place + 1 - first
    return words[best : best + min(size, MAX_RUN_WORDS)] if size > 2 else []


def _turn_letters(run: str) -> Iterator[tuple[str, str]]:
    """Yield the readings of a run of odd words, backwards or with shifted letters, that are English."""
    for name, reading in (("reversed", run[::-1]), *(("shifted letters", run.translate(shift)) for shift in _SHIFTS)):
        words = _LATIN_WORD.findall(reading)
        if any(
            _is_english(words[first : first + ENGLISH_WINDOW_WORDS])
            for first in range(0, max(len(words) - ENGLISH_WINDOW_WORDS, 0) + 1, 2)
        ):
            yield name, reading


def _is_english(words: Sequence[str]) -> bool:
    """Return whether enough of the words are frequent ones of English."""
    known = {word for word in words if word in _COMMON}
    return len(known) >= MIN_ENGLISH_WORDS and sum(word in known for word in words) >= MIN_ENGLISH_SHARE * len(words)
