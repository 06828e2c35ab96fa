"""Measure how many ordinary and injected texts the news screening holds back, and how fast.

python -m bench.news [FOLDER] [--injections FILE]

FOLDER holds text_*.parquet (time_utc, symbol, text); by default what ALPHALOOM_DATA names. The lines of FILE are
{"id", "template", "family", "language", "text"}. Items that were made from one template are alike, so the interval
(Wilson, 95 %) counts templates: one is found to the share of its items that are held back.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pa_parquet

from alphaloom.news import ScreeningVerdict, judge_text, sanitise
from alphaloom.news.screening.crowd import MIN_BURST_VOICES, WINDOW_HOURS, Utterance, compute_bands, find_bursts

SHOWN = 12
Z = 1.959964


def judged(texts: Sequence[str]) -> tuple[list[ScreeningVerdict], float]:
    """Return the verdicts on texts, and how many a second of processor time gave."""
    began = time.process_time()
    verdicts = [judge_text(sanitise(text)) for text in texts]
    return verdicts, len(texts) / (time.process_time() - began)


def ordinary(path: Path) -> Iterator[str]:
    """Yield the lines about a file of ordinary texts: what is held back as injected, with examples, and as noise."""
    table = pa_parquet.ParquetFile(path).read()
    texts = table["text"].to_pylist()
    verdicts, speed = judged(texts)
    held = [(verdict, text) for verdict, text in zip(verdicts, texts, strict=True) if verdict.injected]
    yield (
        f"{path.name}: {len(texts):,} texts, {len(held)} held back as injected ({len(held) / len(texts):.3%}), "
        f"{speed:,.0f} items a second"
    )
    names = Counter(sign.name for verdict, _ in held for sign in verdict.signs)
    yield "  signs: " + ", ".join(f"{name} {count}" for name, count in names.most_common(8))
    shown = {text[:40]: (verdict, text) for verdict, text in held}
    for verdict, text in list(shown.values())[:SHOWN]:
        signs = "; ".join(f"{sign.name} {sign.weight:g} {sign.evidence!r}" for sign in verdict.signs)
        yield f"  {verdict.score:.2f} {text[:110]!r} [{signs}]"
    if "symbol" in table.column_names:
        yield from shouted(texts, table["symbol"].to_pylist(), table["time_utc"].to_pylist())


def shouted(texts: Sequence[str], symbols: Sequence[str], times: Sequence[datetime]) -> Iterator[str]:
    """Yield how much would be held back as noise if each text were of an author of its own, of low standing."""
    said: dict[str, list[Utterance]] = defaultdict(list)
    for number, (text, symbol, moment) in enumerate(zip(texts, symbols, times, strict=True)):
        known = round(moment.replace(tzinfo=UTC).timestamp()) * 1_000_000
        said[symbol].append(Utterance(f"{number:09d}", known, str(number), False, compute_bands(text)))
    found = [int(item) for utterances in said.values() for item in find_bursts(utterances)]
    yield (
        f"  noise, were each text a voice of its own ({MIN_BURST_VOICES} voices in {WINDOW_HOURS:g} h): "
        f"{len(found)} ({len(found) / len(texts):.2%})"
    )
    for text, count in Counter(texts[number][:80] for number in found).most_common(4):
        yield f"    {count:>5} {text!r}"


def wilson(hits: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    if not count:
        return 0.0, 1.0
    share, square = hits / count, Z * Z / count
    middle = (share + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(share * (1 - share) / count + square / (4 * count))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def injected(path: Path) -> Iterator[str]:
    """Yield the lines about a file of injected texts: recall by family and by language."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    verdicts, _ = judged([row["text"] for row in rows])
    found = [verdict.injected for verdict in verdicts]
    for key in ("family", "language"):
        yield f"| {key} | items | found | templates | recall by template | 95 % |"
        yield "|---|---|---|---|---|---|"
        groups: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            groups[str(row[key])].append(place)
        for name, places in [*sorted(groups.items()), ("all", list(range(len(rows))))]:
            yield line(name, places, rows, found)
        yield ""
    yield "missed:"
    for row, verdict in zip(rows, verdicts, strict=True):
        if not verdict.injected:
            yield f"  {verdict.score:.2f} {row['id']} ({row['family']}, {row['language']}): {row['text'][:140]!r}"


def line(name: str, places: Sequence[int], rows: Sequence[Mapping[str, object]], found: Sequence[bool]) -> str:
    """Return one row of the table."""
    templates: dict[object, list[bool]] = defaultdict(list)
    for place in places:
        templates[rows[place]["template"]].append(found[place])
    hits = sum(sum(template) / len(template) for template in templates.values())
    low, high = wilson(hits, len(templates))
    many = f"{len(places)} | {sum(found[place] for place in places)} | {len(templates)}"
    return f"| {name} | {many} | {hits / len(templates):.3f} | {low:.3f} to {high:.3f} |"


def main() -> None:
    """Print all of it."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("folder", nargs="?", type=Path, default=Path(os.environ.get("ALPHALOOM_DATA", ".")))
    reader.add_argument("--injections", type=Path)
    asked = reader.parse_args()
    for path in sorted(asked.folder.glob("text_*.parquet")):
        for said in ordinary(path):
            print(said, flush=True)
    if asked.injections is not None:
        for said in injected(asked.injections):
            print(said)


if __name__ == "__main__":
    main()
