"""The text that trains the tiny model: the pages that agents read and replies like theirs, generated."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "agents" / "prompts").glob("*.md")), ROOT / "docs" / "reference" / "operators.md"]
REPLIES = 400

WHO = (
    "funds that must sell|index trackers|hedgers of a month's end|slow institutions|crowded books|dealers|retail buyers"
)
DOES = "overreact to|underreact to|are late with|pay too much for|are forced out of|wait too long for|do not see"
WHAT = "bad news|turnover|a rise in volume|old highs|spreads|losses of the week|momentum|quiet names|dividends"
FORMULAS = (
    "-1 * ts_sum(returns, 5)|rank(volume) * rank(returns)|ts_corr(close, volume, 20)|"
    "ts_mean(returns, 20)|-ts_std(returns, 60)|"
    "(close - ts_min(low, 20)) / (ts_max(high, 20) - ts_min(low, 20))|rank(ts_mean(volume, 5))|delay(returns, 1)"
)
CODES = "turnover|decay|crowded|one_year|coverage|sign"
CHANGES = "smooth|neutralise|shorten|lengthen|retime|condition|swap_field|combine|invert|simplify"


class Writer:
    """Writes sentences and replies, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def one(self, words: str) -> str:
        return self.draw.choice(words.split("|"))

    def sentence(self) -> str:
        return f"{self.one(WHO)} {self.one(DOES)} {self.one(WHAT)}".capitalize() + "."

    def idea(self) -> dict[str, Any]:
        return {
            "mechanism": self.one(WHAT), "statement": self.sentence(), "who_is_on_the_other_side": self.one(WHO),
            "why_it_persists": self.sentence(), "direction": self.draw.choice((1, -1)),
            "horizon_days": self.draw.randint(1, 60), "fields": ["close", "volume"],
            "regime": self.one("calm|any|stress"), "refuted_by": self.sentence(), "succeeds": "", "either_way": False,
        }  # fmt: skip  # a table

    def candidate(self) -> dict[str, Any]:
        return {"text": self.one(FORMULAS), "rationale": self.sentence(), "intent": self.one(CHANGES), "parent": ""}

    def critique(self) -> dict[str, Any]:
        return {
            "weaknesses": [{"code": self.one(CODES), "message": self.sentence()}],
            "advice": [{"operator": self.one(CHANGES), "why": self.sentence()}],
            "keep": self.draw.random() < 0.5,
            "alignment": {"verdict": "agrees", "why": self.sentence()},
        }

    def reply(self) -> str:
        some = range(self.draw.randint(1, 3))
        kind = self.draw.randrange(3)
        if kind == 0:
            return json.dumps({"hypotheses": [self.idea() for _ in some]})
        return json.dumps({"candidates": [self.candidate() for _ in some]} if kind == 1 else self.critique())


def corpus(seed: int = 1) -> dict[str, list[str]]:
    """Return the pages and the replies."""
    writer = Writer(seed)
    return {
        "pages": [page.read_text(encoding="utf-8") for page in PAGES],
        "replies": [writer.reply() for _ in range(REPLIES)],
    }
