"""Proofs of models elsewhere: each proves what it runs before it sees a confidential text, and again before the proof expires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from weakref import WeakKeyDictionary

from .config import AttestationSettings, ModelSettings

MAX_PROOF_SECONDS = 30.0
"""Seconds for one proof, whatever the verifier does."""
REST_SECONDS = 5.0
"""Seconds between two requests to a machine that gave no proof."""


@dataclass(frozen=True)
class AttestedModel:
    """A model that has to prove what it runs: its configured name, its address, and the signers and launches that are trusted."""

    name: str
    address: str
    trusted: AttestationSettings


@dataclass(frozen=True)
class Attested:
    """A verified proof.

    `channel` is the sha256 of the public key that the machine is to be asked under; `certificate` (PEM) is the only one that
    connections to it may show, empty where it is reached without TLS. Times are aware.
    """

    measurement: str
    signer: str
    channel: str
    issued: datetime
    expires: datetime
    certificate: str = ""


@dataclass(frozen=True)
class NoProof:
    """The reason why there is no proof; `passing` where the machine did not answer, so that an earlier proof stays valid."""

    reason: str
    passing: bool = False


class AttestationVerifier(Protocol):
    """Requests and verifies proofs. It may block: it is called in a thread of its own."""

    def verify(self, endpoint: AttestedModel, nonce: str) -> Attested | NoProof:
        """Return the proof for this nonce, or the reason why there is none."""
        ...


@dataclass
class _State:
    """The state of one model; until `key_until` its first proof forbids another channel key."""

    attested: Attested | None = None
    reason: str = "it was not asked for its proof yet"
    tried: datetime | None = None
    key: str = ""
    key_until: datetime | None = None


class Attestations:
    """The proofs of all attested models, each requested when it is first needed.

    Parameters
    ----------
    models : mapping of str to ModelSettings
        The configured models; those with `attestation` can prove something.
    verifier : AttestationVerifier
        What checks a proof.
    clock : callable
        The time, aware.
    draw : callable
        A fresh nonce that nobody can guess.
    margin : float
        Seconds before a proof ends at which the next one is asked for; half of its life at most.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSettings],
        verifier: AttestationVerifier,
        clock: Callable[[], datetime],
        draw: Callable[[], str],
        margin: float,
    ) -> None:
        asked = {name: (each.api_base, each.attestation) for name, each in models.items()}
        self._endpoints = {name: AttestedModel(name, base, it) for name, (base, it) in asked.items() if base and it}
        self._unset = {name for name, each in models.items() if each.place == "attested"} - self._endpoints.keys()
        self._verifier, self._clock, self._draw = verifier, clock, draw
        self._margin = timedelta(seconds=margin)
        self._states = {name: _State() for name in self._endpoints}
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def refresh(self) -> frozenset[str]:
        """Return the models whose proof holds, after those were asked whose proof is missing or ends soon."""
        if any(self._due(name) for name in self._endpoints):
            async with self._queues.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                due = [name for name in self._endpoints if self._due(name)]
                await asyncio.gather(*(self._ask(name) for name in due))
        return frozenset(name for name in self._endpoints if self.find_proof(name) is not None)

    def find_proof(self, name: str) -> Attested | None:
        """Return a model's proof if it holds now."""
        attested = self._states[name].attested if name in self._states else None
        return attested if attested is not None and self._clock() < attested.expires else None

    def explain_missing(self, name: str) -> str:
        """Return why a model proves nothing now; empty where it does, or need not."""
        if name in self._unset:
            return "nothing says what it has to prove: set attestation.signer and attestation.measurements"
        if name not in self._states or self.find_proof(name):
            return ""
        return self._states[name].reason

    def _due(self, name: str) -> bool:
        """Return whether a model is to be asked now."""
        state, now = self._states[name], self._clock()
        if state.tried is not None and timedelta() <= now - state.tried < timedelta(seconds=REST_SECONDS):
            return False
        held = state.attested
        return held is None or now >= held.expires - min(self._margin, (held.expires - held.issued) / 2)

    async def _ask(self, name: str) -> None:
        """Ask one model, and keep what came of it: a refusal ends the proof before, silence does not."""
        state = self._states[name]
        asking = asyncio.to_thread(self._verifier.verify, self._endpoints[name], self._draw())
        try:
            found = await asyncio.wait_for(asking, MAX_PROOF_SECONDS)
        except TimeoutError:
            found = NoProof(f"it gave no proof within {MAX_PROOF_SECONDS:g} seconds", passing=True)
        now = self._clock()
        if isinstance(found, Attested) and found.expires <= now:
            found = NoProof(f"its proof ended at {found.expires:%Y-%m-%d %H:%M:%S}Z")
        if isinstance(found, Attested) and state.key_until and now < state.key_until and found.channel != state.key:
            found = NoProof(
                f"its channel has another key than the one that it proved until {state.key_until:%Y-%m-%d %H:%M:%S}Z"
            )
        if isinstance(found, Attested):
            self._states[name] = _State(found, "its proof has ended", None, found.channel, found.expires)
            return
        state.tried, state.reason = now, found.reason
        if not found.passing:
            state.attested = None
