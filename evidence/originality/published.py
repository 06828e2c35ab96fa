"""The published factors that ship: 101 formulas of WorldQuant, Qlib's Alpha158, and classics of the literature.

Formulas are compared as text (`read_published`), and by their values on a panel (`values_of_published`): values that
rank the names alike are not new, whatever the formula. Sketches are computed once for a panel and stored in the
workspace beside those of the library: 3.7 CPU-seconds on the S&P panel of 494 names and 2,518 days.

286 formulas are published; one of them is in two lists under two names. A panel of prices and volumes without sectors
can compute 220 of them: the others read amounts, a vwap, market capitalisations or a grouping.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml

from ... import factors
from ...factors import Expression, parse
from ...factors.similarity import KnownFormula, Outline
from ...ledger import LibraryRow
from ..settings import EvidenceSettings
from ..values.computing import Computes
from ..windows import Window
from .catalogue import MemoryIndex, draw_formula, postings
from .redundancy import LibraryValues, Overlap


class PublishedList(NamedTuple):
    """A published list: its file, its language, and the patterns of the names and sources of its formulas."""

    file: str
    dialect: str
    name: str
    where: str


SOURCES: Mapping[str, PublishedList] = MappingProxyType(
    {
        "worldquant": PublishedList(
            "published_worldquant.txt", "worldquant", "WorldQuant alpha {}", "Kakushadze 2016, no. {}"
        ),
        "alpha158": PublishedList("published_alpha158.txt", "qlib", "Alpha158 {}", "Qlib Alpha158"),
    }
)


@cache
def formulas(source: str) -> Mapping[str, str]:
    """Return the formulas of a published list as printed, by number or name: `worldquant` or `alpha158`."""
    lines = _read_text(SOURCES[source].file).splitlines()
    return MappingProxyType(dict(line.split(" ", 1) for line in lines if line and not line.startswith("# ")))


def published_expressions() -> Iterator[tuple[str, Expression, str]]:
    """Yield each published factor with its name and source."""
    for row in _read_rows():
        yield row["name"], parse(row["text"]), row["source"]
    for key, source in SOURCES.items():
        for name, text in formulas(key).items():
            yield source.name.format(name), parse(text, dialect=source.dialect), source.where.format(name)


@cache
def published_mechanisms() -> Mapping[str, str]:
    """Return the mechanism of each published factor by name; formulas for which the source has none are left out."""
    mechanisms = {row["name"]: row["mechanism"] for row in _read_rows()}
    families: Mapping[str, Mapping[str, str]] = yaml.safe_load(_read_text("published_families.yaml"))
    for key, source in SOURCES.items():
        for name in formulas(key):
            family = name if name.isdigit() else name.rstrip("0123456789")
            if family in families[key]:
                mechanisms[source.name.format(name)] = families[key][family]
    return MappingProxyType(mechanisms)


def describe_published(computable: int) -> str:
    """Return how many formulas are published, and how many of them a panel can compute."""
    return f"{len(_make_library_rows())} published formulas, {computable} of which this panel can compute"


@cache
def read_published() -> MemoryIndex:
    """Return the index of the published factors, read at the first call.

    Parsing 286 formulas takes half a second, so the result is stored in the user's cache folder under a digest of all
    its inputs; without such a folder each process parses them.
    """
    from platformdirs import user_cache_path

    return read_published_file(user_cache_path("alphaloom") / "published" / f"{_hash_inputs()}.json")


def read_published_file(path: Path) -> MemoryIndex:
    """Return the published factors from a cache file; a missing or damaged one is written again."""
    try:
        seal, _, body = path.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() == seal:
            return _build_index(json.loads(body))
    except OSError:
        pass
    rows = [_make_row(*draw_formula(*formula)) for formula in published_expressions()]
    with suppress(OSError):
        _write_sealed(path, json.dumps(rows).encode())
    return _build_index(rows)


def _make_row(known: KnownFormula, whole: Outline) -> list[Any]:
    return [*known, postings(whole)]


def _build_index(rows: list[list[Any]]) -> MemoryIndex:
    shelf = MemoryIndex()
    for name, where, text, drawing, numbers, size, parts in rows:
        codes = [(key, tuple(subtree_codes)) for key, subtree_codes in parts]
        shelf.add(KnownFormula(name, where, text, drawing, tuple(numbers), size), codes)
    return shelf


def _write_sealed(path: Path, body: bytes) -> None:
    """Write a file atomically; its first line is the digest of the rest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    new.replace(path)


def _hash_inputs() -> str:
    """Return a digest of the lists, and of the code that parses them and draws their outlines."""
    package, folder = Path(str(factors.__file__)).parent, Path(__file__).parent
    sources = [*package.rglob("*.py"), *package.rglob("*.lark"), *folder.glob("published*")]
    sources += [folder / "catalogue.py"]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(sources))).hexdigest()[:16]


@cache
def _read_rows() -> tuple[Mapping[str, str], ...]:
    """Return the rows of the factors of the literature, read once: the YAML reader takes longer than the parser."""
    return tuple(yaml.safe_load(_read_text("published.yaml")))


def _read_text(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def values_of_published(engine: Computes, window: Window, workspace: Path, settings: EvidenceSettings) -> LibraryValues:
    """Return the published factors that a panel can compute; none if the settings leave them out."""
    rows = _make_library_rows() if settings.published else {}
    return LibraryValues(
        engine, window, workspace, lambda row: rows[row.factor_id][1], [row for row, _ in rows.values()]
    )


def describe_twin(twin: Overlap) -> str:
    """Name the published factor that values resemble, with the rank correlation."""
    where = _make_library_rows()[twin.factor_id][0].terms["where"]
    return f"ranks the names like {twin.factor_id} ({where}): rank correlation {twin.rank_correlation:+.2f}"


@cache
def _make_library_rows() -> Mapping[str, tuple[LibraryRow, Expression]]:
    """Return each published factor as a library row under its name, with its formula."""
    rows = {}
    for name, expression, where in published_expressions():
        fields = {"fields": sorted(expression.fields)}
        rows[name] = (
            LibraryRow(name, expression.text, expression.shown, "", "", fields, "published", {"where": where}),
            expression,
        )
    return MappingProxyType(rows)
