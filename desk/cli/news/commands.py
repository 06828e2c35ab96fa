"""The commands on texts: take them in, read them, and decide on quarantined ones."""

from __future__ import annotations

from datetime import UTC, datetime, time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import plural
from ..console import mask_unprintable, print_object, print_plain, stderr_console
from ..models.router_file import ConfidentialOption, RemarkFile, RemarkSource
from ..options import AsJson, By, Workspace, signer_name

if TYPE_CHECKING:
    from ....news import ItemPage, NewsItem, NewsStore


app = typer.Typer(no_args_is_help=True, help="Take in news, filings and posts, and decide on what is held back.")
DAY_FORMATS = ["%Y-%m-%d"]
TextId = Annotated[
    str, typer.Argument(metavar="ID", help="A text's id, or as much of its beginning as is not ambiguous.")
]
AsOfDay = Annotated[
    datetime | None,
    typer.Option(
        "--as-of", formats=DAY_FORMATS, help="As it could be known at the end of this day, UTC; all by default."
    ),
]
Words = Annotated[list[str] | None, typer.Argument(metavar="WORD...", help="Words that must all occur.")]
AboutSymbols = Annotated[str, typer.Option("--symbols", metavar="NAME,...", help="Of which a text must be about one.")]
Since = Annotated[
    datetime | None,
    typer.Option("--since", formats=DAY_FORMATS, help="Leave out what was known before this day, UTC."),
]
Count = Annotated[int, typer.Option("-n", "--limit", min=1, max=200, help="How many at most.")]


class TextKind(StrEnum):
    """The kinds of a text."""

    news = "news"
    filing = "filing"
    post = "post"


Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of texts.")]
SourceOption = Annotated[
    str,
    typer.Option(
        "--source", metavar="NAME", help="Who published what does not say so; the feed's title, or the file's name."
    ),
]
KindOption = Annotated[TextKind, typer.Option("--kind", help="What the records are that do not say so.")]
SymbolsOption = Annotated[
    str, typer.Option("--symbols", metavar="NAME,...", help="What a record is about that names no symbol.")
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weight", metavar="SOURCE=WEIGHT", help="How far a source is believed, 0 to 1; *: all others. Repeatable."
    ),
]
Filers = Annotated[
    list[str] | None,
    typer.Option("--filer", metavar="CIK=SYMBOL", help="The symbol of a filer's number in filings. Repeatable."),
]
FetchedOption = Annotated[
    str,
    typer.Option(
        "--fetched", metavar="INSTANT", help="When the files came, e.g. 2015-01-30T21:30:00Z: nothing was known before."
    ),
]
MaskedOption = Annotated[
    bool,
    typer.Option(
        "--masked", help="Authors' names were taken out: each record that names no source is a voice of its own."
    ),
]


