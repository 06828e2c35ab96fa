"""Texts for people: the options of an intake, and the printing of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ....news import (
    ZONED_FORMAT,
    ItemKind,
    NewsFileError,
    NewsItem,
    NewsSource,
    QuarantinedItem,
    parse_iso,
    read_news,
)
from ..console import mask_unprintable, print_plain, stdout_console

if TYPE_CHECKING:
    from ...facts.texts import ShownText
    from ...remarks import ModelRemark

LIST_EXCERPT_CHARS = 160
ID_DIGITS_SHOWN = 12
"""Digits of an id in a list: enough to identify a text."""


@dataclass(frozen=True)
class IntakeOptions:
    """The options of an intake as they were written on the command line."""

    source: str
    kind: ItemKind
    symbols: str
    weights: tuple[str, ...]
    filers: tuple[str, ...]
    fetched: str
    masked: bool

    def of(self, file: Path) -> NewsSource:
        """Return the source description of one file."""
        weights = {name: _parse_weight(name, value) for name, value in _parse_pairs(self.weights, "--weight", "*=0.3")}
        filers = dict(_parse_pairs(self.filers, "--filer", "320193=AAPL"))
        return NewsSource(
            file,
            self.source,
            self.kind,
            _parse_instant(self.fetched),
            weights,
            split_names(self.symbols),
            filers,
            self.masked,
        )


def split_names(names: str) -> tuple[str, ...]:
    """Return the names of a comma-separated list."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _parse_pairs(texts: Sequence[str], option: str, example: str) -> list[tuple[str, str]]:
    pairs = [tuple(part.strip() for part in text.rpartition("=")[::2]) for text in texts]
    wrong = next((text for text, pair in zip(texts, pairs, strict=True) if not all(pair)), None)
    if wrong is not None:
        raise typer.BadParameter(f"{wrong!r} is no pair such as {example}", param_hint=option)
    return [(name, value) for name, value in pairs]


def _parse_weight(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"the weight of {name!r} is no number: {value!r}", param_hint="--weight") from None


def _parse_instant(text: str) -> datetime | None:
    try:
        return parse_iso(text, zoned=True) if text else None
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not {ZONED_FORMAT}", param_hint="--fetched") from None


def read_all_files(
    files: Sequence[Path], options: IntakeOptions, tell: Callable[[Path], None]
) -> list[tuple[NewsItem, ...]]:
    """Return the items of every file; `tell` is called before each, since 40,000 posts take a minute.

    Raises
    ------
    NewsFileError
        Everything that is wrong in any of them.
    """
    batches, errors = list[tuple[NewsItem, ...]](), list[NewsFileError]()
    for file in files:
        tell(file)
        try:
            batches.append(read_news(options.of(file)))
        except NewsFileError as error:
            errors.append(error)
    if len(errors) > 1:
        raise NewsFileError(
            "\n".join(error.message for error in errors),
            findings=tuple(finding for error in errors for finding in error.findings),
            field=", ".join(error.field for error in errors),
            hint=errors[0].hint,
        )
    if errors:
        raise errors[0]
    return batches


def print_text(shown: ShownText) -> None:
    """Print a text in full, after its origin and its state."""
    for line in shown.lines():
        print_plain(mask_unprintable(line))
    for part in (shown.item.title, shown.item.body):
        if part:
            print_plain(f"\n{mask_unprintable(part)}")


def print_items(items: Sequence[NewsItem]) -> None:
    """Print a row for each text."""
    _print_rows(
        ("known", "id", "source", "believed", "about", "text"),
        [
            (
                _format_minute(item.known),
                item.id[:ID_DIGITS_SHOWN],
                item.source,
                f"{item.credibility:g}",
                *_list_symbols_and_title(item),
            )
            for item in items
        ],
    )


def print_sentiment(items: Sequence[NewsItem], remarks: Sequence[ModelRemark]) -> None:
    """Print a row for each text: how far its source is believed, and beside it what a model says of it."""
    _print_rows(
        ("known", "id", "source", "believed", "a model says", "about", "text"),
        [
            (
                _format_minute(item.known),
                item.id[:ID_DIGITS_SHOWN],
                item.source,
                f"{item.credibility:g}",
                remark.line(),
                *_list_symbols_and_title(item),
            )
            for item, remark in zip(items, remarks, strict=True)
        ],
    )


def print_quarantined(entries: Sequence[QuarantinedItem]) -> None:
    """Print a row for each text in quarantine."""
    _print_rows(
        ("held since", "id", "source", "signs", "about", "text"),
        [
            (
                _format_minute(entry.since),
                entry.item.id[:ID_DIGITS_SHOWN],
                entry.item.source,
                _list_signs(entry),
                *_list_symbols_and_title(entry.item),
            )
            for entry in entries
        ],
    )


def _format_minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"


def _list_symbols_and_title(item: NewsItem) -> tuple[str, str]:
    return " ".join(item.symbols), (item.title or item.body)[:LIST_EXCERPT_CHARS]


def _list_signs(entry: QuarantinedItem) -> str:
    return ", ".join(dict.fromkeys(sign.name for sign in entry.signs))


def _print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("known", "held since", "id"))
    for row in rows:
        table.add_row(*(Text(mask_unprintable(cell.replace("\n", " "))) for cell in row))
    if rows:
        stdout_console().print(table)
