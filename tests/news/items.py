"""Items and files that tests write."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from alphaloom.news import NewsItem, Provenance, judge_text, sanitise

START = datetime(2015, 1, 30, 14, 0, tzinfo=UTC)
RUMOUR = "zorvex gets secret takeover offer at forty dollars a share says insider"


def item(
    text: str,
    minutes: float = 0,
    source: str = "wire",
    symbols: tuple[str, ...] = ("ACME",),
    credibility: float = 0.5,
    late: float = 0,
) -> NewsItem:
    """Return an item published some minutes after the start, known `late` minutes after that."""
    published = START + timedelta(minutes=minutes)
    clean = sanitise(text)
    return NewsItem(
        source, "", symbols, "", clean.text, published, published + timedelta(minutes=late), "news",
        Provenance("made.jsonl", 1, "0" * 64), credibility, judge_text(clean).signs,
    )  # fmt: skip  # a table


def crowd(count: int, minutes: float = 0, apart: float = 1, text: str = RUMOUR) -> list[NewsItem]:
    """Return nearly the same text from as many voices of low standing."""
    ends = ("now", "wow", "today", "!!!")
    posts = [
        item(f"{text} {ends[n % 4]}", minutes + n * apart, f"forum/user{n}", credibility=0.2) for n in range(count)
    ]
    return [replace(post, kind="post") for post in posts]


def at(minutes: float) -> datetime:
    """Return an instant."""
    return START + timedelta(minutes=minutes)


def write(folder: Path, name: str, text: str) -> Path:
    """Write a file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
