"""The blocks of a prompt: what is asked, and what is attached to it, such as code, logs, tables, formulas and articles.

An attachment carries words that say nothing about the request: a traceback is full of errors, a log of figures. So the
classifier reads each block by itself. Rules decide line by line what is prose, in microseconds; which blocks are the
request is learned (`model`). A line of a table or of code is a block too if it is short, since some requests are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby

MAX_BLOCKS = 6
"""Blocks that are read: of more, the first and the last ones, where requests stand."""
MAX_BLOCK_CHARS = 1_200
MAX_ROW_CHARS = 240
"""Characters of a block without prose that is read, rather than passed over."""
MAX_LINE_CHARS = 2_000
"""Characters of a line that are looked at to tell whether it is prose."""
MAX_LINES = 400
"""Lines that are looked at: of more, the first and the last ones."""
MAX_SIGN_SHARE = 0.22
"""Share of signs and digits among the characters of a line of prose, blanks aside."""
_ATTACHED = re.compile(
    r"""\s*(?:
    >|\||\+[-=+]{3,}|[-=_*]{4,}\s*$|```|~~~                                    # quotations, frames of tables, fences
    |Traceback\ \(|File\ "|at\ [\w.$<>]+\(|\w+(?:\.\w+)*(?:Error|Exception|Warning)\b\s*(?::|$)|Caused\ by:
    |\[?\(?\d{4}[-/.]\d\d[-/.]\d\d[T\ ,;|\t]*\d?|\[?\d\d?:\d\d(?::\d\d)?\b     # dates and times of logs, rows by day
    |(?:\[|<)?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL|TRACE)(?:\]|>|:|\ )
    |[{}\[\]]+,?\s*$|[{\[]\s*["{\[]|"[^"]*"\s*:|[\])}]+[;,]?\s*$
    |(?:from|to|sent|subject|date|cc|von|an|betreff|de|para|asunto|objet)\s*:\s
    |(?:def|class|import|from|return|for|while|if|elif|else|try|except|with|async|await|raise|assert|yield|const|let|var
      |function|public|private|static|void|struct|fn|impl|use|package|SELECT|FROM|WHERE|GROUP\ BY|ORDER\ BY|INSERT|JOIN
      |\#include|library)\b[^.?!]*[:;{(=*]\s*.*$
    |\w+(?:\[[^\]]*\]|\.\w+)*\s*(?:=|:=|<-|\+=|-=)\s*\S
    |[\w.]+\([^?]*\)[;,]?\s*$
    |//|/\*|--\s|\#!|\$\ |>>>\ |In\ \[\d*\]:|Out\[\d*\]:
    )""",
    re.VERBOSE,
)
_FIELDS = re.compile(r"\t|\ {2,}|[,;|](?=\S)|,\ ?(?=-?\d)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_HIDDEN = {"Cf", "Co", "Cs"}
_SPACED_WORD = re.compile(r"(?<!\S)(?:[^\W\d_][ .*_-]){3,}[^\W\d_](?!\S)")
MIN_FIELDS = 3


def list_blocks(text: str) -> list[str]:
    """Return the blocks of a prompt that may be its request, in order; the whole prompt where there is none."""
    blocks = [shorten(block) for block in _iterate_blocks(text)]
    if len(blocks) > MAX_BLOCKS:
        blocks = [*blocks[: MAX_BLOCKS // 2], *blocks[-MAX_BLOCKS // 2 :]]
    return blocks or [shorten(text)]


def find_request(messages: Sequence[str]) -> str:
    """Return the last of some messages that has a line of prose; the last one where none has.

    The agents send their data as one line of JSON, and what they ask for stands in the message before it.
    """
    return next((text for text in reversed(messages) if _has_prose(text)), messages[-1])


def _has_prose(text: str) -> bool:
    return any(_is_prose(line) and _WORD.search(line) for line in text.splitlines()[:MAX_LINES])


def mend_text(text: str) -> str:
    """Return a text without characters that nobody sees and with spaced-out words closed: `b a c k t e s t`."""
    if text.isascii():
        plain = text
    else:
        composed = unicodedata.normalize("NFKC", text)
        plain = "".join(letter for letter in composed if unicodedata.category(letter) not in _HIDDEN)
        plain = re.sub(r"(?<=\w)[^\w\s!-~](?=\w)", _drop_picture, plain)
    return _SPACED_WORD.sub(lambda match: re.sub(r"[ .*_-]", "", match.group()), plain)


def _drop_picture(match: re.Match[str]) -> str:
    """Return nothing for a picture or symbol inside a word, and any other sign as it is."""
    return "" if unicodedata.category(match.group()) in {"So", "Sk"} else match.group()


def _iterate_blocks(text: str) -> Iterator[str]:
    """Yield runs of lines of prose, which an empty line ends, and short runs of other lines."""
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES // 2], *lines[-MAX_LINES // 2 :]]
    for prose, run in groupby(lines, key=_is_prose):
        block = "\n".join(run).strip()
        if _WORD.search(block) and (prose or len(block) <= MAX_ROW_CHARS):
            yield block


def _is_prose(line: str) -> bool:
    """Tell whether a line is prose rather than a row, a line of code, a log line, a formula or nothing."""
    line = line[:MAX_LINE_CHARS]
    dense = "".join(line.split())
    if not dense or _ATTACHED.match(line):
        return False
    letters = sum(map(str.isalpha, dense))
    if letters < (1 - MAX_SIGN_SHARE) * len(dense) and not _reads_as_sentence(line):
        return False
    return not (len(_FIELDS.findall(line)) >= MIN_FIELDS and not _reads_as_sentence(line))


def _reads_as_sentence(line: str) -> bool:
    """Tell whether most of a line's tokens are plain words, as in a sentence that quotes a formula or figures."""
    tokens = line.split()
    plain = sum(1 for token in tokens if token.strip(".,;:!?\"'()[]-").isalpha())
    return plain >= max(0.6 * len(tokens), 4) and len(tokens) >= MIN_FIELDS


def shorten(text: str, head: int = MAX_BLOCK_CHARS // 2, tail: int = MAX_BLOCK_CHARS // 2) -> str:
    """Return a long text as its first `head` and its last `tail` characters, with a blank between."""
    return text if len(text) <= head + tail else f"{text[:head]} {text[-tail:]}"
