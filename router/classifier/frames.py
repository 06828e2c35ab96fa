"""What people and programs put round a request and that says nothing of it: greetings, thanks, roles, tags, headings."""

from __future__ import annotations

import re

MIN_REQUEST_CHARS = 8
"""Characters that must be left: a text that is nothing but a greeting is read as it is."""
MAX_FRAME_LAYERS = 6
_ROLE = r"user|human|assistant|system|ai|q|a|question|answer|input|output|task|request|instructions?|response|prompt|message|query|context|format|body|from|ticket|content"
_FRAME_BEGINNINGS = (
    r"\W{0,12}(?:hi|hello|hey|hallo|dear|yo|morning|good (?:morning|afternoon|evening|day)|bonjour|hola|greetings)\b[^.,!:;?\n-]{0,30}(?:[.,!:;\n-]+|$)",
    r"(?:sorry (?:to|for) [^.,:;\n-]{0,40}|(?:many )?thanks? (?:you )?(?:a lot |so much )?for [^.,:;\n]{0,40}|hope [^.!\n]{0,60})[.,!:;\n-]+",
    r"(?:(?:could|can|would|will) you (?:please |kindly )?(?:help (?:me|us)(?: with this)?|do this for (?:me|us))|please help (?:me|us)(?: with this)?)\s*[:.?\n-]+",
    (r"(?:ok(?:ay)?(?:,)? so|so|right|now|next one|one more thing|quick (?:one|question)|i have a question|if i may|fyi(?: / ask)?|asking for [^.:\n]{0,30}|"
    r"when you have (?:a|one) [a-z]{1,10})\s*[,:.\n]+\s*"),
    r"\((?:from|sent)[^)\n]{0,40}\)",
    r"you are (?:a|an) (?:helpful |useful |expert )?(?:assistant|expert|analyst|ai|model)\b[^.\n]{0,80}[.\n]+",
    r"(?:be (?:brief|concise|exact|precise)|(?:answer|reply|respond|return)(?: only)? (?:in|with|using|the final)\b|follow the instructions|think (?:before|step)|do not make|here is a message)[^.:;\n]{0,80}[.:;\n]+",
    rf"\W{{0,12}}(?:{_ROLE})\W{{0,12}}:\s*",
    rf"\W{{0,12}}\b(?:role|prompt|content)\W{{1,4}}(?:{_ROLE})\W{{1,6}}",
    r"(?:begin|start) (?:request|task|prompt|input)\s*",
    r"#+\s*[\w ]{1,30}\n+",
    r"</?[a-z_]{1,20}>|\[/?inst\]|\|[a-z]{1,12}\||```[a-z]*|-{3,}|>{2,}|[\"'{\[]+(?=\w)",
)  # fmt: skip
_FRAME_ENDINGS = (
    (r"[\s,.;(-]*\b(?:many thanks|thanks?|thank you|thx|ty|ta|cheers|merci|danke|much appreciated|appreciate (?:it|the help)|"
    r"(?:best|kind|warm)(?: regards)?|regards|pls|please|asap|no rush|take your time|let me know|i owe you(?: one)?)\b[^.?\n]{0,40}[\s.!):;\n]*(?:[A-Z]\.?)?"),
    r"\s*:\)|\s*\.{3,}",
    rf"\s*(?:#+\s*)?\b(?:{_ROLE})\W{{0,3}}(?::|$)\W*(?:none|json|free text)?",
    r"\s*\b(?:end) (?:request|task|prompt|input)",
    r"\s*(?:</?[a-z_]{1,20}>|\[/?inst\]|\|[a-z]{1,12}\||```|-{3,}|#+\s*[\w ]{1,30}|[\"'}\]]{2,})",
    r"\s*(?:return|answer|reply)(?: only)?(?: with| in)? (?:the final answer|json|english)[^.\n]{0,20}\.?",
)  # fmt: skip
_FRAME_BEGINNING = re.compile(rf"(?:{'|'.join(_FRAME_BEGINNINGS)})\s*", re.IGNORECASE)
_FRAME_ENDING = re.compile(rf"(?:{'|'.join(_FRAME_ENDINGS)})\s*$", re.IGNORECASE)
_TAIL_CHARS = 120
"""Characters at the end among which an ending is looked for."""


def strip_frames(text: str) -> str:
    """Return a text without what stands round the request; what would leave nothing is left as it is."""
    for _ in range(MAX_FRAME_LAYERS):
        inner = _strip_once(text)
        if inner == text:
            break
        text = inner
    return text


def _strip_once(text: str) -> str:
    begun = text.lstrip()  # cut off here: a pattern would try every length of it
    found = _FRAME_BEGINNING.match(begun)
    inner = begun[found.end() :] if found and found.end() else text
    inner = inner if len(inner.strip()) >= MIN_REQUEST_CHARS else text
    tail = max(len(inner) - _TAIL_CHARS, 0)
    ending = _FRAME_ENDING.search(inner, tail)
    shorter = inner[: ending.start()] if ending else inner
    return shorter if len(shorter.strip()) >= MIN_REQUEST_CHARS else inner
