"""What the context cache finds, reads and costs, in half a minute: python -m bench.context.

Documents are made: statements on twelve matters about each of twenty firms, in prose that speaks of the same firms and
matters; once mixed sentence by sentence, once with a section for each firm, who is named in its heading alone. A
statement is asked for in its own words, in other forms of them, and in other words, where the firm's name is all that
the two share; then without the name too. A hit is a chunk, among the first five, that holds the statement. Plain BM25
knows chunks as they are cut, and nothing else, and so does SQLite's own index (FTS5), by stems and by runs of letters.
The embedder that is built in knows spelling and no meaning: of the last two questions little is found, whatever the
way, and only an embedder that has learned a language could mend that.
"""

from __future__ import annotations

import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.router.context import ContextCache
from alphaloom.router.context.chunks import count_tokens, split_chunks
from alphaloom.router.context.index import Index
from alphaloom.router.context.passages import PassageSource, Ranked, rank_chunks, score_by_words
from alphaloom.router.context.store import SqliteStore
from alphaloom.router.context.terms import StemCounts, bm25_scores
from alphaloom.router.context.vectors import embed_texts

FIRST = 5
SEED, DOCUMENTS, FILLER, TIMES = 7, 6, 1500, 5

NAMES = (
    "Halvorsen", "Quillmark", "Tressider", "Boxwood", "Caldera", "Dunmore", "Eastvale", "Fenwick", "Garrick",
    "Holbrook", "Ironbridge", "Juniper", "Kestrel", "Larkspur", "Meridian", "Northgate", "Oakhurst", "Pemberton",
    "Ravenna", "Silverton",
)  # fmt: skip  # a table
MATTERS = (
    (
        "{} acquired a smaller competitor to widen its distribution.",
        "acquisition of small competitors by {} for wider distributing",
        "which rival was bought by {}",
    ),
    (
        "{} lowered its dividend because cash was short.",
        "lower dividends at {} for shortage of cash",
        "did {} cut the payout to shareholders",
    ),
    (
        "{} depends on one supplier for nearly all of its resin.",
        "dependence of {} on a single supplier of resins",
        "is {} exposed to a sole vendor of raw material",
    ),
    (
        "{} was sued by former employees over unpaid overtime.",
        "suits by a former employee of {} on overtime payment",
        "litigation by ex staff for wages at {}",
    ),
    (
        "{} restated revenue after an error in recognising licences.",
        "restatement of revenues by {} for errors in licence recognition",
        "were sales figures of {} corrected for accounting mistakes",
    ),
    (
        "{} refinanced its bonds at a higher coupon.",
        "refinancing of a bond of {} at higher coupons",
        "costlier debt replaced old borrowings at {}",
    ),
    (
        "{} closed a plant and dismissed four hundred workers.",
        "closing of plants and dismissal of workers by {}",
        "factory shutdown with layoffs at {}",
    ),
    (
        "{} hedges its exposure to jet fuel with swaps.",
        "hedging of jet fuels by {} with a swap",
        "are kerosene price moves offset by derivatives at {}",
    ),
    (
        "{} lost its largest customer in the autumn.",
        "loss of large customers by {} in autumn",
        "biggest client left {}",
    ),
    (
        "{} impaired goodwill of its retail segment.",
        "impairment of retail goodwill at {}",
        "writedown of intangible assets in shops of {}",
    ),
    (
        "{} appointed a chief executive from outside.",
        "appointment of an outside chief executive at {}",
        "new boss hired externally by {}",
    ),
    (
        "{} suffered an intrusion into its payment systems.",
        "intrusions in a payment system of {}",
        "was {} hacked by cyber criminals",
    ),
)
ASKED = ("its own words", "other forms of them", "other words and the name", "other words without it")
PROSE = (
    "Management of {} reviews customers, suppliers and plants every quarter",
    "The segment of {} reports revenue, cash and debt under local rules",
    "Employees of {} attended the annual meeting on distribution and systems",
    "Analysts discussed prices, wages and shareholders of {} at length",
    "The auditor of {} found no matter to report in the year",
)


