"""Measure a server at a few numbers of streams at once: first token, each further token, tokens a second; with a plan.

The number of requests is fixed before the first one, and so is the time: what is not answered by then is given up.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import anyio

from ..choice import choose_launch, compute_mid_reply_length
from ..devices import Device
from ..errors import ServingError
from ..memory import MemoryBudget
from ..request import Request
from ..speed import estimate_first_token, estimate_output_step
from .client import ReplyFailed, ServerClient, ServerFacts, TimedReply, make_failure

STREAM_LEVELS = (1, 4, 8)
WARM_UPS, WARM_UP_SHARE = 1, 3  # requests, and the part of a prompt's tokens that the first one has as words
FILLER = "market "
MIN_BUNCHED_TOKENS, BUNCHED_SHARE = 8, 0.05  # tokens, and part of a reply's time in which all of them came
REFUSED_HINT = (
    "The server says why. A wrong key: set VLLM_API_KEY. A prompt that is too long: give fewer --prompt-tokens."
)
COMPARED = ("time_to_first_token_ms", "per_token_ms", "tokens_per_second")


@dataclass(frozen=True)
class MeasurementTerms:
    """What is sent, and how much of it at most."""

    prompt_tokens: int
    reply_tokens: int
    model: str = ""
    """The name under which the server serves it; the server's first by default."""
    levels: tuple[int, ...] = STREAM_LEVELS
    rounds: int = 2
    """Requests of each stream, one after the other."""
    time_limit_s: float = 120.0
    mark: str = ""
    """A text at the start of each prompt, so that no earlier measurement is in the server's prefix cache."""

    @property
    def most_requests(self) -> int:
        """Return the largest number of requests that are sent."""
        return WARM_UPS * 2 + self.rounds * sum(self.levels)


@dataclass(frozen=True)
class LevelTimes:
    """What callers saw at one number of streams: medians, in ms; None where no reply had it."""

    streams: int
    answered: int
    failed: int
    given_up: int
    """Requests that were sent and not answered in time, or not sent any more."""
    first_failure: str
    time_to_first_token_ms: float | None
    per_token_ms: float | None
    tokens_per_second: float | None
    prompt_tokens: int | None
    reply_tokens: int | None


@dataclass(frozen=True)
class Measurement:
    """All levels of one measurement, with what the server says of itself."""

    address: str
    server: ServerFacts
    model: str
    levels: tuple[LevelTimes, ...]
    seconds: float
    notes: tuple[str, ...]


async def measure_server(
    client: ServerClient, terms: MeasurementTerms, seconds: Callable[[], float], say: Callable[[str], None]
) -> Measurement:
    """Warm the server up, then measure each level within the time that is left.

    Raises
    ------
    ServingError
        The server does not answer, refuses the first request, or none is answered in time.
    """
    begun = seconds()
    server = await client.read_facts()
    model = terms.model if terms.model in server.models else server.models[0]
    run = _Run(client, terms, model, begun + terms.time_limit_s, seconds)
    await run.warm_up()
    levels = []
    for streams in terms.levels:
        say(f"Measuring {streams} at once: {terms.rounds * streams} requests, {run.left_s:.0f} s left.")
        levels.append(await run.measure_level(streams))
    if not any(level.answered for level in levels):
        failure = next((level.first_failure for level in levels if level.first_failure), "no time was left")
        raise make_failure(f"{client.address} answered no request in full: {failure}", _time_hint(terms))
    return Measurement(client.address, server, model, tuple(levels), seconds() - begun, tuple(run.notes))


