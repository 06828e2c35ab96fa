"""The state of one configured model: breaker, latency, load, and whether its server is reachable."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from ..config import ModelSettings
from ..timing import Timing
from .breaker import MAX_REST_S, Breaker, Permit
from .failures import Failure
from .probe import Load, ServerState

LATENCIES_KEPT = 100
MIN_LATENCIES = 8
"""Answers before a model is compared with anything."""
MOVING_MEAN_WEIGHT = 0.3
"""Weight of the newest answer in the mean of now."""
MIN_SLOWNESS_S = 0.25
"""Smaller differences do not make a model slow."""


class Latency:
    """The seconds that one model's answers took."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._fresh = 0
        self.now = math.nan

    @property
    def known(self) -> bool:
        """Whether there are enough answers, and enough since it was last excused, to say anything."""
        return len(self._kept) >= MIN_LATENCIES and self._fresh >= MIN_LATENCIES // 2

    def add(self, seconds: float) -> None:
        """Take in an answer; that of a call cut off is taken as if it had come then."""
        self.now = seconds if not self._fresh else self.now + MOVING_MEAN_WEIGHT * (seconds - self.now)
        self._kept.append(seconds)
        self._fresh += 1

    def excuse(self) -> None:
        """Begin the mean of now afresh: what was slow a while ago must show it again."""
        self._fresh = 0

    @property
    def ever(self) -> float:
        """The usual seconds of its latest answers, the slow among them included."""
        return median(self._kept)

    def percentile(self, share: float = 0.95) -> float | None:
        """Return the seconds within which that share of its answers came; None before there are enough."""
        if len(self._kept) < MIN_LATENCIES:
            return None
        return sorted(self._kept)[math.ceil(share * len(self._kept)) - 1]


def is_slow(own: Latency, peers: Iterable[Latency], factor: float) -> bool:
    """Return whether a model takes several times as long as its peers do, or as it did itself."""
    if not factor or not own.known:
        return False
    usual = [own.ever]
    if others := [peer.now for peer in peers if peer.known]:
        usual.append(median(others))
    return any(own.now > factor * seconds and own.now - seconds > MIN_SLOWNESS_S for seconds in usual)


def find_probe_address(settings: ModelSettings) -> str:
    """Return where a model's server can be looked at; empty where there is none, or only its proof says whom to believe."""
    address = settings.api_base or ""
    return "" if settings.attestation is not None and address.startswith("https:") else address


@dataclass
class Endpoint:
    """What is known of a model.

    `address` is its server's, empty where there is none to look at: a provider of this process, or one that LiteLLM knows
    by name, which only a paid call could try. `alive` says that something was once heard of it, `away_since` when it was
    found gone, and `doubtful` that only one look says so, which found nobody in time; `coming` counts the calls that were
    told to begin with it and have not yet begun.
    """

    name: str
    settings: ModelSettings
    key: str | None
    inside: bool
    breaker: Breaker
    timing: Timing
    latency: Latency = field(default_factory=Latency)
    alive: bool = False
    away_since: float | None = None
    missed: int = 0
    doubtful: bool = False
    said: str = ""
    asked: bool = False
    under_way: int = 0
    coming: int = 0
    slow_until: float = 0.0
    load: Load | None = None
    load_calls: int = 0
    weigh_at: float = 0.0

    @property
    def address(self) -> str:
        """The server's address; empty where a look at it is not to be had for nothing."""
        return "" if self.inside else find_probe_address(self.settings)

    @property
    def own(self) -> bool:
        """Whether the server is on a machine of one's own, or one that proves what it runs."""
        return self.settings.place in ("local", "attested")

    @property
    def unknown(self) -> bool:
        """Whether nothing was ever heard of a server, for better or worse."""
        return bool(self.address) and not self.alive and self.away_since is None

    @property
    def wants_look(self) -> bool:
        """Whether a heartbeat is for it: who rested long enough, and who is asked while nothing is wrong."""
        if not self.address or not self.asked:
            return False
        state = self.breaker.state
        return self.breaker.rested if state == "open" else state == "closed" and self.own

    @property
    def queue(self) -> float:
        """What a call more meets: the load as it was told, and the calls sent since; without a load, our own."""
        own = self.under_way + self.coming
        return own if self.load is None else self.load.cost + max(own - self.load_calls, 0)

    @property
    def kind(self) -> tuple[object, ...]:
        """What equal models share: only then may another order of them be taken."""
        own = self.settings
        return own.model, own.tier, own.place, own.region, own.input_cost_per_mtok, own.output_cost_per_mtok

    def note_look(self, look: ServerState) -> None:
        """Take in a look; a single miss of a server that answers calls says that it is busy."""
        if look.up:
            self._note_alive()
            if self.breaker.rested:
                self.breaker.note_alive()
            return
        self.missed += 1
        if look.sure or not self.alive or self.missed > 1 or self.breaker.state != "closed":
            self.doubtful = self.missed == 1 and not look.sure
            self.away_since = self.timing.clock() if self.away_since is None else self.away_since
            self.said = look.said
            self.breaker.note_gone()

    def note_silence(self) -> None:
        """Take in that a call got no answer: with one more miss the server is gone."""
        self.missed += 1
        self.doubtful = False

    def note_answer(self, permit: Permit, seconds: float) -> None:
        """Take in an answer."""
        self._note_alive()
        self.breaker.succeed(permit)
        self.latency.add(seconds)

    def note_refusal(self, permit: Permit) -> None:
        """Take in that it will not take a request: it is there, and well."""
        self._note_alive()
        self.breaker.succeed(permit)

    def note_failure(self, permit: Permit, failure: Failure) -> None:
        """Take in a failure; who was silent rests as long as that took, who asks to be left alone, that long."""
        self.said = failure.said
        late = failure.kind == "late"
        rest_s = failure.seconds if late else min(failure.wait_s, MAX_REST_S)
        self.breaker.fail(permit, at_once=late or rest_s > 0, rest_s=rest_s)

    def note_abandoned(self, permit: Permit, seconds: float) -> None:
        """Take in that nobody waited for its answer: the time that it took at least, where that is much."""
        self.breaker.leave(permit)
        usual = self.latency.percentile()
        if usual is not None and seconds > usual:
            self.latency.add(seconds)

    def _note_alive(self) -> None:
        """Note a sign of life."""
        self.alive, self.away_since, self.missed = True, None, 0