Way = Callable[[str], list[Ranked]]


@dataclass(frozen=True)
class Fact:
    """A statement, where it stands, and how it is asked for."""

    document: int
    first: int
    stop: int
    questions: tuple[str, ...]


def prose(draw: random.Random, names: Sequence[str]) -> list[str]:
    """Return sentences that speak of firms and matters, and state nothing that is asked for."""
    return [f"{draw.choice(PROSE).format(draw.choice(names))}, note {draw.randint(1, 9999)}." for _ in range(FILLER)]


def joined(sentences: Sequence[str]) -> str:
    """Return paragraphs of six sentences."""
    return " ".join(said + ("\n\n" if at % 6 == 5 else "") for at, said in enumerate(sentences))


def scattered(seed: int) -> tuple[list[str], list[Fact]]:
    """Return documents in which firms and matters are mixed, sentence by sentence."""
    draw = random.Random(seed)
    bodies = [prose(draw, NAMES) for _ in range(DOCUMENTS)]
    held = [(draw.randrange(DOCUMENTS), name, matter) for name in NAMES for matter in MATTERS]
    for at, name, (said, *_) in held:
        bodies[at].insert(draw.randrange(len(bodies[at])), said.format(name))
    texts = [joined(body) for body in bodies]
    return texts, [_fact(at, texts[at], 0, matter[0].format(name), name, matter) for at, name, matter in held]


