"""What a key looks like: one list, for what may not stand in a log and for what no document may hold."""

from __future__ import annotations

import re

KEY_SHAPES = {
    "a private key": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]{0,8000}-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
    "AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "OpenAI, Anthropic and others": r"\bsk-[A-Za-z0-9_-]{16,}",
    "Google": r"\bAIza[0-9A-Za-z_-]{30,}",
    "Hugging Face": r"\bhf_[A-Za-z0-9]{20,}",
    "GitHub": r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    "GitHub, fine-grained": r"\bgithub_pat_[A-Za-z0-9_]{30,}",
    "Slack": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a signed token": r"\beyJ(?:(?!-eyJ)[A-Za-z0-9_-]){10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
}
"""By whose it is."""
KEY_PATTERN = re.compile("|".join(KEY_SHAPES.values()))
ADDRESS_WITH_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/:@]{0,100}:[^\s/@]{1,100}@(?=[A-Za-z0-9\[])")
"""A password in an address; what comes before it is the first group."""
VALUE_GROUP = "value"
NAMED_KEY = re.compile(
    r"(?i)(\b(?:bearer|basic)\s+|(?:\b|_)(?:api[-_ ]?key|x-api-key|password|passwd|secret|token)[\"'\\]{0,4}\s?[:=]\s?[\"'\\]{0,4})"
    rf"(?P<{VALUE_GROUP}>[A-Za-z0-9._~+/=-]{{6,}})"
)
"""What is called a key or a password, as the group `VALUE_GROUP`; what comes before it is the first group."""
MIN_SURE_KEY_CHARS = 20
"""Characters from which on what is called a key is one, if it has letters and digits: prose may speak of "basic materials"."""


def holds_key(text: str) -> bool:
    """Tell whether a text holds a key: by its shape, in an address, or called one and too long and mixed to be a word."""
    named = (found[VALUE_GROUP] for found in NAMED_KEY.finditer(text))
    return bool(KEY_PATTERN.search(text) or ADDRESS_WITH_PASSWORD.search(text)) or any(
        len(each) >= MIN_SURE_KEY_CHARS and re.search("[0-9]", each) and re.search("[A-Za-z]", each) for each in named
    )
