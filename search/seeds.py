"""Read a person's seed formulas of a search: a library file, or a plain list."""

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
    """A formula of a list, with its direction, mechanism and statement."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=8_000)
    direction: Literal[1, -1] = 1
    mechanism: str = Field(default="seed_library", min_length=1, max_length=80)
    statement: str = Field(default="A factor of the person who runs this desk, as it was given.", max_length=2_000)


def read_seeds(path: Path) -> list[dict[str, Any]]:
    """Return the formulas of a file as `{text, direction, mechanism, statement}`, each once, in the order of the file.

    A library file gives the factors that were not retired, with the direction in which they were judged. A YAML or JSON
    list has texts, or mappings with at least `text`. Any other file gives its lines that are not empty and do not begin
    with #. Formulas are parsed only when they are scored, since the panel decides which fields exist.

    Raises
    ------
    LibraryFileError
        The file cannot be read or has invalid contents; the error lists the first eight mistakes.
    """
    try:
        body = read_given_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise _make_seeds_error(
            path, f"cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}"
        ) from None
    if path.suffix.lower() not in (".json", ".yaml", ".yml"):
        lines = [line.strip() for line in body.splitlines()]
        return _check_rows(path, [{"text": line} for line in lines if line and not line.startswith("#")])
    try:
        value = json.loads(body) if path.suffix.lower() == ".json" else _read_yaml(path, body)
    except (ValueError, RecursionError, SettingsError) as error:
        raise _make_seeds_error(path, f"cannot be read: {str(error).splitlines()[0]}") from None
    if isinstance(value, dict):
        return _check_rows(path, _read_library(path))
    if not isinstance(value, list):
        raise _make_seeds_error(path, "is no list of formulas")
    return _check_rows(path, [{"text": item} if isinstance(item, str) else item for item in value])


def _read_yaml(path: Path, body: str) -> Any:
    text = parse_text(body, path.name)
    if text.mistakes:
        raise SettingsError(f"{path.name}: {text.mistakes[0]}", mistakes=text.mistakes[:1])
    return text.value


def _read_library(path: Path) -> list[dict[str, Any]]:
    """Return the factors of an exported library that were not retired."""
    rows = []
    for factor in read_library_file(path).factors:
        if factor.status != "retired":
            statement = f"In the library {path.name} as {factor.id}, there {factor.proof}."
            rows.append(
                {"text": factor.text, "direction": factor.judged.sign if factor.judged else 1, "statement": statement}
            )
    return rows


def _check_rows(path: Path, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Validate all rows, and return each formula once."""
    seeds: dict[str, dict[str, Any]] = {}
    mistakes: list[str] = []
    for place, row in enumerate(rows):
        try:
            seed = _SeedRow.model_validate(row)
            seeds.setdefault(seed.text, seed.model_dump())
        except ValidationError as error:
            mistakes += [
                f"{place}.{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}"
                for mistake in error.errors(include_url=False)
            ]
    if mistakes:
        more = (
            f"; and {len(mistakes) - MAX_SEED_MISTAKES_SHOWN} more" if len(mistakes) > MAX_SEED_MISTAKES_SHOWN else ""
        )
        raise _make_seeds_error(path, f"has mistakes: {'; '.join(mistakes[:MAX_SEED_MISTAKES_SHOWN])}{more}")
    if not 0 < len(seeds) <= MAX_SEEDS:
        raise _make_seeds_error(path, f"holds {len(seeds)} formulas; allowed are 1 to {MAX_SEEDS}")
    return list(seeds.values())


def _make_seeds_error(path: Path, why: str) -> AlphaloomError:
    return LibraryFileError(f"{path.name} {why}.", field="steer.seed_library", got=path.name, allowed=ALLOWED_FILES)