def sectioned(seed: int) -> tuple[list[str], list[Fact]]:
    """Return documents with a section for each firm, which is named in the heading alone."""
    draw = random.Random(seed)
    texts, facts = [""] * DOCUMENTS, []
    for number, name in enumerate(NAMES):
        at, body = number % DOCUMENTS, prose(draw, ["the company"])[: FILLER * DOCUMENTS // len(NAMES)]
        for said, *_ in MATTERS:
            body.insert(draw.randrange(len(body)), said.format("The company"))
        start = len(texts[at])
        texts[at] += f"\n\n# {name}\n\n{joined(body)}"
        facts += [_fact(at, texts[at], start, matter[0].format("The company"), name, matter) for matter in MATTERS]
    return texts, facts


def _fact(at: int, text: str, start: int, said: str, name: str, matter: tuple[str, ...]) -> Fact:
    first = text.index(said, start)
    words, forms, other = (form.format(name) for form in matter)
    nameless = matter[2].replace(" {}", "").replace("{} ", "")
    return Fact(at, first, first + len(said), (words, forms, other, nameless))


def ways(sources: Sequence[PassageSource]) -> dict[str, Way]:
    """Return the ways to rank chunks that are set beside each other."""
    places = [
        Ranked(at, first, stop) for at, each in enumerate(sources) for first, stop, _ in each.index.places.tolist()
    ]
    bare = [sources[place.source].text[place.first : place.stop] for place in places]
    terms, vectors = StemCounts.of(bare), np.concatenate([source.index.vectors for source in sources])

    def by(score: Callable[[str], NDArray[np.floating[Any]]]) -> Way:
        return lambda query: [places[at] for at in np.argsort(-score(query), kind="stable")]

    def by_sqlite(tokenizer: str) -> Way:
        index = sqlite3.connect(":memory:")
        index.execute(f"CREATE VIRTUAL TABLE chunks USING fts5(text, tokenize='{tokenizer}')")
        index.executemany("INSERT INTO chunks VALUES (?)", [(text,) for text in bare])

        def rank(query: str) -> list[Ranked]:
            asked = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
            rows = index.execute("SELECT rowid FROM chunks WHERE chunks MATCH ? ORDER BY rank LIMIT ?", (asked, FIRST))
            return [places[row - 1] for (row,) in rows]

        return rank

    return {
        "FTS5 by stems": by_sqlite("porter unicode61"),
        "FTS5 by letters": by_sqlite("trigram"),
        "plain BM25": by(lambda query: bm25_scores(query, terms)),
        "vectors": by(lambda query: vectors @ embed_texts([query])[0]),
        "BM25 by window": by(lambda query: score_by_words(query, sources)),
        "as retrieved": lambda query: rank_chunks(query, embed_texts([query])[0], sources),
    }


def found(fact: Fact, first: Sequence[Ranked]) -> bool:
    """Tell whether one of the first chunks holds a statement."""
    return any(
        passage.source == fact.document and passage.first <= fact.first and fact.stop <= passage.stop
        for passage in first
    )


def recall(kind: str, texts: Sequence[str], facts: Sequence[Fact]) -> Iterator[str]:
    """Yield the table of what is found, and of the tokens that are read for it."""
    sources = [PassageSource(str(at), text, "public", Index.of(text)) for at, text in enumerate(texts)]
    total = sum(source.index.tokens for source in sources)
    first = {
        name: [[rank(question)[:FIRST] for question in fact.questions] for fact in facts]
        for name, rank in ways(sources).items()
    }
    yield f"{kind}: {len(facts)} statements in {len(texts)} documents, {total:,} tokens; recall@{FIRST} in per cent"
    yield f"| asked for in | {' | '.join(first)} | all is read |"
    yield "|---" * (len(first) + 2) + "|"
    for level, words in enumerate(ASKED):
        hits = [
            np.mean([found(*pair) for pair in zip(facts, (ranks[level] for ranks in heard), strict=True)])
            for heard in first.values()
        ]
        yield f"| {words} | {' | '.join(f'{100 * hit:.0f}' for hit in hits)} | 100 |"
    read = [median(_tokens(passages, sources) for passages in heard[0]) for heard in first.values()]
    yield f"| tokens read | {' | '.join(f'{tokens:,.0f}' for tokens in read)} | {total:,} |"
    yield f"| of everything | {' | '.join(f'1/{total / tokens:.0f}' for tokens in read)} | 1 |"


def _tokens(first: Sequence[Ranked], sources: Sequence[PassageSource]) -> int:
    return sum(count_tokens(sources[passage.source].text[passage.first : passage.stop]) for passage in first)


def timed(deed: Callable[[], object]) -> float:
    """Return the CPU seconds of a deed, the median of some."""
    spent = []
    for _ in range(TIMES):
        began = time.process_time()
        deed()
        spent.append(time.process_time() - began)
    return median(spent)


def speed(text: str, folder: Path) -> Iterator[str]:
    """Yield the table of CPU time for one document of a thousand chunks."""
    text = text[: split_chunks(text)[999].stop]
    chunks = split_chunks(text)
    texts = [text[chunk.first : chunk.stop] for chunk in chunks]
    stores = [SqliteStore(folder / f"{number}.db") for number in range(TIMES)]
    caches = iter([ContextCache(store) for store in stores])
    warm = ContextCache(stores[0])
    deeds: dict[str, Callable[[], object]] = {
        "cut": lambda: split_chunks(text),
        "embed": lambda: embed_texts(texts),
        "count words": lambda: StemCounts.of(texts),
        "add, for the first time": lambda: next(caches).add(text, sensitivity="public"),
        "add again": lambda: warm.add(text, sensitivity="public"),
    }
    yield f"CPU time for {len(chunks):,} chunks, {len(text) / 1e6:.1f} million characters"
    yield "| | seconds |"
    yield "|---|---|"
    for name, deed in deeds.items():
        yield f"| {name} | {timed(deed):.3f} |"
    document = warm.add(text, sensitivity="public")
    ask = partial(warm.retrieve, "which rival was bought by Kestrel", [document], most_tokens=2000)
    yield f"| retrieve | {timed(ask):.3f} |"
    yield f"Kept: {stores[0].size().bytes / 1e6:.1f} MB."
    for store in stores:
        store.close()


def main() -> None:
    """Print the tables."""
    for kind, make in (("Firms mixed", scattered), ("A section for each firm", sectioned)):
        texts, facts = make(SEED)
        for line in recall(kind, texts, facts):
            print(line, flush=True)
        print()
    print(
        f"Without the name {len(NAMES)} statements answer alike and one counts: "
        f"none could find above {100 * FIRST // len(NAMES)} %.\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        for line in speed(" ".join(texts * 4), Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
