"""Export and import of the library as one file: equal libraries give equal files, and a file is checked whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..evidence import LibraryFileError, LibrarySettings
from ..factors import ParseError, parse
from ..ledger import Ledger, LibraryRow, StatusChange
from ..ledger.files import read_given_text
from .condition import Condition
from .entries import IMPORTED, WATCHLIST, JudgementTerms, list_entries

LIBRARY_FORMAT: Literal["alphaloom library"] = "alphaloom library"
LIBRARY_FORMAT_VERSION = 1
MAX_FILE_MISTAKES_SHOWN = 5
"""Most mistakes of a file in one error."""
EXPORT_HINT = "alphaloom library export FILE writes one."


class _StrictEntry(BaseModel):
    """Base of records that refuse unknown keys, converted types, NaN and infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class JudgedElsewhere(_StrictEntry):
    """The terms on which a factor was judged elsewhere; `rank_ic` is on selection, of the factor as written."""

    horizon_days: int = Field(ge=1, le=20)
    returns: Literal["residual", "raw"]
    label_scale: Literal["own_risk", "none"] = "none"
    sign: Literal[-1, 1]
    judged_to: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    rank_ic: float = Field(ge=-1, le=1)
    deviation: float = Field(gt=0, le=1)
    sectors: bool | None
    names: tuple[str, ...]


class Factor(_StrictEntry):
    """One factor of a file."""

    id: str
    text: str
    fields: tuple[str, ...]
    status: Literal["live", "decaying", "retired"]
    proof: str
    hypothesis: str
    search_rank_ic: float | None = Field(ge=-1, le=1)
    judged: JudgedElsewhere | None
    days_since: int = Field(ge=0)
    rank_ic_since: float | None = Field(ge=-1, le=1)


class LibraryFile(_StrictEntry):
    """A library file."""

    format: Literal["alphaloom library"]
    version: Literal[1]
    factors: tuple[Factor, ...]


def export_library(ledger: Ledger) -> dict[str, Any]:
    """Return the library with retired factors and without the watchlist, as JSON without a clock or a path."""
    rows = [_write_factor(Condition.of(entry, ledger, LibrarySettings(), 0)) for entry in list_entries(ledger)]
    return {
        "format": LIBRARY_FORMAT,
        "version": LIBRARY_FORMAT_VERSION,
        "factors": [row for row in rows if row["status"] != WATCHLIST],
    }


def _write_factor(condition: Condition) -> dict[str, Any]:
    entry, figures = condition.entry, condition.record()
    return {
        "id": entry.factor_id,
        "text": entry.own_text,
        "fields": sorted(entry.fields),
        "status": entry.status,
        "proof": entry.proof,
        "hypothesis": entry.hypothesis,
        "search_rank_ic": entry.search.get("rank_ic"),
        "judged": entry.terms.full() if entry.terms else None,
        "days_since": figures["days"],
        "rank_ic_since": figures["rank_ic_since"],
    }


def read_library_file(path: Path) -> LibraryFile:
    """Read a library file.

    Raises
    ------
    LibraryFileError
        The file is missing, not JSON, of another version, or invalid; the error lists the first five mistakes.
    """
    try:
        body = json.loads(read_given_text(path))
    except OSError as error:
        raise LibraryFileError(
            f"{path} cannot be read: {error.strerror}.", field="FILE", got=str(path), hint=EXPORT_HINT
        ) from None
    except (ValueError, RecursionError) as error:
        raise LibraryFileError(f"{path} is not JSON: {error}.", field="FILE", got=str(path), hint=EXPORT_HINT) from None
    if not isinstance(body, dict) or body.get("format") != LIBRARY_FORMAT:
        raise LibraryFileError(f"{path} is no library file.", field="format", allowed=LIBRARY_FORMAT, hint=EXPORT_HINT)
    if body.get("version") != LIBRARY_FORMAT_VERSION:
        raise LibraryFileError(
            f"{path} is of another version of the format.",
            field="version",
            got=body.get("version"),
            allowed=LIBRARY_FORMAT_VERSION,
            hint="Export it again with this version of Alphaloom, or upgrade.",
        )
    try:
        file = LibraryFile.model_validate_json(json.dumps(body))
    except ValidationError as error:
        raise LibraryFileError(f"{path}: {_list_mistakes(error)}", field="factors") from None
    _check_factors(file, path)
    return file


