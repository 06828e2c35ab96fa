"""A person's formulas to begin a search with: a library file, or a plain list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..evidence import LibraryFileError
from ..ledger import AlphaloomError, SettingsError
from ..ledger.files import parse_text, read_given_text
from ..library import read_library_file

ALLOWED_FILES = (
    "a file of `alphaloom library export`, a YAML or JSON list of formulas, or a text file with one formula a line"
)
MAX_SEEDS = 2_000
MAX_SEED_MISTAKES_SHOWN = 8


class _SeedRow(BaseModel):
    """A formula of a list, with what is known of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=8_000)
    direction: Literal[1, -1] = 1
    mechanism: str = Field(default="seed_library", min_length=1, max_length=80)
    statement: str = Field(default="A factor of the person who runs this desk, as it was given.", max_length=2_000)


def read_seeds(path: Path) -> list[dict[str, Any]]:
    """Return the formulas of a file as `{text, direction, mechanism, statement}`, each once, in the order of the file.

    Of a library file the factors that were not retired, with the direction in which they were judged; of a list texts, or
    mappings with at least `text`; of any other file the lines that are neither empty nor begin with #. Whether a formula
    can be read is told when it is scored, since the panel says which fields there are.

    Raises
    ------
    LibraryFileError
        It cannot be read, or holds what it should not: every mistake at once, up to eight.
    """
    try:
        body = read_given_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise _seeds_error(
            path, f"cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}"
        ) from None
    if path.suffix.lower() not in (".json", ".yaml", ".yml"):
        lines = [line.strip() for line in body.splitlines()]
        return _check_rows(path, [{"text": line} for line in lines if line and not line.startswith("#")])
    try:
        found = json.loads(body) if path.suffix.lower() == ".json" else _read_yaml(path, body)
    except (ValueError, RecursionError, SettingsError) as error:
        raise _seeds_error(path, f"cannot be read: {str(error).splitlines()[0]}") from None
    if isinstance(found, dict):
        return _check_rows(path, _read_library(path))
    if not isinstance(found, list):
        raise _seeds_error(path, "is no list of formulas")
    return _check_rows(path, [{"text": each} if isinstance(each, str) else each for each in found])


def _read_yaml(path: Path, body: str) -> Any:
    text = parse_text(body, path.name)
    if text.mistakes:
        raise SettingsError(f"{path.name}: {text.mistakes[0]}", mistakes=text.mistakes[:1])
    return text.value


def _read_library(path: Path) -> list[dict[str, Any]]:
    """Return the factors of an exported library that were not retired."""
    rows = []
    for one in read_library_file(path).factors:
        if one.status != "retired":
            said = f"In the library {path.name} as {one.id}, there {one.proof}."
            rows.append({"text": one.text, "direction": one.judged.sign if one.judged else 1, "statement": said})
    return rows


def _check_rows(path: Path, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Check every row, and return each formula once."""
    found: dict[str, dict[str, Any]] = {}
    wrong: list[str] = []
    for place, row in enumerate(rows):
        try:
            read = _SeedRow.model_validate(row)
            found.setdefault(read.text, read.model_dump())
        except ValidationError as error:
            wrong += [f"{place}.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
    if wrong:
        rest = f"; and {len(wrong) - MAX_SEED_MISTAKES_SHOWN} more" if len(wrong) > MAX_SEED_MISTAKES_SHOWN else ""
        raise _seeds_error(path, f"has mistakes: {'; '.join(wrong[:MAX_SEED_MISTAKES_SHOWN])}{rest}")
    if not 0 < len(found) <= MAX_SEEDS:
        raise _seeds_error(path, f"holds {len(found)} formulas; allowed are 1 to {MAX_SEEDS}")
    return list(found.values())


def _seeds_error(path: Path, why: str) -> AlphaloomError:
    return LibraryFileError(f"{path.name} {why}.", field="steer.seed_library", got=path.name, allowed=ALLOWED_FILES)
