"""The library as one file, for another workspace: written the same for the same library, checked whole when it is read."""

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
"""Mistakes of a file that are told at once."""
EXPORT_HINT = "alphaloom library export FILE writes one."


class _StrictEntry(BaseModel):
    """Takes what it names and nothing else, and numbers that are numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class JudgedElsewhere(_StrictEntry):
    """How a factor was judged where it came from; `rank_ic` is on selection, as written."""

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
    """Return the library, retired factors too and the watchlist not, as JSON without a clock or a path."""
    rows = [_factor(Condition.of(entry, ledger, LibrarySettings(), 0)) for entry in list_entries(ledger)]
    return {
        "format": LIBRARY_FORMAT,
        "version": LIBRARY_FORMAT_VERSION,
        "factors": [row for row in rows if row["status"] != WATCHLIST],
    }


def _factor(one: Condition) -> dict[str, Any]:
    entry, told = one.entry, one.record()
    return {
        "id": entry.factor_id,
        "text": entry.own_text,
        "fields": sorted(entry.fields),
        "status": entry.status,
        "proof": entry.proof,
        "hypothesis": entry.hypothesis,
        "search_rank_ic": entry.search.get("rank_ic"),
        "judged": entry.terms.full() if entry.terms else None,
        "days_since": told["days"],
        "rank_ic_since": told["rank_ic_since"],
    }


def read_library_file(path: Path) -> LibraryFile:
    """Read a library file.

    Raises
    ------
    LibraryFileError
        It is not there, no JSON, of another version, or holds what it should not: the first few mistakes at once.
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
            f"{path} is of another version of the format.", field="version", got=body.get("version"), allowed=LIBRARY_FORMAT_VERSION,
            hint="Export it again with this version of Alphaloom, or upgrade.",
        )  # fmt: skip
    try:
        found = LibraryFile.model_validate_json(json.dumps(body))
    except ValidationError as error:
        raise LibraryFileError(f"{path}: {_mistakes(error)}", field="factors") from None
    _check(found, path)
    return found


def _mistakes(error: ValidationError) -> str:
    told = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    rest = f"; and {len(told) - MAX_FILE_MISTAKES_SHOWN} more" if len(told) > MAX_FILE_MISTAKES_SHOWN else ""
    return "; ".join(told[:MAX_FILE_MISTAKES_SHOWN]) + rest


def _check(file: LibraryFile, path: Path) -> None:
    """Refuse a formula that cannot be read, or that another id stands beside, and a promise that no factor could break."""
    for place, one in enumerate(file.factors):
        where = f"factors.{place}"
        if one.judged and one.judged.sign * one.judged.rank_ic <= 0:
            said = f"{path}: {where}.judged.rank_ic is not in the direction of its sign; no gate takes such a factor."
            raise LibraryFileError(said, field=f"{where}.judged.rank_ic", got=one.judged.rank_ic)
        try:
            known = parse(one.text, fields=one.fields, refuse_units=False).id
        except ParseError as error:
            said = f"{path}: the formula of {where} cannot be read: {error.mistakes[0].message}"
            raise LibraryFileError(said, field=f"{where}.text", got=one.text) from None
        if known != one.id:
            said = f"{path}: {where}.id is not that of its formula; the file was changed by hand."
            raise LibraryFileError(said, field=f"{where}.id", got=one.id, allowed=known)


def import_library(ledger: Ledger, path: Path, day: str) -> dict[str, Any]:
    """Take in the factors of a file that are neither in the library nor on the watchlist, all of them or none.

    They are marked as judged elsewhere: they count for originality, and live ones for redundancy, and are proven here
    never. What their file says of their past is kept with them.

    Parameters
    ----------
    day
        Of the act, for the history.
    """
    file = read_library_file(path)
    with ledger.lock_library():
        return _import_factors(ledger, file, path.name, day)


def _import_factors(ledger: Ledger, file: LibraryFile, name: str, day: str) -> dict[str, Any]:
    known = {entry.factor_id: entry for entry in list_entries(ledger)}
    fresh = {one.id: one for one in file.factors if one.id not in known}
    rows = [_row(one) for one in fresh.values()]
    standings = [_imported_status(one, name, day) for one in fresh.values()]
    added = ledger.kept.record(rows=rows, standings=standings)
    watched = sorted(one.id for one in file.factors if one.id in known and known[one.id].status == WATCHLIST)
    return {"added": added, "known": len(file.factors) - added, "on_watchlist": watched, "ids": sorted(fresh)}


def _row(one: Factor) -> LibraryRow:
    canonical = parse(one.text, fields=one.fields, refuse_units=False).shown
    judged = JudgementTerms(**one.judged.model_dump()).full() if one.judged else None
    terms = {"judged": judged, "proof": one.proof, "days_since": one.days_since, "rank_ic_since": one.rank_ic_since}
    sheet = {"fields": list(one.fields), "rank_ic": one.search_rank_ic}
    return LibraryRow(one.id, one.text, canonical, one.hypothesis, "", sheet, IMPORTED, terms)


def _imported_status(one: Factor, name: str, day: str) -> StatusChange:
    return StatusChange(one.id, "imported", one.status, "hand", f"imported from {name}; there: {one.proof}", day)
