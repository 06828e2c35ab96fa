"""Confidential text goes elsewhere only while the machine proves what it runs, over the proven channel."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alphaloom.ledger import Ledger
from alphaloom.router import Confidential, ConfidentialWaits, Reply, Router, RouterConfig, Task
from alphaloom.router.attestation import Attestations, AttestationVerifier, Attested, AttestedModel, NoProof
from alphaloom.router.config import ModelSettings

from .served import Served, chatting
from .servers import Server

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "attested_endpoint.py"
TRUSTED = {"signer": "a" * 64, "measurements": ["b" * 64]}
FAR = {"model": "hosted_vllm/far", "place": "attested", "api_base": "http://127.0.0.1:9/v1", "attestation": TRUSTED}
FREE = {"input_cost_per_mtok": 0, "output_cost_per_mtok": 0}
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
Make = Callable[..., Task]


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask servers of their own."""


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Scripted:
    """A verifier that says what the test scripted; the last is for ever. `nonces` is what it was asked with."""

    def __init__(self, *script: Attested | NoProof) -> None:
        self.script, self.nonces = script, list[str]()

    def verify(self, endpoint: AttestedModel, nonce: str) -> Attested | NoProof:
        self.nonces.append(nonce)
        return self.script[min(len(self.nonces), len(self.script)) - 1]


def proof(start: float = 0, seconds: float = 600, channel: str = "c") -> Attested:
    issued = NOON + timedelta(seconds=start)
    return Attested("b" * 64, "a" * 64, channel * 64, issued, issued + timedelta(seconds=seconds))


def kept(verifier: AttestationVerifier, clock: Clock, margin: float = 120) -> Attestations:
    numbers = iter(range(10**6))
    models = {"far": ModelSettings.model_validate(FAR)}
    return Attestations(models, verifier, clock, lambda: f"{next(numbers):032}", margin)


def hold(attestations: Attestations) -> frozenset[str]:
    return asyncio.run(attestations.refresh())


def test_a_proof_is_asked_for_once_and_again_before_it_ends_each_time_with_another_nonce() -> None:
    clock, verifier = Clock(), Scripted(proof(), proof(480))
    attestations = kept(verifier, clock)
    for seconds, asked in ((0, 1), (479, 1), (1, 2), (400, 2)):
        clock.later(seconds)
        assert hold(attestations) == {"far"}
        assert len(verifier.nonces) == asked
    assert len(set(verifier.nonces)) == 2


def test_a_proof_that_lasts_shorter_than_a_call_is_renewed_at_half_its_life() -> None:
    clock, verifier = Clock(), Scripted(proof(seconds=10), proof(5))
    attestations = kept(verifier, clock)
    for seconds, asked in ((0, 1), (4, 1), (1, 2)):
        clock.later(seconds)
        hold(attestations)
        assert len(verifier.nonces) == asked


def test_silence_leaves_a_proof_until_it_ends_and_a_refusal_ends_it() -> None:
    for answer, held in ((NoProof("down", passing=True), {"far"}), (NoProof("it runs something else"), set())):
        clock = Clock()
        attestations = kept(Scripted(proof(), answer), clock)
        hold(attestations)
        clock.later(500)
        assert hold(attestations) == held
        clock.later(100)
        assert hold(attestations) == set()
        assert attestations.explain_missing("far") == answer.reason


def test_who_gives_no_proof_is_not_asked_at_every_call() -> None:
    clock, verifier = Clock(), Scripted(NoProof("down", passing=True))
    attestations = kept(verifier, clock)
    for _ in range(50):
        assert hold(attestations) == set()
    assert len(verifier.nonces) == 1
    clock.later(6)
    hold(attestations)
    assert len(verifier.nonces) == 2


def test_fifty_calls_at_once_ask_once() -> None:
    verifier = Scripted(proof())
    attestations = kept(verifier, Clock())

    async def many() -> list[frozenset[str]]:
        return await asyncio.gather(*(attestations.refresh() for _ in range(50)))

    assert set(asyncio.run(many())) == {frozenset({"far"})}
    assert len(verifier.nonces) == 1


