"""The requested launch: model, context, concurrency, GPUs, precision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .architecture import Architecture
from .errors import ServingError

MAX_GPUS = 8  # of one host; tensor parallelism over hosts is not planned
DEFAULT_CONTEXT, DEFAULT_SEQUENCES = 8192, 256
DEFAULT_PROMPT, DEFAULT_REPLY = 1024, 256
PLANNED_SHARE = 0.95  # of recorded calls are no longer than a planned sequence
ACCEPTANCE = {"none": 0.0, "ngram": 0.4, "draft": 0.7}


@dataclass(frozen=True)
class RecordedLengths:
    """Lengths of the model calls of one run, in tokens."""

    source: str
    calls: int
    prompt: int
    """Median tokens in."""
    reply: int
    """Median tokens out."""
    planned: int
    """Tokens in and out that `PLANNED_SHARE` of the calls do not exceed."""
    longest: int


def summarise_lengths(source: str, calls: Iterable[tuple[int, int]]) -> RecordedLengths:
    """Return the lengths of calls, given as tokens in and tokens out; calls without both are left out.

    Raises
    ------
    ServingError
        No call has both.
    """
    pairs = [(prompt, reply) for prompt, reply in calls if prompt > 0 and reply > 0]
    if not pairs:
        raise ServingError(
            f"{source} has no model call with tokens in and out",
            field="--lengths-from",
            got=source,
            hint="Name a run that asked a language model, or give --prompt-tokens and --reply-tokens.",
        )
    totals = sorted(prompt + reply for prompt, reply in pairs)
    middle = len(pairs) // 2
    return RecordedLengths(
        source, len(pairs), sorted(prompt for prompt, _ in pairs)[middle], sorted(reply for _, reply in pairs)[middle],
        totals[math.ceil(PLANNED_SHARE * len(totals)) - 1], totals[-1],
    )  # fmt: skip  # a table


@dataclass(frozen=True)
class Request:
    """A request to serve a model; where a value is None, the planner chooses."""

    model: Architecture
    context: int | None = None
    concurrency: int | None = None
    gpus: int | None = None
    dtype: str = "auto"
    kv_dtype: str = "auto"
    speculate: str = "none"
    draft: Architecture | None = None
    acceptance: float | None = None
    prompt_tokens: int = DEFAULT_PROMPT
    reply_tokens: int = DEFAULT_REPLY
    utilization: float = 0.9
    usd_per_hour: float | None = None
    """Price of one device in USD an hour."""
    recorded: RecordedLengths | None = None
    """The lengths of a run's calls, from which prompt_tokens and reply_tokens are."""

    def __post_init__(self) -> None:
        """Refuse values that are out of range or contradict each other."""
        if self.context is not None and not 1 <= self.context <= self.model.positions:
            most = f"{self.model.name} reads at most {self.model.positions:,} tokens"
            raise ServingError(
                most if self.context > 0 else "a context has a token at least",
                field="--context",
                got=self.context,
                allowed=f"1 to {self.model.positions}",
            )
        if (self.speculate == "draft") != (self.draft is not None):
            raise ServingError("--speculate draft and --draft MODEL go together", field="--draft")
        if self.acceptance is not None and self.speculate == "none":
            raise ServingError(
                "--acceptance says how many drafted tokens are kept, and nothing is drafted",
                field="--acceptance",
                got=self.acceptance,
                hint="Add --speculate ngram, or --speculate draft with --draft MODEL.",
            )
        if self.draft and self.draft.vocab != self.model.vocab:
            raise ServingError(
                f"{self.draft.name} has {self.draft.vocab:,} tokens in its vocabulary and {self.model.name} "
                f"{self.model.vocab:,}: a draft must speak the same",
                field="--draft",
                got=self.draft.name,
                hint="Take a small model of the same family.",
            )
        if self.prompt_tokens + self.reply_tokens > self.length:
            raise ServingError(
                f"a prompt of {self.prompt_tokens:,} tokens and a reply of {self.reply_tokens:,} "
                "are longer than the context",
                field="--context",
                got=self.length,
                allowed=f"at least {self.prompt_tokens + self.reply_tokens}",
            )
        if self.usd_per_hour is not None and not 0 < self.usd_per_hour < math.inf:
            raise ServingError(
                "a price is above 0", field="--usd-per-hour", got=self.usd_per_hour, allowed="USD an hour of one device"
            )
        _check_range("--gpu-memory-utilization", self.utilization, 0.05, 1.0)
        _check_range("--acceptance", self.acceptance if self.acceptance is not None else 0.5, 0.0, 0.999)
        for field, count in (("--concurrency", self.concurrency), ("--gpus", self.gpus)):
            _check_range(field, count if count is not None else 1, 1, MAX_GPUS if field == "--gpus" else 1024)

    @property
    def length(self) -> int:
        """Return the context in tokens: the requested one, else 8,192 or more, at most what the model reads."""
        longest = self.recorded.longest if self.recorded else 0
        needed = max(DEFAULT_CONTEXT, self.prompt_tokens + self.reply_tokens, longest)
        return self.context if self.context is not None else min(needed, self.model.positions)

    @property
    def lengths_given(self) -> bool:
        """Return whether prompt and reply have other lengths than the assumed ones."""
        return (self.prompt_tokens, self.reply_tokens) != (DEFAULT_PROMPT, DEFAULT_REPLY)

    @property
    def planned_tokens(self) -> int:
        """Return the tokens of one sequence by which the number of sequences at once is chosen, at most the context."""
        planned = self.recorded.planned if self.recorded else self.prompt_tokens + self.reply_tokens
        return min(planned, self.length)

    @property
    def most_sequences(self) -> int:
        """Return how many sequences the scheduler takes at once, if the cache holds them."""
        return self.concurrency if self.concurrency is not None else DEFAULT_SEQUENCES

    @property
    def accepted(self) -> float:
        """Return the chance that one drafted token is accepted."""
        return ACCEPTANCE[self.speculate] if self.acceptance is None else self.acceptance


def _check_range(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ServingError(f"{value} is out of range", field=field, got=value, allowed=f"{low} to {high}")
