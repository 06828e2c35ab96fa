"""What moves only on purpose.

`facts.json` holds numbers, ids, order, verdicts, the shapes of the MCP tools, the decoding grammar and exit codes: a
commit that changes it says which results differ, and why. `words.json` holds digests of texts and keys, and the
descriptions of the tools: only commits about names and prose change it. `FREEZE=facts,words pytest tests/golden` writes
what is not yet there, and other words; a fact is written anew only after its entry was taken out.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

__all__ = ["agrees", "digest", "facts_of_results", "words_of"]

FOLDER = Path(__file__).parent
VERDICTS = ("accepted", "proven", "watchlist", "rejected", "members", "untested")
SAME = 1e-6
"""Relative difference of sums that another processor makes in the last digits of a forecast."""


def agrees(part: str, name: str, value: Any) -> None:
    """Assert that a value is the frozen one; write it where none is frozen yet, or `FREEZE` names this part."""
    file = FOLDER / f"{part}.json"
    frozen = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if part in os.environ.get("FREEZE", "").split(",") and (part != "facts" or name not in frozen):
        text = json.dumps({**frozen, name: value}, indent=1, sort_keys=True, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")
        return
    assert name in frozen, f"nothing is frozen under {name}: FREEZE={part} writes it"
    assert _rounded(value) == _rounded(frozen[name])


def facts_of_results(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return ids and verdicts in their order with what their numbers sum to, and all other numbers; no key, no text."""
    rest = {key: value for key, value in results.items() if key not in VERDICTS}
    verdicts = {
        verdict: [[row["id"], *_sums(row)] for row in results[verdict]] for verdict in VERDICTS if verdict in results
    }
    return {**verdicts, "rest": _sums(rest)}


def words_of(value: Any) -> str:
    """Return the digest of the keys and texts of a record, numbers left out."""
    return digest(json.dumps(_wordy(value), sort_keys=True))


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sums(value: Any) -> list[float]:
    """Return the count of numbers, that of negative ones, and the sum of logarithms, where all weigh alike."""
    numbers = list(_numbers(value))
    return [
        len(numbers),
        sum(number < 0 for number in numbers),
        math.fsum(math.log(abs(number)) for number in numbers if number),
    ]


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def _wordy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _wordy(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_wordy(part) for part in value]
    return value if isinstance(value, str | bool | None) else 0


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return pytest.approx(value, rel=SAME, abs=1e-9) if isinstance(value, float) else value