def test_another_key_before_the_first_proof_ends_is_refused_and_taken_after_it() -> None:
    clock = Clock()
    attestations = kept(Scripted(proof(), proof(500, channel="d")), clock)
    hold(attestations)
    clock.later(500)
    assert hold(attestations) == set()
    assert "its channel has another key" in attestations.explain_missing("far")
    clock.later(101)
    assert hold(attestations) == {"far"}


def test_a_proof_that_has_ended_is_none_however_it_is_given() -> None:
    clock = Clock()
    clock.later(700)
    assert hold(kept(Scripted(proof()), clock)) == set()


# The whole way: the example, over TLS, with a model behind it.


@contextmanager
def attested(upstream: str, folder: Path, *more: str) -> Iterator[dict[str, Any]]:
    """Start the example before a model's server; yield what a house writes into its settings to trust it."""
    launch = ["--upstream", upstream.removesuffix("/v1"), "--model", "qwen", "--image", "sha256:0a"]
    command = [sys.executable, str(EXAMPLE), *launch, "--port", "0", "--key", str(folder / "signer.pem"), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def settings(told: dict[str, Any], **changes: Any) -> dict[str, Any]:
    trusted = {name: told[name] for name in ("api_base", "attestation")}
    return {"model": "hosted_vllm/qwen", "place": "attested", **FREE, **trusted, **changes}


def asked(ledger: Ledger, task: Task, models: dict[str, Any], retries: int = 0, **more: Any) -> Reply[Any]:
    async def once() -> Any:
        config = RouterConfig.model_validate({"models": models, "retries": retries, "timeout_seconds": 20})
        router = Router(config, ledger, environment={}, **more)
        try:
            return await router.ask(task)
        finally:
            await router.close()

    return asyncio.run(once())


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with chatting() as served:
        yield served


@pytest.fixture(scope="module")
def told(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with attested(served.address, tmp_path_factory.mktemp("signer")) as told:
        yield told


def test_a_confidential_task_is_answered_by_an_attested_endpoint_over_tls(
    ledger: Ledger, task: Make, served: Served, told: dict[str, Any]
) -> None:
    before = len(served.bodies)
    text = "we hold AAPL 12,000 sh"
    reply = asked(ledger, task(text, sensitivity="confidential"), {"far": settings(told)})
    assert (reply.value.text, reply.model) == ("drift", "far")
    assert len(served.bodies) == before + 1
    assert text in served.bodies[-1], "what may be seen reaches the model as it is"
    (event,) = [record for record in ledger.events.of("one") if record.kind == "route"]
    assert event.body["signals"]["attested"] == ["far"]


def test_its_certificate_is_known_for_other_tasks_too(
    ledger: Ledger, task: Make, served: Served, told: dict[str, Any]
) -> None:
    assert asked(ledger, task("anything"), {"far": settings(told)}).model == "far"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"measurements": ["b" * 64]}, "attestation.measurements does not name"),
        ({"signer": ["a" * 64]}, "attestation.signer does not name"),
        ({"path": "/nothing"}, "no signed statement"),
    ],
)
def test_who_proves_something_else_is_told_nothing(
    ledger: Ledger, task: Make, served: Served, told: dict[str, Any], changes: dict[str, Any], reason: str
) -> None:
    before = len(served.bodies)
    far = settings(told, attestation=told["attestation"] | changes)
    with pytest.raises(ConfidentialWaits, match=reason) as caught:
        asked(ledger, task(sensitivity="confidential"), {"far": far})
    assert "far (attested)" in str(caught.value)
    assert len(served.bodies) == before
    assert ledger.calls.of("one") == []


def test_an_endpoint_that_was_exchanged_after_its_proof_is_told_nothing(
    ledger: Ledger, task: Make, served: Served, tmp_path: Path
) -> None:
    """Another process takes the port, with the same signer and launch but a channel of its own: TLS refuses it."""

    async def exchanged() -> None:
        with attested(served.address, tmp_path) as first:
            config = RouterConfig.model_validate({"models": {"far": settings(first)}, "retries": 0})
            router = Router(config, ledger, environment={})
            await router.ask(task("one", sensitivity="confidential"))
        port = first["api_base"].split(":")[-1].split("/")[0]
        before = len(served.bodies)
        with attested(served.address, tmp_path, "--port", port), pytest.raises(ConfidentialWaits, match="certificate"):
            await router.ask(task("two", sensitivity="confidential"))
        assert len(served.bodies) == before
        await router.close()

    asyncio.run(exchanged())


