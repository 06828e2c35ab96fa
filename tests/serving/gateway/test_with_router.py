"""A campaign's router works through a gateway as with any endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from alphaloom.ledger import Ledger
from alphaloom.router import AccessRefused, Router, RouterConfig, Task
from alphaloom.router.endpoints.health import probe_model

from ...router.served import Served, chatting
from .test_gateway import on_stage


@pytest.fixture(autouse=True)
def no_network() -> None:
    """These tests connect to this machine."""


def test_it_asks_its_models_through_a_gateway_with_a_key(ledger: Ledger, task: Callable[..., Task]) -> None:
    async def steps(served: Served) -> None:
        async with on_stage(served.address) as stage:
            model = {
                "model": "hosted_vllm/tiny",
                "place": "local",
                "api_base": f"{stage.http.base_url}/v1",
                "api_key_env": "K",
            }
            config = RouterConfig.model_validate({"models": {"far": model}, "retries": 0, "timeout_seconds": 20})
            router = Router(config, ledger, environment={"K": "key-a"})
            try:
                replies = await asyncio.gather(*(router.ask(task(f"propose {n}")) for n in range(5)))
            finally:
                await router.close()
            assert {(reply.value.text, reply.tokens_in, reply.tokens_out) for reply in replies} == {("drift", 11, 7)}
            assert stage.gateway.gate.served_tokens("alice") == 5 * (11 + 2 * 7)
            wrong = Router(config, ledger, environment={"K": "key-c"})
            with pytest.raises(AccessRefused):
                await wrong.ask(task("propose again"))
            await wrong.close()
            looks = [await probe_model("far", config.models["far"], (), {"K": key}) for key in ("key-a", "key-c")]
            assert [look.answers for look in looks] == [True, False]
            assert "refuses the key (401)" in looks[1].detail

    with chatting() as served:
        asyncio.run(steps(served))
        assert len(served.bodies) == 5
        assert set(served.keys) == {None}