class _Run:
    """One measurement under way: its deadline, the number of prompts sent, and what must be said of it."""

    def __init__(
        self,
        client: ServerClient,
        terms: MeasurementTerms,
        model: str,
        deadline: float,
        seconds: Callable[[], float],
    ) -> None:
        self.client, self.terms, self.model, self.deadline, self.seconds = client, terms, model, deadline, seconds
        self.notes: list[str] = []
        self.sent = 0
        self.words = max(1, terms.prompt_tokens // WARM_UP_SHARE)
        self.full_length = True

    @property
    def left_s(self) -> float:
        """Return the seconds until the deadline."""
        return max(0.0, self.deadline - self.seconds())

    async def warm_up(self) -> None:
        """Send one request that is not counted; once more without `ignore_eos`, where the server refuses that field."""
        with anyio.move_on_after(self.left_s) as scope:
            try:
                self._fit_prompt(await self.client.ask(self._build_body()))
            except ReplyFailed as first:
                await self._warm_up_plainly(first)
        if scope.cancelled_caught:
            message = f"{self.client.address} did not answer the first request within {self.terms.time_limit_s:g} s"
            raise make_failure(message, _time_hint(self.terms))

    async def _warm_up_plainly(self, first: ReplyFailed) -> None:
        self.full_length = False
        try:
            self._fit_prompt(await self.client.ask(self._build_body()))
        except ReplyFailed:
            raise make_failure(
                f"{self.client.address} {first}", REFUSED_HINT if "answered 4" in str(first) else ""
            ) from None
        self.notes.append("the server takes no ignore_eos, so replies may be shorter than asked")

    def _fit_prompt(self, reply: TimedReply) -> None:
        """Make prompts as long as asked, by the tokens that the server counted in the first one."""
        each = (reply.prompt_tokens or self.words) / self.words
        self.words = max(1, round(self.terms.prompt_tokens / each))

    async def measure_level(self, streams: int) -> LevelTimes:
        """Ask with so many streams at once."""
        replies: list[TimedReply] = []
        failures: list[str] = []
        begun = self.seconds()
        with anyio.move_on_after(self.left_s):
            async with anyio.create_task_group() as group:
                for _ in range(streams):
                    group.start_soon(self._ask_in_turn, replies, failures)
        spent = self.seconds() - begun
        planned = streams * self.terms.rounds
        if not all(reply.counted for reply in replies):
            self._note("the server counts no tokens: each piece of a stream was taken for one")
        if any(map(_is_bunched, replies)):
            note = "replies came all at once, so their first token is late and the time per token too small"
            self._note(f"with {streams} at once some {note}")
        return LevelTimes(
            streams, len(replies), len(failures), planned - len(replies) - len(failures),
            failures[0] if failures else "",
            _median_ms([reply.first_s for reply in replies]),
            _median_ms([each for reply in replies if (each := reply.per_token_s) is not None]),
            round(sum(reply.reply_tokens for reply in replies) / spent, 1) if replies and spent > 0 else None,
            _median_count([reply.prompt_tokens for reply in replies if reply.prompt_tokens]),
            _median_count([reply.reply_tokens for reply in replies]),
        )  # fmt: skip  # a table

    async def _ask_in_turn(self, replies: list[TimedReply], failures: list[str]) -> None:
        """Send the requests of one stream, one after the other."""
        for _ in range(self.terms.rounds):
            try:
                replies.append(await self.client.ask(self._build_body()))
            except ReplyFailed as failure:
                failures.append(str(failure))

    def _build_body(self) -> dict[str, Any]:
        """Return a request whose prompt no other one begins with."""
        self.sent += 1
        content = f"{self.terms.mark} {self.sent}: {FILLER * self.words}"
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
            "max_tokens": self.terms.reply_tokens,
        }
        return body | ({"ignore_eos": True} if self.full_length else {})

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _is_bunched(reply: TimedReply) -> bool:
    """Return whether a stream's tokens came together at its end, as from a server without a free processor."""
    several = reply.reply_tokens >= MIN_BUNCHED_TOKENS
    return several and reply.last_s - reply.first_s < BUNCHED_SHARE * reply.last_s


def _median_ms(values: Sequence[float]) -> float | None:
    return round(statistics.median(values) * 1e3, 2) if values else None


def _median_count(values: Sequence[int]) -> int | None:
    return round(statistics.median(values)) if values else None


def _time_hint(terms: MeasurementTerms) -> str:
    shorter = f"fewer --prompt-tokens or --reply-tokens than {terms.prompt_tokens:,} and {terms.reply_tokens:,}"
    return f"Give it longer with --measure-seconds, or ask for {shorter}."


def compare_plan(measured: Measurement, request: Request, device: Device, at: datetime) -> dict[str, Any]:
    """Return a measurement as one JSON object, with the plan's figure beside each.

    The device is what the caller says: a server does not tell it. The plan's times are those of prompts that arrive
    together and are read one after the other, nothing cached and nobody else served.
    """
    budget = choose_launch(request, device).budget
    levels = []
    for level in measured.levels:
        row = asdict(level)
        times = {name: row.pop(name) for name in COMPARED}
        levels.append(row | {"measured": times, "planned": _plan_level(level, request, device, budget)})
    return {
        "measured_at": at.isoformat(timespec="seconds"),
        "address": measured.address,
        "server": asdict(measured.server) | {"model": measured.model},
        "device": {"name": device.name, "title": device.title, "count": budget.gpus, "told_by": "the caller"},
        "plan": {"model": request.model.name, "precision": budget.precision},
        "seconds": round(measured.seconds, 1),
        "levels": levels,
        "notes": list(measured.notes),
    }


def _plan_level(level: LevelTimes, request: Request, device: Device, budget: MemoryBudget) -> dict[str, float]:
    """Return the plan's times at one number of streams, whose prompts are read one after the other."""
    asked = _take_lengths(level, request)
    first = estimate_first_token(asked, device, budget).total_s
    step = estimate_output_step(asked.model, device, budget, compute_mid_reply_length(asked), level.streams).total_s
    whole = level.streams * first + max(0, asked.reply_tokens - 1) * step
    figures = (first * (level.streams + 1) / 2 * 1e3, step * 1e3, level.streams * asked.reply_tokens / whole)
    return dict(zip(COMPARED, (round(figure, 2) for figure in figures), strict=True))


def _take_lengths(level: LevelTimes, request: Request) -> Request:
    """Return the request with the measured lengths; as it is where the context does not hold them."""
    prompt, reply = level.prompt_tokens or request.prompt_tokens, level.reply_tokens or request.reply_tokens
    try:
        return replace(request, prompt_tokens=prompt, reply_tokens=reply, recorded=None)
    except ServingError:
        return request