def test_a_tunnel_that_ends_here_is_asked_without_tls(
    ledger: Ledger, task: Make, served: Served, tmp_path: Path
) -> None:
    with attested(served.address, tmp_path, "--plain") as told:
        assert told["api_base"].startswith("http://")
        assert asked(ledger, task(sensitivity="confidential"), {"far": settings(told)}).value.text == "drift"


def test_a_proof_that_ends_while_a_call_waits_stops_it(ledger: Ledger, task: Make, served: Served) -> None:
    clock, far = Clock(), FAR | FREE | {"api_base": served.address}
    before = len(served.bodies)

    class Ending(Scripted):
        def verify(self, endpoint: AttestedModel, nonce: str) -> Attested | NoProof:
            found = super().verify(endpoint, nonce)
            clock.later(6)  # each look takes its time
            return found

    verifier = Ending(proof(seconds=8), NoProof("it runs something else"))
    with pytest.raises(ConfidentialWaits, match="something else"):
        asked(ledger, task(sensitivity="confidential"), {"far": far}, verifier=verifier, clock=clock)
    assert len(served.bodies) == before


def test_a_proof_that_ends_between_two_attempts_stops_the_second(ledger: Ledger, task: Make) -> None:
    clock = Clock()
    with Server(statuses=[503], before_answer=lambda: clock.later(30)) as server:
        models = {"far": FAR | FREE | {"api_base": server.address}}
        verifier = Scripted(proof(seconds=20), NoProof("it runs something else"))
        with pytest.raises(ConfidentialWaits, match="something else"):
            asked(ledger, task(sensitivity="confidential"), models, retries=3, verifier=verifier, clock=clock)
        assert server.posts == 1


def test_without_a_verifier_an_attested_model_is_as_any_that_is_elsewhere(
    ledger: Ledger, task: Make, served: Served
) -> None:
    bare = {"model": "hosted_vllm/far", "place": "attested", **FREE, "api_base": served.address, "region": "EU"}
    before = len(served.bodies)
    with pytest.raises(Confidential, match="no model here is set up"):
        asked(ledger, task(sensitivity="confidential"), {"far": bare})
    with pytest.raises(Confidential, match="may not leave CH"):
        asked(ledger, task(jurisdiction="CH"), {"far": bare})
    assert len(served.bodies) == before
    assert asked(ledger, task(), {"far": bare}).model == "far"
    assert asked(ledger, task("two", jurisdiction="EU"), {"far": bare}).model == "far"


# What is said when none is up.


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def test_the_refusal_names_each_model_and_why_it_is_not_there(ledger: Ledger, task: Make, served: Served) -> None:
    before = len(served.bodies)
    near = {"model": "hosted_vllm/near", "place": "local", "api_base": f"http://127.0.0.1:{free_port()}/v1"}
    models = {
        "near": near,
        "far": FAR | FREE,
        "unset": near | FREE | {"place": "attested"},
        "cloud": {"model": "hosted_vllm/big", "tier": "frontier", **FREE, "api_base": served.address},
    }
    with pytest.raises(ConfidentialWaits) as caught:
        asked(ledger, task(sensitivity="confidential"), models)
    first, *lines = str(caught.value).splitlines()
    assert first == ("confidential text (factor, new) waits for a local or attested model, and none is available:")
    assert lines[0].startswith(f"  near (local): {near['api_base']}/models does not answer:")
    assert lines[1].startswith("  far (attested): it does not answer at /attestation:")
    assert lines[2].startswith("  unset (attested): nothing says what it has to prove: set attestation.signer")
    assert lines[3] == "  cloud (remote): confidential text does not leave, and this model is remote"
    assert "resume the run" in lines[4]
    assert (caught.value.exit_code, len(served.bodies), ledger.calls.of("one")) == (3, before, [])


def test_text_of_a_jurisdiction_waits_in_the_same_way(ledger: Ledger, task: Make) -> None:
    gone = {"model": "hosted_vllm/x", "place": "region", "region": "CH", **FREE}
    gone["api_base"] = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(
        ConfidentialWaits, match=r"that may not leave CH .* waits for a local or attested model, or one in CH"
    ):
        asked(ledger, task(jurisdiction="CH"), {"gone": gone})