@app.command(short_help="Take in files of texts.")
def add(
    files: Files,
    source: SourceOption = "",
    kind: KindOption = TextKind.news,
    symbols: SymbolsOption = "",
    weights: Weights = None,
    filers: Filers = None,
    fetched: FetchedOption = "",
    masked: MaskedOption = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Take in all of the files, or nothing where one of them cannot be used.

    RSS and Atom (.xml, .rss, .atom), JSON lines (.jsonl, .ndjson), filings as the regulator stores them (.txt, .sgml,
    .nc), tables (.parquet, .csv: time_utc, symbol, text). Texts are cleaned of what nobody sees, dated by when they
    could be known, and judged: what speaks to the machine that reads it, or is shouted by many sources of low standing
    at once, is held back and reaches no agent (alphaloom news quarantine). What is there already adds nothing.
    """
    from ....news import NEWS_FOLDER, NewsStore
    from ...facts.texts import LATEST_INSTANT
    from .output import IntakeOptions, read_all_files

    options = IntakeOptions(source, kind.value, symbols, tuple(weights or ()), tuple(filers or ()), fetched, masked)
    batches = read_all_files(files, options, _print_reading)
    with NewsStore((workspace or DEFAULT_WORKSPACE) / NEWS_FOLDER) as store:
        new = store.put(item for items in batches for item in items)
        held_ids = {entry.item.id for entry in store.list_quarantine(LATEST_INSTANT)}
    counts = [
        (str(file), len(items), sum(item.id in held_ids for item in items))
        for file, items in zip(files, batches, strict=True)
    ]
    if as_json:
        rows = [{"file": file, "texts": texts, "held": back} for file, texts, back in counts]
        print_object({"files": rows, "texts": sum(texts for _, texts, _ in counts), "new": new})
        return
    for file, texts, back in counts:
        print_plain(f"{mask_unprintable(file)}: {plural(texts, 'text')}, {back:,} held back")
    print_plain(f"{plural(new, 'new text')} on the shelf of {workspace or DEFAULT_WORKSPACE}")


def _print_reading(file: Path) -> None:
    """Report which file is being read: a large one takes minutes."""
    stderr_console().print(f"reading {mask_unprintable(str(file))}", markup=False, soft_wrap=True)


@app.command("list", short_help="List the texts that are served, the newest first.")
def list_(
    words: Words = None,
    symbols: AboutSymbols = "",
    since: Since = None,
    as_of: AsOfDay = None,
    limit: Count = 20,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """List what agents and clients may be told, the newest first. What is held back is listed by `alphaloom news quarantine`."""  # noqa: E501 - the summary of a command's help is one line
    from .output import print_items

    page = _search(workspace, words, symbols, (since, as_of), limit)
    if as_json:
        print_object({"count": len(page.items), "total": page.total, "items": [item.record() for item in page.items]})
        return
    print_items(page.items)
    print_plain(f"{len(page.items)} of {plural(page.total, 'text')}" if page.total else "no text is served")


@app.command(short_help="Let your local model say of each text whether it is good or bad news.")
def sentiment(
    words: Words = None,
    symbols: AboutSymbols = "",
    since: Since = None,
    as_of: AsOfDay = None,
    limit: Count = 20,
    router: RemarkFile = None,
    confidential: ConfidentialOption = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Ask your local model of each text that `alphaloom news list` shows: good, bad or neither for the share price.

    The model's reading stands beside how far the source is believed. It is a model's claim: it is kept with the record
    of calls only, and no agent, factor or result is told of it. Texts that are held back are not asked about.
    """
    from ...remarks import RemarkQuestion
    from .output import print_sentiment

    page = _search(workspace, words, symbols, (since, as_of), limit)
    source = RemarkSource(router, workspace, confidential)
    remarks = source.require("sentiment", [RemarkQuestion.about_news(item) for item in page.items])
    if as_json:
        rows = [item.record() | {"remark": remark.record()} for item, remark in zip(page.items, remarks, strict=True)]
        print_object({"count": len(rows), "total": page.total, "items": rows})
        return
    print_sentiment(page.items, remarks)
    print_plain(f"{len(page.items)} of {plural(page.total, 'text')}" if page.total else "no text is served")


@app.command(short_help="List what is held back, and why.")
def quarantine(as_of: AsOfDay = None, limit: Count = 50, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """List the texts that reach no agent, those held back last first, with the signs that say why.

    The words in which a sign showed may be meant for machines: do not hand this list to one.
    """
    from .output import print_quarantined

    with _open_store(workspace) as store:
        items = store.list_quarantine(_find_end_of_day(as_of))
    newest = items[::-1][:limit]
    if as_json:
        print_object({"count": len(newest), "total": len(items), "quarantine": [item.record() for item in newest]})
        return
    print_quarantined(newest)
    print_plain(f"{len(newest)} of {plural(len(items), 'text')} held back" if items else "no text is held back")


@app.command(short_help="Show one text whole, held back or not.")
def show(text: TextId, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Show a text, where it came from, the signs that fired, and what a person decided on it. For a person, not for a machine."""  # noqa: E501 - the summary of a command's help is one line
    from ...facts.texts import ShownText
    from .output import print_text

    with _open_store(workspace) as store:
        text_record = ShownText.of(store, _find_text(store, text).id)
    if as_json:
        print_object(text_record.record())
    else:
        print_text(text_record)


@app.command(short_help="Put back a text that was held back wrongly.")
def release(
    text: TextId,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")],
    since: Annotated[
        datetime | None,
        typer.Option(
            "--from",
            formats=DAY_FORMATS,
            help="The first day, UTC, on which it is served; by default as if never held back.",
        ),
    ] = None,
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Let a text in quarantine reach agents. Who decided it, when and why is kept, and the decision stands for good.

    It is served as of every instant since which it was held back: the rules that held it are of today too. Where you
    know something of it that was not known then, name the day on which that was known with --from.
    """
    from ...facts.texts import release_text

    with _open_store(workspace) as store:
        begin = datetime.combine(since, time.min, UTC) if since else None
        name, person = _find_text(store, text).id, signer_name(by, workspace, "text:release")
        decision = release_text(store, name, (person, reason), begin, datetime.now(UTC))
    facts = {"id": decision.id, "by": decision.who, "reason": decision.reason, "served_from": decision.at.isoformat()}
    if as_json:
        print_object(facts)
    else:
        print_plain(f"{decision.id} is served as of {decision.at:%Y-%m-%d %H:%M:%S} UTC and later")


def _search(
    workspace: Path | None,
    words: list[str] | None,
    symbols: str,
    days: tuple[datetime | None, datetime | None],
    limit: int,
) -> ItemPage:
    """Return the newest texts that are served; `days` are the first on which a text was known, and the as-of day."""
    from .output import split_names

    since, as_of = days
    with _open_store(workspace) as store:
        begin = since.replace(tzinfo=UTC) if since else None
        return store.search(_find_end_of_day(as_of), " ".join(words or ()), split_names(symbols), begin, limit)


def _find_end_of_day(day: datetime | None) -> datetime:
    from ...facts.texts import LATEST_INSTANT

    return datetime.combine(day, time.max, UTC) if day else LATEST_INSTANT


def _open_store(workspace: Path | None) -> NewsStore:
    """Open the store of a workspace; a missing one is not created."""
    from ....ledger import WorkspaceError
    from ....news import NEWS_FOLDER, NewsStore

    folder = (workspace or DEFAULT_WORKSPACE) / NEWS_FOLDER
    if not folder.is_dir():
        raise WorkspaceError(
            f"There are no texts in {workspace or DEFAULT_WORKSPACE}.",
            field="--workspace",
            hint="Name a workspace with --workspace DIR, or take some in: alphaloom news add FILE",
        )
    return NewsStore(folder)


def _find_text(store: NewsStore, start: str) -> NewsItem:
    """Return the text whose id begins with `start`."""
    from ....news import NewsStoreError

    matches = store.find_by_prefix(start.strip().lower())
    if len(matches) != 1:
        message = "several texts have an id that begins so" if matches else "no text has an id that begins so"
        hint = "Give more of it." if matches else "alphaloom news list and alphaloom news quarantine tell the ids."
        raise NewsStoreError(
            message, field="ID", got=start[:64], allowed=[item.id for item in matches] or None, hint=hint
        )
    return matches[0]
