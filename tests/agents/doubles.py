"""A desk for tests: the offline researcher answers, a small landscape scores, dictionaries remember."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from alphaloom.agents import AgentsConfig, Own, SearchContext, Steer, Toolset, run_graph
from alphaloom.agents.memory.diversity import measure_overlap
from alphaloom.agents.nodes.documents import Documents
from alphaloom.agents.offline import answer_offline
from alphaloom.factors import OPERATORS, FactorError, parse
from alphaloom.router import Reply, Task

FIELDS = ("amount", "close", "high", "low", "open", "returns", "volume", "vwap")
GROUPS = ("industry", "sector")
TARGET = "ts_mean(rank(volume / ts_mean(volume, 20)), 5)"
SMALL = AgentsConfig(rounds=2, hypotheses=2, candidates=2, steps=1, repairs=2)


class Crash(Exception):
    """Stands for a machine that went down."""


@dataclass
class Fuse:
    """Blows once, at one operation of the desk."""

    at: int = 0
    count: int = 0

    def tick(self) -> None:
        self.count += 1
        if self.count == self.at:
            raise Crash(f"at operation {self.at}")


@dataclass
class Shelf:
    """A journal in memory; survives a crash of the desk."""

    fuse: Fuse
    kept: dict[tuple[str, str], str] = field(default_factory=dict)

    def record(self, kind: str, key: str, body: dict[str, Any]) -> None:
        self.fuse.tick()
        self.kept.setdefault((kind, key), json.dumps(body, allow_nan=False))

    def read(self, kind: str, key: str) -> dict[str, Any] | None:
        found = self.kept.get((kind, key))
        return None if found is None else json.loads(found)


@dataclass
class Model:
    """The offline researcher behind a response cache, as the router has one; counts what was really asked."""

    fuse: Fuse
    order: int = 0
    replies: dict[str, str] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    say: Callable[[Task], str | None] = lambda task: None

    async def ask(self, task: Task) -> Reply[Any]:
        self.fuse.tick()
        key = sha256(repr((task.messages, task.seed, task.schema)).encode()).hexdigest()
        # A delay that differs by order and task: branches come back in another order each time.
        await asyncio.sleep(sha256(f"{self.order}{key}".encode()).digest()[0] / 255 * 0.01 * bool(self.order))
        if key not in self.replies:
            self.tasks.append(task)
            messages = [message.record() for message in task.messages]
            self.replies[key] = self.say(task) or answer_offline(messages, task.seed)
        value = task.schema.model_validate_json(self.replies[key])
        self.fuse.tick()
        return Reply(value, key, "m", "local", 0.0, 0, 0, cached=False, repairs=0)


@dataclass
class Servers:
    """The four tool servers over a landscape: the more a formula shares with the target, the higher its t."""

    fuse: Fuse
    evaluations: int = 100
    trials: int = 10
    strength: Callable[[str], float] = lambda text: 12 * measure_overlap(text, TARGET, FIELDS, GROUPS)
    scored: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: dict[str, Any] = field(default_factory=dict)
    hypotheses: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    stated: list[tuple[str, str, str]] = field(default_factory=list)
    refuse: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda arguments: None

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.fuse.tick()
        self.calls.append((name, arguments))
        reply: dict[str, Any] = getattr(self, name)(**arguments)
        self.fuse.tick()
        return json.loads(json.dumps(reply, allow_nan=False))  # type: ignore[no-any-return]

    def recall_attempts(self, limit: int, query: str = "", language: bool = False) -> dict[str, Any]:
        rows = sorted(self.scored.values(), key=lambda row: (-abs(row["t"]), row["id"]))
        return {
            "factors": rows[:limit],
            "hypotheses": [self.hypotheses[key] for key in sorted(self.hypotheses)],
            "library": [],
            "operators": [{"name": n, "signature": o.signature, "doc": o.doc} for n, o in sorted(OPERATORS.items())],
            "fields": list(FIELDS),
            "groups": list(GROUPS),
        }

    def search_fields(self, query: str) -> dict[str, Any]:
        return {"fields": [{"name": name, "meaning": name} for name in FIELDS if query in name]}

    def search_news(self, limit: int) -> dict[str, Any]:
        """Return the newest texts of a shelf, as the news server tells them."""
        return {"items": self.texts[:limit], "total": len(self.texts), "next_cursor": ""}

    def get_budget(self) -> dict[str, Any]:
        return {"evaluations_left": self.evaluations - len(self.scored), "trials_left": self.trials - len(self.looks)}

    def choose_drafts(
        self, texts: list[str], hypothesis: dict[str, Any], count: int, like: str | None = None, either: bool = False
    ) -> dict[str, Any]:
        """Choose the last drafts, and turn the very last where allowed, which shows that the choice is taken."""
        chosen = list(range(len(texts)))[::-1][:count]
        turned = [{"place": place, "text": f"-({texts[place]})"} for place in chosen[: int(either)]]
        return {"forecasts": [None] * len(texts), "chosen": chosen, "turned": turned}

    def list_formulas(self, which: str, limit: int = 10) -> dict[str, Any]:
        """Say that nothing leads, and name one formula that nobody wrote."""
        if which == "leaders":
            return {"leaders": []}
        return {
            "unexplored": [{"text": "ts_kurt(close, 33)", "rank_ic": 0.0, "beside": 0.0, "known": 0.0}][:limit],
            "surveying": False,
        }

    def score_factor(
        self, text: str, hypothesis: dict[str, Any], key: str, description: str = "", refuter: str = ""
    ) -> dict[str, Any]:
        if refuter:  # every stated mechanism stands
            self.stated.append((hypothesis["id"], hypothesis["mechanism"], refuter))
            return {"id": hypothesis["id"], "stands": True, "why": "", "rank_ic": 0.01, "t": 3.0}
        self.hypotheses.setdefault(hypothesis["id"], hypothesis)
        refusal = self.refuse({"text": text, "hypothesis": hypothesis, "key": key})
        if refusal is not None:
            return {"ok": False, **refusal}
        try:
            expression = parse(text, fields=FIELDS, groups=GROUPS)
        except FactorError as error:
            return {"ok": False, "stage": "parse", "errors": [{"message": error.message, "hint": "", "at": 0}]}
        row = {"id": expression.id, "text": expression.canonical_text, "hypothesis": hypothesis["id"]}
        noise = int(expression.id[1:5], 16) / 65_536 - 0.5
        t = hypothesis["direction"] * (self.strength(text) + noise)
        self.scored.setdefault(
            expression.id, row | {"t": t, "merit": abs(t) - 0.1, "mechanism": hypothesis["mechanism"]}
        )
        sheet = {
            "t": t,
            "rank_ic": t / 300,
            "turnover": 0.5,
            "decay": {"10": None, "1": t / 200, "5": 0.012345},
            "by_year": {},
        }
        sheet["quantile_returns"] = [-0.001234, None, -1e-9]
        weaknesses = [{"code": "turnover", "message": "half of the book is traded each day", "value": 0.5}]
        return {"ok": True, "id": expression.id, "text": text, "sheet": sheet, "weaknesses": weaknesses, "new": True}

    def submit_to_gate(self, ids: list[str], key: str, as_set: bool = False) -> dict[str, Any]:
        if as_set:
            self.looks["set"] = ids
            return {"verdicts": [{"id": "set", "verdict": "rejected", "reasons": []}]}
        assert all(name in self.scored for name in ids)
        self.looks.update(dict.fromkeys(ids))
        return {"verdicts": [{"id": name, "verdict": "rejected", "reasons": []} for name in ids]}


@dataclass
class Lab:
    """One campaign on the landscape; what it keeps survives a crash."""

    folder: Path
    config: AgentsConfig = SMALL
    seed: int = 7
    fuse: Fuse = field(default_factory=Fuse)
    steer: Steer = field(default_factory=Steer)
    own: Own = field(default_factory=Own)
    documents: Documents | None = None

    def __post_init__(self) -> None:
        self.journal = Shelf(self.fuse)
        self.model = Model(self.fuse)
        self.servers = Servers(self.fuse)
        self.shown: list[tuple[str, dict[str, Any]]] = []

    def desk(self) -> SearchContext:
        tools = Toolset(dict.fromkeys(("market", "factors", "evaluation", "news"), self.servers))
        show = lambda event, figures: self.shown.append((event, figures))
        return SearchContext(
            self.model,
            tools,
            self.journal,
            "run",
            self.seed,
            self.config,
            progress=show,
            steer=self.steer,
            own=self.own,
            documents=self.documents,
        )

    def run(self, resume: bool = False) -> dict[str, Any]:
        return dict(asyncio.run(run_graph(self.desk(), self.folder / "graph.sqlite", "run", resume)))


def context(task: str, **parts: Any) -> dict[str, Any]:
    """Return a prompt's context for the landscape's market."""
    language = {"operators": [], "fields": list(FIELDS), "groups": list(GROUPS)}
    return {"task": task, "market": {"horizon_days": 5}, "language": language, **parts}


def ask(body: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    """Return the offline researcher's reply to a context."""
    messages = [{"role": "system", "content": "the prompt"}, {"role": "user", "content": json.dumps(body)}]
    reply: dict[str, Any] = json.loads(answer_offline(messages, seed))
    return reply
