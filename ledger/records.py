"""The records that the ledger keeps: frozen, plain, and equal when every field is equal.

Days are ISO text ("2017-03-31"); a `JsonObject` is what `json.loads` gives for an object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]
Fingerprint: TypeAlias = Mapping[str, Sequence[int]]
"""48-bit hashes of daily returns, by the day on which they end.

They are equal under other symbols, dates and price levels.
"""
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
    """One run of a campaign: its settings, seed, data set and status."""

    id: str
    config: JsonObject
    seed: int
    dataset: str
    started_at: str
    status: str = "running"


@dataclass(frozen=True)
class Attempt:
    """A proposal, also one that was refused before it ran; `stage` is the step at which it ended."""

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
    """The data set, days and symbols of a test; tests that share data count against each other.

    `fingerprint` covers all days of the data; without it, the fingerprints stored for these symbols are used.
    """

    dataset: str
    first_day: str
    last_day: str
    names: tuple[str, ...]
    fingerprint: Fingerprint = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Look:
    """A request to test a factor or a set on a selection window; `prior` tests were made elsewhere.

    `question` is a digest of everything else that decides the result: the values of the data, label, costs,
    significance level, sign. The same subject under another question is another trial.
    """

    run: str
    subject: str
    window: WindowKey
    prior: int = 0
    question: str = ""


@dataclass(frozen=True)
class Trial:
    """One test on a selection window, counted before it is made; `outcome` is None until it is closed.

    `prior` counts the tests made elsewhere, as known when the trial was opened: declared ones, and those of the
    library's watch. `opened_at` and `closed_at` are wall-clock times.
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

    `attempts` is how often it was sent; 0 means that the reply came from another run's record and cost nothing.
    `tenant` is on whose behalf it was made (its deployer), `vendor` who made the model, `provider` through whom it was
    asked (`offline` is the program itself), `served` the version of model and server as the server named it; each is
    empty if that is not known.
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
    vendor: str = ""
    provider: str = ""
    served: str = ""


@dataclass(frozen=True)
class VerdictRow:
    """The verdict of the gate on a factor or a set, with every reason."""

    run: str
    factor_id: str
    verdict: str
    reasons: Sequence[JsonObject]
    metrics: JsonObject


@dataclass(frozen=True)
class Opening:
    """One opening of sealed (hold-out) days, numbered from 1 over all openings on shared data."""

    run: str
    window: WindowKey
    reason: str
    number: int = 0


@dataclass(frozen=True)
class Boundaries:
    """The days between the search, selection and sealed windows of a data set; its first campaign fixes them."""

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
    """A factor of the library; `sheet` holds its metrics on the search window.

    `origin` is how it was added: accepted by the gate, promoted from the watchlist, by_hand, or imported. `terms`
    describe how a factor was judged that no run of this workspace judged.
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
    """A status change of a library factor: live, decaying, retired; `watched` begins an entry of the watchlist.

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
    """A named file of a run, with the digest of its bytes."""

    run: str
    name: str
    digest: str


@dataclass(frozen=True)
class Event:
    """Any other record of a run: a hypothesis, a critique, a risk decision, a warning."""

    run: str
    kind: str
    key: str
    body: Any
