"""The state of one configured model: breaker, latency, load, and reachability of its server."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from ..config import VLLM_PROVIDER, ModelSettings
from ..timing import Timing
from .breaker import MAX_REST_S, Breaker, Permit
from .failures import Failure
from .probe import Load, ServerState

LATENCIES_KEPT = 100
MIN_LATENCIES = 8
"""Minimum answers before a model's latency is compared."""
MOVING_MEAN_WEIGHT = 0.3
"""Weight of the newest answer in the moving mean."""
MIN_SLOWNESS_S = 0.25
"""Minimum difference, in seconds, that makes a model slow."""


class Latency:
    """The latencies of one model's answers, in seconds."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._fresh = 0
        self.now = math.nan

    @property
    def known(self) -> bool:
        """Whether there are enough answers, in all and since the last `excuse`, for a comparison."""
        return len(self._kept) >= MIN_LATENCIES and self._fresh >= MIN_LATENCIES // 2

    def add(self, seconds: float) -> None:
        """Add the latency of an answer; a cancelled call counts with the time until then."""
        self.now = seconds if not self._fresh else self.now + MOVING_MEAN_WEIGHT * (seconds - self.now)
        self._kept.append(seconds)
        self._fresh += 1

    def excuse(self) -> None:
        """Restart the moving mean: a model that was slow must be slow again to count as slow."""
        self._fresh = 0

    @property
    def ever(self) -> float:
        """The median of the stored latencies, slow answers included."""
        return median(self._kept)

    def percentile(self, share: float = 0.95) -> float | None:
        """Return the latency that this share of answers did not exceed; None before there are enough answers."""
        if len(self._kept) < MIN_LATENCIES:
            return None
        return sorted(self._kept)[math.ceil(share * len(self._kept)) - 1]


def is_slow(own: Latency, peers: Iterable[Latency], factor: float) -> bool:
    """Return whether a model takes over `factor` times as long as its peers, or as its own median."""
    if not factor or not own.known:
        return False
    usual = [own.ever]
    if others := [peer.now for peer in peers if peer.known]:
        usual.append(median(others))
    return any(own.now > factor * seconds and own.now - seconds > MIN_SLOWNESS_S for seconds in usual)


def find_probe_address(settings: ModelSettings) -> str:
    """Return the address at which a model's server can be probed; empty without one.

    It is empty also for an attested server over https, whose certificate is accepted only with its proof.
    """
    address = settings.api_base or ""
    return "" if settings.attestation is not None and address.startswith("https:") else address


@dataclass
class Endpoint:
    """The state of a model.

    `alive`: the server has answered before. `away_since`: when it was found gone. `doubtful`: only one probe found it
    gone, by a timeout. `coming` counts calls that are routed here first and not sent yet. `version` is that of the
    server's program at the last probe, where it tells one.
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
    version: str = ""

    @property
    def address(self) -> str:
        """The server's address; empty for a provider of this process, or where only a paid call could test it."""
        return "" if self.inside else find_probe_address(self.settings)

    @property
    def own(self) -> bool:
        """Whether the model is local or attested."""
        return self.settings.place in ("local", "attested")

    @property
    def tells_version(self) -> bool:
        """Whether its server is a vLLM that is local or attested; a stranger's is not asked more than it must be."""
        return self.own and self.settings.provider == VLLM_PROVIDER

    @property
    def unknown(self) -> bool:
        """Whether a server was never found alive or gone."""
        return bool(self.address) and not self.alive and self.away_since is None

    @property
    def wants_look(self) -> bool:
        """Whether the heartbeat probes it: its rest is over, or its breaker is closed and it is local or attested."""
        if not self.address or not self.asked:
            return False
        state = self.breaker.state
        return self.breaker.rested if state == "open" else state == "closed" and self.own

    @property
    def queue(self) -> float:
        """The queue of one more call: the reported load plus the calls sent since; without a load, our own calls."""
        own = self.under_way + self.coming
        return own if self.load is None else self.load.cost + max(own - self.load_calls, 0)

    @property
    def kind(self) -> tuple[object, ...]:
        """The properties that equal models share; only equal models are reordered by load."""
        own = self.settings
        return own.model, own.tier, own.place, own.region, own.input_cost_per_mtok, own.output_cost_per_mtok

    def note_look(self, look: ServerState) -> None:
        """Note the result of a probe; a single miss of a server that answers calls means that it is busy."""
        if look.up:
            self.version = look.version
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
        """Note a call without an answer: after one more miss the server counts as gone."""
        self.missed += 1
        self.doubtful = False

    def note_answer(self, permit: Permit, seconds: float) -> None:
        """Note an answer and its latency."""
        self._note_alive()
        self.breaker.succeed(permit)
        self.latency.add(seconds)

    def note_refusal(self, permit: Permit) -> None:
        """Note a refused request: the server is alive and works."""
        self._note_alive()
        self.breaker.succeed(permit)

    def note_failure(self, permit: Permit, failure: Failure) -> None:
        """Note a failure: the model rests for the duration of a timeout, or for the server's Retry-After."""
        self.said = failure.said
        late = failure.kind == "late"
        rest_s = failure.seconds if late else min(failure.wait_s, MAX_REST_S)
        self.breaker.fail(permit, at_once=late or rest_s > 0, rest_s=rest_s)

    def note_abandoned(self, permit: Permit, seconds: float) -> None:
        """Note a cancelled call; its duration counts as a latency where it is longer than usual."""
        self.breaker.leave(permit)
        usual = self.latency.percentile()
        if usual is not None and seconds > usual:
            self.latency.add(seconds)

    def _note_alive(self) -> None:
        self.alive, self.away_since, self.missed = True, None, 0
