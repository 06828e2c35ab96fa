"""Proofs of models elsewhere: each proves what it runs before it gets confidential text.

A proof is renewed before it expires.
"""

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
    """A model that has to prove what it runs, with its address and the trusted signers and launches."""

    name: str
    address: str
    trusted: AttestationSettings


@dataclass(frozen=True)
class Attested:
    """A verified proof.

    `channel` is the sha256 of the public key of the connection. `certificate` (PEM) is the only certificate that
    connections to the machine may show; it is empty without TLS. Times are aware.
    """

    measurement: str
    signer: str
    channel: str
    issued: datetime
    expires: datetime
    certificate: str = ""


@dataclass(frozen=True)
class NoProof:
    """The reason why there is no proof.

    `passing`: the machine did not answer, so an earlier proof stays valid.
    """

    reason: str
    passing: bool = False


class AttestationVerifier(Protocol):
    """Requests and verifies proofs. It may block, because it is called in a thread of its own."""

    def verify(self, endpoint: AttestedModel, nonce: str) -> Attested | NoProof:
        """Return the proof for this nonce, or the reason why there is none."""
        ...


@dataclass
class _State:
    """The state of one model. Until `key_until`, a proof of another channel key is refused."""

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
        The configured models; those with `attestation` can be asked for a proof.
    verifier : AttestationVerifier
        Checks a proof.
    clock : callable
        Returns the time, aware.
    draw : callable
        Returns a fresh nonce that cannot be guessed.
    margin : float
        Seconds before the end of a proof at which the next one is requested; at most half of its life.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSettings],
        verifier: AttestationVerifier,
        clock: Callable[[], datetime],
        draw: Callable[[], str],
        margin: float,
    ) -> None:
        targets = {name: (settings.api_base, settings.attestation) for name, settings in models.items()}
        self._endpoints = {
            name: AttestedModel(name, base, trusted) for name, (base, trusted) in targets.items() if base and trusted
        }
        self._unset = {
            name for name, settings in models.items() if settings.place == "attested"
        } - self._endpoints.keys()
        self._verifier, self._clock, self._draw = verifier, clock, draw
        self._margin = timedelta(seconds=margin)
        self._states = {name: _State() for name in self._endpoints}
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def refresh(self) -> frozenset[str]:
        """Request the proofs that are missing or end soon, and return the models whose proof holds."""
        if any(self._is_due(name) for name in self._endpoints):
            async with self._queues.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                due = [name for name in self._endpoints if self._is_due(name)]
                await asyncio.gather(*(self._ask(name) for name in due))
        return frozenset(name for name in self._endpoints if self.find_proof(name) is not None)

    def find_proof(self, name: str) -> Attested | None:
        """Return a model's proof if it holds now."""
        attested = self._states[name].attested if name in self._states else None
        return attested if attested is not None and self._clock() < attested.expires else None

    def explain_missing(self, name: str) -> str:
        """Return why a model has no proof now; empty where it has one or needs none."""
        if name in self._unset:
            return "nothing says what it has to prove: set attestation.signer and attestation.measurements"
        if name not in self._states or self.find_proof(name):
            return ""
        return self._states[name].reason

    def _is_due(self, name: str) -> bool:
        state, now = self._states[name], self._clock()
        if state.tried is not None and timedelta() <= now - state.tried < timedelta(seconds=REST_SECONDS):
            return False
        proof = state.attested
        return proof is None or now >= proof.expires - min(self._margin, (proof.expires - proof.issued) / 2)

    async def _ask(self, name: str) -> None:
        """Request the proof of one model. A refusal ends the earlier proof; a machine that does not answer keeps it."""
        state = self._states[name]
        verification = asyncio.to_thread(self._verifier.verify, self._endpoints[name], self._draw())
        try:
            result = await asyncio.wait_for(verification, MAX_PROOF_SECONDS)
        except TimeoutError:
            result = NoProof(f"it gave no proof within {MAX_PROOF_SECONDS:g} seconds", passing=True)
        now = self._clock()
        if isinstance(result, Attested) and result.expires <= now:
            result = NoProof(f"its proof ended at {result.expires:%Y-%m-%d %H:%M:%S}Z")
        if isinstance(result, Attested) and state.key_until and now < state.key_until and result.channel != state.key:
            result = NoProof(
                f"its channel has another key than the one that it proved until {state.key_until:%Y-%m-%d %H:%M:%S}Z"
            )
        if isinstance(result, Attested):
            self._states[name] = _State(result, "its proof has ended", None, result.channel, result.expires)
            return
        state.tried, state.reason = now, result.reason
        if not result.passing:
            state.attested = None
