"""What model servers that misbehave cost: each kind alone and before a healthy model, at a price and for nothing.

python -m bench.router misbehaving                      the table: who was asked, what was charged, what came of it
python -m bench.router misbehaving --provider openai    as a model of OpenAI, whose parameters LiteLLM fits

m1 misbehaves, m2 is healthy. Charged is one word for each attempt on the bill: `told` by the server, `cached` (told,
some of it at the lower price), `counted` by us where what it told cannot be, `worst` where nobody can know or it told
more than can be. The exit code is 1 where a row is not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from alphaloom.ledger import AlphaloomError, Ledger, ModelCall, Run
from alphaloom.router import Message, Router, RouterConfig, Task
from alphaloom.router.calls.prices import Charges, bound_tokens_below, count_charged_tokens
from alphaloom.router.timing import Timing

from .misbehaviours import KEY, PLAYS, WELL, served

__all__ = ["EXPECTED", "Outcome", "Row", "expected", "outcome"]

PRICES = {"input_cost_per_mtok": 100.0, "output_cost_per_mtok": 1000.0, "cached_input_cost_per_mtok": 10.0}
TOLD = (40, 17)
SILENT = frozenset({"never answers", "drips for ever"})
PATIENT_S, IMPATIENT_S = 20.0, 0.4


class Idea(BaseModel):
    """What is asked for."""

    text: str
    direction: int
    weight: float


@dataclass(frozen=True)
class Row:
    """Who was asked, what was charged, and who answered or how the call failed."""

    asked: str
    charged: str
    got: str


@dataclass(frozen=True)
class Outcome:
    """What came of a call: its row, what was charged in US dollars and the bounds of that, and what a person reads."""

    row: Row
    usd: float
    least_usd: float
    most_usd: float
    said: str
    held: int


def once(charged: str = "told") -> tuple[Row, Row]:
    """Return the rows of what is answered at once."""
    return Row("m1", charged, "m1"), Row("m1", charged, "m1")


def goes_on(alone: Row, asked: str = "", charged: str | None = None) -> tuple[Row, Row]:
    """Return the rows of what m1 alone cannot answer and m2 does; it may be asked less often where m2 is there."""
    before = alone.charged if charged is None else charged
    return alone, Row(f"{asked or alone.asked} m2".strip(), _sorted([*before.split(), "told"]), "m2")


def _sorted(words: Iterable[str]) -> str:
    """Return the words of a bill, those of the worst first: a record of calls has no order in time."""
    return " ".join(sorted(words, reverse=True))


UNREAD = goes_on(Row("m1 m1", "worst worst", "ModelFailed"))
LATE = goes_on(Row("m1 m1", "worst worst", "ModelFailed"), "m1", "worst")
BUSY = goes_on(Row("m1 m1", "", "ModelFailed"))
RESTS = goes_on(Row("m1 m1", "", "ModelFailed"), "m1")
REFUSED = goes_on(Row("m1", "", "RequestRefused"))
BARRED = goes_on(Row("m1", "", "AccessRefused"))
MISFIT = goes_on(Row("m1 m1 m1", "told told told", "ReplyRefused"))
DECLINED = goes_on(Row("m1", "told", "ReplyRefused"))
LONG = goes_on(Row("m1 m1 m1", "worst worst worst", "ReplyRefused"))
EXPECTED: dict[str, tuple[Row, Row]] = {
    "refuses connections": goes_on(Row("", "", "ModelFailed")),
    **dict.fromkeys(("closes at once", "half a reply", "pours for ever", "10 MB", "10 MB of words"), UNREAD),
    **dict.fromkeys(("broken gzip", "gzip that it is not", "gzip bomb"), UNREAD),
    **dict.fromkeys(SILENT, LATE),
    "answers slowly": once(),
    **dict.fromkeys(("redirect", "401", "403", "404"), BARRED),
    **dict.fromkeys(("400", "413", "422"), REFUSED),
    **dict.fromkeys(("408", "429", "500", "502", "503", "529", "503 until a date"), BUSY),
    **dict.fromkeys(("500 with a trace and the key", "500 in HTML"), BUSY),
    "429 for 30 s": RESTS,
    **dict.fromkeys(("HTML", "empty body", "null", "a list", "an error with status 200", "no choices"), UNREAD),
    **dict.fromkeys(("choices missing", "choices null", "choices a text", "no message", "invalid UTF-8"), UNREAD),
    **dict.fromkeys(("BOM before the body", "another model's name", "strange finish"), once()),
    **dict.fromkeys(("content in parts", "content an object", "words around it", "a fence among words"), once()),
    **dict.fromkeys(("thoughts before it", "thoughts never opened", "BOM before it", "the same twice"), once()),
    **dict.fromkeys(("in tool_calls", "in tool_calls, not as text", "in function_call"), once()),
    "in reasoning_content": once(),
    **dict.fromkeys(("null content", "content a number", "two that differ", "cut off", "never closed"), MISFIT),
    **dict.fromkeys(("wrong always", "words only", "NaN", "a number too large", "one key twice"), MISFIT),
    "half a surrogate": MISFIT,
    **dict.fromkeys(("a refusal", "a content filter"), DECLINED),
    "half a character": UNREAD,
    "wrong once": (Row("m1 m1", "told told", "m1"),) * 2,
    **dict.fromkeys(("a number of 9,999 digits", "a thousand objects", "nested too deep"), LONG),
    **{name: once("counted") for name in PLAYS if name.startswith("usage ")},
    "usage in floats": once(),
    "usage in details a text": once(),
    "usage fantastic": once("worst"),
    **dict.fromkeys(("cached", "cached as Anthropic tells"), once("cached")),
    **dict.fromkeys(("cached more than sent", "cached less than nothing"), once()),
}
"""By kind: the row of m1 alone, and that of m1 before m2."""


def expected(kind: str, models: int, *, priced: bool) -> Row:
    """Return the row of a kind as it should be; what is free of charge is asked and answered alike."""
    row = EXPECTED[kind][models - 1]
    return row if priced else replace(row, charged="")


class _Scene:
    """Servers, and every call that reached them."""

    def __init__(self, kind: str, models: int, *, priced: bool, provider: str) -> None:
        self.kind, self.models, self.provider = kind, models, provider
        self.prices = PRICES if priced else dict.fromkeys(PRICES, 0.0)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def config(self, stack: ExitStack) -> RouterConfig:
        """Start the servers and return the settings that name them."""
        plays = [PLAYS.get(self.kind), WELL][: self.models]
        models = {
            name: {
                "model": f"{self.provider}/tiny",
                "place": "remote",
                "api_key_env": name.upper(),
                **self.prices,
                "api_base": stack.enter_context(served(play, self._hearing(name))),
            }
            for name, play in zip(("m1", "m2"), plays, strict=False)
        }
        seconds = IMPATIENT_S if self.kind in SILENT else PATIENT_S
        health = {"patience_seconds": 0, "heartbeat_seconds": 0, "probe_seconds": PATIENT_S}
        return RouterConfig.model_validate(
            {"models": models, "timeout_seconds": seconds, "retries": 1, "cooldown_seconds": 60, "health": health}
        )

    def _hearing(self, name: str) -> Any:
        def heard(body: bytes) -> int:
            self.asked.append((name, json.loads(body)))
            return sum(each == name for each, _ in self.asked)

        return heard


def task() -> Task:
    """Return the question."""
    messages = (Message("user", "Propose something."),)
    return Task(
        role="factor", intent="new", messages=messages, schema=Idea, prompt="p", run="one", seed=1, max_tokens=100
    )


def outcome(kind: str, models: int, *, priced: bool, provider: str = "hosted_vllm") -> Outcome:
    """Ask once, and return what came of it."""
    scene = _Scene(kind, models, priced=priced, provider=provider)
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        config = scene.config(stack)
        ledger = stack.enter_context(Ledger.open(Path(folder), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)))
        ledger.runs.start(Run("one", {}, 1, "data", "2026-01-02"))
        timing = replace(Timing(), sleep=lambda _: asyncio.sleep(0))
        router = Router(config, ledger, environment={"M1": KEY, "M2": KEY[::-1]}, timing=timing)
        got, said = asyncio.run(_asked(router))
        charges, calls = Charges(config.models), ledger.calls.of("one")
        words = _sorted(word for call in calls for word in _words(ledger, charges, call))
        most = [charges.bound_cost(name, task(), body["messages"]).cost_usd for name, body in scene.asked]
        return Outcome(
            Row(" ".join(name for name, _ in scene.asked), words if priced else "", got),
            sum(call.cost_usd for call in calls),
            sum(_least(ledger, charges, call) for call in calls),
            sum(most),
            said,
            len(ledger.holds.open()),
        )


async def _asked(router: Router) -> tuple[str, str]:
    """Return who answered or how the call failed, and what a person reads of it."""
    try:
        reply = await router.ask(task())
    except AlphaloomError as error:
        return type(error).__name__, f"{error} {error.record()}"
    finally:
        await router.close()
    value = (reply.value.text, reply.value.direction, reply.value.weight)
    return reply.model, "" if value == ("drift", 1, 0.5) else f"read as {value}"


def _words(ledger: Ledger, charges: Charges, call: ModelCall) -> Iterator[str]:
    """Yield one word for each attempt of a recorded call that is on the bill."""
    body, messages = (
        json.loads(ledger.objects.get(call.reply)),
        json.loads(ledger.objects.get(call.request))["messages"],
    )
    beside = body.get("beside", [])
    worst = charges.bound_cost(call.model, task(), messages)
    for each in beside:
        yield "worst" if each["cost_usd"] == worst.cost_usd else "?"
    if body["finish"] == "lost":
        return
    tokens = tuple(
        total - sum(row[name] for row in beside)
        for total, name in ((call.tokens_in, "tokens_in"), (call.tokens_out, "tokens_out"))
    )
    counted = sum(count_charged_tokens(message["content"]) for message in messages), count_charged_tokens(body["text"])
    known = {(worst.tokens_in, worst.tokens_out): "worst", counted: "counted"}
    known |= {(tokens[0], worst.tokens_out): "worst", TOLD: "cached" if "cached" in body else "told"}
    yield known.get(tokens, f"{tokens}")


def _least(ledger: Ledger, charges: Charges, call: ModelCall) -> float:
    """Return what the text of a recorded reply costs at the least."""
    return (
        bound_tokens_below(json.loads(ledger.objects.get(call.reply))["text"][:1600])
        * charges.require_price(call.model)[1]
    )


def main(given: Sequence[str]) -> int:
    """Print the table; 1 if a row is not as it should be."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--provider", default="hosted_vllm", choices=["hosted_vllm", "openai"])
    provider = options.parse_args(given).provider
    bad = 0
    for kind in EXPECTED:
        for models in (1, 2):
            found = outcome(kind, models, priced=True, provider=provider)
            free = outcome(kind, models, priced=False, provider=provider)
            good = found.row == expected(kind, models, priced=True) and free.row == expected(kind, models, priced=False)
            bad += not good
            row, before = found.row, "m1 before m2" if models == 2 else "m1 alone"
            told = f"{kind:29}{before:14}{row.asked:13}{row.charged or 'nothing':24}{found.usd:8.4f} USD  {row.got}"
            sys.stdout.write(f"{'ok  ' if good else 'BAD '}{told}\n")
            sys.stdout.flush()
    return int(bool(bad))
