"""Keys in the system's keyring: found by service and name, and what to do where they are not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from alphaloom.extras import install_hint
from alphaloom.ledger import Ledger
from alphaloom.router import ModelSettings, NoModel, Router, RouterConfig, Task
from alphaloom.router.endpoints.health import probe_model

from .served import chatting

NEAR = {"model": "hosted_vllm/near", "place": "local"}
SECRET = "sk-in-the-keyring-0123456789"


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own."""


@pytest.fixture
def entries() -> Iterator[dict[tuple[str, str], str]]:
    """Put a keyring of the test's in the place of the system's; return what it holds."""
    keyring: Any = pytest.importorskip("keyring", reason=install_hint("keyring"))
    backend: Any = pytest.importorskip("keyring.backend")
    held: dict[tuple[str, str], str] = {}

    class Kept(backend.KeyringBackend):  # type: ignore[misc]
        """Keeps its entries in memory."""

        priority = 1

        def get_password(self, service: str, name: str) -> str | None:
            if service == "locked":
                raise keyring.errors.KeyringLocked(SECRET)
            return held.get((service, name))

        def set_password(self, service: str, name: str, password: str) -> None:
            held[service, name] = password

    before = keyring.get_keyring()
    keyring.set_keyring(Kept())
    yield held
    keyring.set_keyring(before)


def test_a_model_is_asked_with_the_key_of_the_keyring_and_nobody_else_learns_it(
    ledger: Ledger, task: Callable[..., Task], entries: dict[tuple[str, str], str], caplog: pytest.LogCaptureFixture
) -> None:
    entries["alphaloom", "near/prod"] = SECRET
    with chatting() as served:
        model = NEAR | {"api_base": served.address, "api_key_keyring": "alphaloom/near/prod"}
        router = Router(RouterConfig.model_validate({"models": {"near": model}}), ledger, environment={})

        async def once() -> None:
            settings = ModelSettings.model_validate(model)
            assert (await probe_model("near", settings, [], {})).answers
            await router.ask(task())
            with pytest.raises(NoModel, match="holds the key of a model"):
                await router.ask(task(f"my key is {SECRET}"))
            await router.close()

        asyncio.run(once())
    assert served.keys == [f"Bearer {SECRET}"]
    ledger.close()
    stored = b"".join(path.read_bytes() for path in ledger.workspace.rglob("*") if path.is_file())
    assert SECRET.encode() not in stored
    assert SECRET not in caplog.text + "".join(served.bodies)


@pytest.mark.parametrize(("entry", "said"), [("alphaloom/none", "holds no none"), ("locked/x", "KeyringLocked")])
def test_an_entry_that_is_not_there_or_locked_is_said(
    build: Callable[..., Router], task: Callable[..., Task], entries: dict[tuple[str, str], str], entry: str, said: str
) -> None:
    assert not entries
    with pytest.raises(NoModel, match=said) as caught:
        asyncio.run(build(models={"near": NEAR | {"model": "double/x", "api_key_keyring": entry}}).ask(task()))
    assert "`keyring set" in caught.value.hint
    assert SECRET not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_without_the_package_the_extra_is_named(
    build: Callable[..., Router], task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(NoModel, match="the package keyring is not installed") as caught:
        asyncio.run(build(models={"near": NEAR | {"model": "double/x", "api_key_keyring": "a/b"}}).ask(task()))
    assert install_hint("keyring") in caught.value.hint


@pytest.mark.parametrize("wrong", [{"api_key_keyring": "none"}, {"api_key_keyring": "/b"}, {"api_key_env": "K"}])
def test_an_entry_is_a_service_and_a_name_and_a_key_is_kept_in_one_place(wrong: dict[str, str]) -> None:
    ModelSettings.model_validate(NEAR | {"api_key_keyring": "a/b"})
    with pytest.raises(ValidationError):
        ModelSettings.model_validate(NEAR | {"api_key_keyring": "a/b"} | wrong)
