"""What the context cache finds, reads and costs: python -m benchmarks.context        about half a minute

Documents are made: statements on twelve matters about each of twenty firms, spread over prose that speaks of the same
matters and firms. A statement is asked for in its own words, in other forms of them, and in other words, where the firm's
name is all that the two share; then without the name too. A hit is a chunk, among the first five, that holds the statement.
The embedder that is built in knows spelling and no meaning, so the last two rows say what is not to be expected of it.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from alphaloom.router.context import ContextCache, HashedEmbedder, SqliteStore, split
from alphaloom.router.context.index import Cutting, Index
from alphaloom.router.context.passages import Ranked, Source, ranked
from alphaloom.router.context.terms import Terms

FIRST = 5
SEED, DOCUMENTS, FILLER, TIMES = 7, 6, 1500, 5

NAMES = (
    "Halvorsen", "Quillmark", "Tressider", "Boxwood", "Caldera", "Dunmore", "Eastvale", "Fenwick", "Garrick", "Holbrook",
    "Ironbridge", "Juniper", "Kestrel", "Larkspur", "Meridian", "Northgate", "Oakhurst", "Pemberton", "Ravenna", "Silverton",
)  # fmt: skip
MATTERS = (
    ("{} acquired a smaller competitor to widen its distribution.", "acquisition of small competitors by {} for wider distributing", "which rival was bought by {}"),
    ("{} lowered its dividend because cash was short.", "lower dividends at {} for shortage of cash", "did {} cut the payout to shareholders"),
    ("{} depends on one supplier for nearly all of its resin.", "dependence of {} on a single supplier of resins", "is {} exposed to a sole vendor of raw material"),
    ("{} was sued by former employees over unpaid overtime.", "suits by a former employee of {} on overtime payment", "litigation by ex staff for wages at {}"),
    ("{} restated revenue after an error in recognising licences.", "restatement of revenues by {} for errors in licence recognition", "were sales figures of {} corrected for accounting mistakes"),
    ("{} refinanced its bonds at a higher coupon.", "refinancing of a bond of {} at higher coupons", "costlier debt replaced old borrowings at {}"),
    ("{} closed a plant and dismissed four hundred workers.", "closing of plants and dismissal of workers by {}", "factory shutdown with layoffs at {}"),
    ("{} hedges its exposure to jet fuel with swaps.", "hedging of jet fuels by {} with a swap", "are kerosene price moves offset by derivatives at {}"),
    ("{} lost its largest customer in the autumn.", "loss of large customers by {} in autumn", "biggest client left {}"),
    ("{} impaired goodwill of its retail segment.", "impairment of retail goodwill at {}", "writedown of intangible assets in shops of {}"),
    ("{} appointed a chief executive from outside.", "appointment of an outside chief executive at {}", "new boss hired externally by {}"),
    ("{} suffered an intrusion into its payment systems.", "intrusions in a payment system of {}", "was {} hacked by cyber criminals"),
)  # fmt: skip
ASKED = ("its own words", "other forms of them", "other words and the name", "other words without it")
PROSE = (
    "Management of {} reviews customers, suppliers and plants every quarter",
    "The segment of {} reports revenue, cash and debt under local rules",
    "Employees of {} attended the annual meeting on distribution and systems",
    "Analysts discussed prices, wages and shareholders of {} at length",
    "The auditor of {} found no matter to report in the year",
)


@dataclass(frozen=True)
class Fact:
    """A statement of a document, and how it is asked for."""

    document: int
    said: str
    questions: tuple[str, ...]


def made(seed: int) -> tuple[list[str], list[Fact]]:
    """Return the documents and what is asked of them."""
    draw = random.Random(seed)
    bodies: list[list[str]] = [[] for _ in range(DOCUMENTS)]
    for body in bodies:
        for _ in range(FILLER):
            body.append(f"{draw.choice(PROSE).format(draw.choice(NAMES))}, note {draw.randint(1, 9999)}.")
    facts = []
    for name in NAMES:
        for said, forms, other in MATTERS:
            at = draw.randrange(DOCUMENTS)
            own, nameless = said.format(name), other.replace(" {}", "").replace("{} ", "")
            facts.append(Fact(at, own, (own, forms.format(name), other.format(name), nameless)))
            bodies[at].insert(draw.randrange(len(bodies[at])), own)
    joined = [" ".join(s + ("\n\n" if at % 6 == 5 else "") for at, s in enumerate(body)) for body in bodies]
    return joined, facts


Way = Callable[[str], list[Ranked]]


def ways(sources: Sequence[Source]) -> dict[str, Way]:
    """Return the ways to rank chunks that are set beside each other."""
    embedder = HashedEmbedder()
    vectors = np.concatenate([source.index.vectors for source in sources])
    places = [
        Ranked(at, first, stop) for at, each in enumerate(sources) for first, stop, _ in each.index.places.tolist()
    ]

    def dense(query: str) -> list[Ranked]:
        return [places[at] for at in np.argsort(-(vectors @ embedder.embed([query])[0]), kind="stable")]

    def both(query: str, *, fused: bool) -> list[Ranked]:
        return ranked(query, embedder.embed([query])[0], sources, dense=fused)

    return {"BM25": partial(both, fused=False), "vectors": dense, "both, as retrieved": partial(both, fused=True)}


def found(fact: Fact, first: Sequence[Ranked], sources: Sequence[Source]) -> bool:
    """Tell whether one of the first chunks holds a statement."""
    return any(each.source == fact.document and fact.said in sources[each.source].text[each.first : each.stop] for each in first)  # fmt: skip


def recall(facts: Sequence[Fact], sources: Sequence[Source]) -> Iterator[str]:
    """Yield the table of what is found, and of the tokens that are read for it."""
    rankers = ways(sources)
    total = sum(source.index.tokens for source in sources)
    alike = len(NAMES)
    yield f"{len(facts)} statements in {len(sources)} documents, {total:,} tokens; recall@{FIRST} in per cent"
    yield f"| asked for in | {' | '.join(rankers)} | everything |"
    yield "|---" * (len(rankers) + 2) + "|"
    for level, words in enumerate(ASKED):
        hits = [np.mean([found(fact, rank(fact.questions[level])[:FIRST], sources) for fact in facts]) for rank in rankers.values()]  # fmt: skip
        yield f"| {words} | {' | '.join(f'{100 * hit:.0f}' for hit in hits)} | 100 |"
    read = [_tokens(rank(facts[0].questions[0])[:FIRST], sources) for rank in rankers.values()]
    yield f"| tokens read | {' | '.join(f'{each:,}' for each in read)} | {total:,} |"
    yield f"| of everything | {' | '.join(f'1/{total / each:.0f}' for each in read)} | 1 |"
    yield f"Without the name {alike} statements answer alike, and one of them is counted: no reader could find above {100 * FIRST // alike} %."  # fmt: skip


def _tokens(first: Sequence[Ranked], sources: Sequence[Source]) -> int:
    return sum(Cutting().tokenizer.count(sources[each.source].text[each.first : each.stop]) for each in first)


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
    text = text[: split(text)[999].stop]
    chunks = split(text)
    texts = [text[chunk.first : chunk.stop] for chunk in chunks]
    stores = [SqliteStore(folder / f"{number}.db") for number in range(TIMES)]
    caches = iter([ContextCache(store) for store in stores])
    warm = ContextCache(stores[0])
    deeds: dict[str, Callable[[], object]] = {
        "cut": lambda: split(text),
        "embed": lambda: HashedEmbedder().embed(texts),
        "count words": lambda: Terms.of(texts),
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
    yield f"Kept: {warm.size().bytes / 1e6:.1f} MB."
    for store in stores:
        store.close()


def main() -> None:
    """Print both tables."""
    texts, facts = made(SEED)
    sources = [Source(str(at), text, "public", Index.of(text, Cutting(), HashedEmbedder())) for at, text in enumerate(texts)]  # fmt: skip
    for line in recall(facts, sources):
        print(line, flush=True)
    print()
    with tempfile.TemporaryDirectory() as folder:
        for line in speed(" ".join(texts * 4), Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