def _list_mistakes(error: ValidationError) -> str:
    mistakes = [f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in error.errors()]
    more = f"; and {len(mistakes) - MAX_FILE_MISTAKES_SHOWN} more" if len(mistakes) > MAX_FILE_MISTAKES_SHOWN else ""
    return "; ".join(mistakes[:MAX_FILE_MISTAKES_SHOWN]) + more


def _check_factors(file: LibraryFile, path: Path) -> None:
    """Refuse a formula that cannot be parsed or has another id, and a RankIC against its sign."""
    for place, factor in enumerate(file.factors):
        where = f"factors.{place}"
        if factor.judged and factor.judged.sign * factor.judged.rank_ic <= 0:
            message = (
                f"{path}: {where}.judged.rank_ic is not in the direction of its sign; no gate takes such a factor."
            )
            raise LibraryFileError(message, field=f"{where}.judged.rank_ic", got=factor.judged.rank_ic)
        try:
            factor_id = parse(factor.text, fields=factor.fields, refuse_units=False).id
        except ParseError as error:
            message = f"{path}: the formula of {where} cannot be read: {error.mistakes[0].message}"
            raise LibraryFileError(message, field=f"{where}.text", got=factor.text) from None
        if factor_id != factor.id:
            message = f"{path}: {where}.id is not that of its formula; the file was changed by hand."
            raise LibraryFileError(message, field=f"{where}.id", got=factor.id, allowed=factor_id)


def import_library(ledger: Ledger, path: Path, day: str) -> dict[str, Any]:
    """Add the factors of a file that are neither in the library nor on the watchlist, all of them or none.

    They are marked as judged elsewhere: they count for originality, and live ones for redundancy, and are never proven
    here. Their recorded past is stored with them.

    Parameters
    ----------
    day
        Day of the import, for the history.
    """
    file = read_library_file(path)
    with ledger.library.lock():
        return _import_factors(ledger, file, path.name, day)


def _import_factors(ledger: Ledger, file: LibraryFile, name: str, day: str) -> dict[str, Any]:
    entries = {entry.factor_id: entry for entry in list_entries(ledger)}
    fresh = {factor.id: factor for factor in file.factors if factor.id not in entries}
    rows = [_make_row(factor) for factor in fresh.values()]
    standings = [_make_status(factor, name, day) for factor in fresh.values()]
    added = ledger.library.record(rows=rows, standings=standings)
    watched = sorted(
        factor.id for factor in file.factors if factor.id in entries and entries[factor.id].status == WATCHLIST
    )
    return {"added": added, "known": len(file.factors) - added, "on_watchlist": watched, "ids": sorted(fresh)}


def _make_row(factor: Factor) -> LibraryRow:
    canonical = parse(factor.text, fields=factor.fields, refuse_units=False).shown
    judged = JudgementTerms(**factor.judged.model_dump()).full() if factor.judged else None
    terms = {
        "judged": judged,
        "proof": factor.proof,
        "days_since": factor.days_since,
        "rank_ic_since": factor.rank_ic_since,
    }
    sheet = {"fields": list(factor.fields), "rank_ic": factor.search_rank_ic}
    return LibraryRow(factor.id, factor.text, canonical, factor.hypothesis, "", sheet, IMPORTED, terms)


def _make_status(factor: Factor, name: str, day: str) -> StatusChange:
    return StatusChange(
        factor.id, "imported", factor.status, "hand", f"imported from {name}; there: {factor.proof}", day
    )
