"""How far a text may go, and what may not be kept at all."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..task import Sensitivity

RISING: tuple[Sensitivity, ...] = ("public", "internal", "confidential")

_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bsk-[A-Za-z0-9_-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:[^\s/@]{3,100}@[A-Za-z0-9\[]"
)


def strictest(labels: Iterable[Sensitivity]) -> Sensitivity:
    """Return the strictest of some labels; where there is none, the strictest of all."""
    return max(labels, key=RISING.index, default=RISING[-1])


def looks_secret(text: str) -> bool:
    """Tell whether a text holds what looks like a key: of a known service, a private one, or a password in an address."""
    return _SECRETS.search(text) is not None
