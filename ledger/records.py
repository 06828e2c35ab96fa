"""The records that the ledger keeps: frozen, plain, and equal when every field is equal.

Days are ISO text ("2017-03-31"); a `JsonObject` is what `json.loads` gives for an object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]
Fingerprint: TypeAlias = Mapping[str, Sequence[int]]
"""Hashes of 48 bits of the daily returns that end on a day, by the day: equal under other symbols, dates and price levels."""
Stage: TypeAlias = Literal[
    "parse",
    "types",
    "python",
    "mandate",
    "causal",
    "complexity",
    "originality",
    "redundancy",
    "alignment",
    "duplicate",
    "scored",
]


@dataclass(frozen=True)
class Run:
    """One campaign: what it was asked to do, on which data, and how far it got."""

    id: str
    config: JsonObject
    seed: int
    dataset: str
    started_at: str
    status: str = "running"


@dataclass(frozen=True)
class Attempt:
    """Anything proposed, also what was refused before it ran; `stage` says where its way ended."""

    run: str
    key: str
    hypothesis: str
    text: str
    factor_id: str | None
    stage: Stage
    reason: str
    form: str = "expression"


@dataclass(frozen=True)
class Evaluation:
    """A factor computed and scored on the search window; `values` is the digest of its stored sketch."""

    run: str
    factor_id: str
    text: str
    hypothesis: str
    sheet: JsonObject
    values: str | None = None


@dataclass(frozen=True)
class WindowKey:
    """Which days and names are looked at: what two looks must share to count against each other.

    `fingerprint` is that of all days of the data; without it what the ledger has stored of these names counts.
    """

    dataset: str
    first_day: str
    last_day: str
    names: tuple[str, ...]
    fingerprint: Fingerprint = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Look:
    """The wish to look at a factor or a set on a selection window; `prior` looks were made elsewhere.

    `question` is a digest of all else that decides what the look shows: the values of the data, label, costs, level,
    sign. The same subject under another question is another look.
    """

    run: str
    subject: str
    window: WindowKey
    prior: int = 0
    question: str = ""


@dataclass(frozen=True)
class Trial:
    """One look at a selection window, counted before it was made; `outcome` is None until it is closed.

    `prior` looks were declared as made elsewhere when it was opened; `opened_at` and `closed_at` are times of the clock.
    """

    id: int
    number: int
    run: str
    subject: str
    window: WindowKey
    outcome: JsonObject | None = None
    question: str = ""
    prior: int = 0
    opened_at: str = ""
    closed_at: str = ""


@dataclass(frozen=True)
class ModelCall:
    """One answered model call; `request` and `reply` are digests of stored bodies.

    `attempts` counts how often it was sent; 0 says that the reply came from another run's record and cost nothing.
    `tenant` is on whose behalf it was asked, where somebody said.
    """

    key: str
    run: str
    role: str
    intent: str
    tier: str
    model: str
    prompt: str
    request: str
    reply: str
    tokens_in: int
    tokens_out: int
    cost_usd: float
    attempts: int = 1
    tenant: str = ""


@dataclass(frozen=True)
class VerdictRow:
    """What the gate decided on a factor or a set, with every reason."""

    run: str
    factor_id: str
    verdict: str
    reasons: Sequence[JsonObject]
    metrics: JsonObject


@dataclass(frozen=True)
class Opening:
    """One look at sealed days; numbered from 1 over all campaigns that share days and names with it."""

    run: str
    window: WindowKey
    reason: str
    number: int = 0


@dataclass(frozen=True)
class Boundaries:
    """Where search, selection and sealed days of a data set lie; fixed by the first campaign on it."""

    dataset: str
    names: tuple[str, ...]
    first_day: str
    search_end: str
    selection_start: str
    selection_end: str
    sealed_start: str
    sealed_end: str


@dataclass(frozen=True)
class LibraryRow:
    """A factor that the library keeps; `sheet` is that of the search window.

    `origin` says how it came in: accepted by the gate, promoted from the watchlist, by_hand, or imported. `terms` are how
    it was judged, for those that no run of this workspace judged.
    """

    factor_id: str
    text: str
    canonical: str
    hypothesis: str
    run: str
    sheet: JsonObject
    origin: str = "accepted"
    terms: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class StatusChange:
    """A change of what a library factor is: live, decaying, retired; `watched` begins an entry of the watchlist.

    `by` is "hand" or "rule", `day` the day of the data, or of the act, from which it holds. `key` tells changes of one
    factor apart; the same change has the same key.
    """

    factor_id: str
    key: str
    status: str
    by: str
    reason: str
    day: str
    numbers: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class Sighting:
    """The RankIC of a factor on one day after the end of the panel on which it was judged; None where undefined."""

    factor_id: str
    day: str
    rank_ic: float | None


@dataclass(frozen=True)
class Artefact:
    """A named file of a run; the digest says which bytes it had."""

    run: str
    name: str
    digest: str


@dataclass(frozen=True)
class Event:
    """Anything else worth keeping: a hypothesis, a critique, a risk decision, a warning."""

    run: str
    kind: str
    key: str
    body: Any
