"""Every setting of the router is read by a call as a campaign makes it: none has no caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from alphaloom.ledger import Ledger
from alphaloom.router import Router, Task
from alphaloom.router.config import (
    HealthSettings,
    LearningSettings,
    ModelBudget,
    ModelSettings,
    RouterConfig,
    RoutingSettings,
    TenantBudget,
)

from .scripted import ScriptedModel, ScriptedReply

CLASSES: tuple[type[BaseModel], ...] = (
    RouterConfig, RoutingSettings, LearningSettings, ModelBudget, TenantBudget, HealthSettings, ModelSettings,
)  # fmt: skip  # a table
ELSEWHERE = {
    (
        "RoutingSettings",
        "reply_tokens",
    ): "of `alphaloom route`, whose prompts say no length: tests/desk/test_routing.py",
    ("HealthSettings", "probe_seconds"): "of servers: tests/router/test_endpoints.py",
    ("HealthSettings", "slow_factor"): "of servers: tests/router/test_endpoints.py",
    ("HealthSettings", "slow_seconds"): "of servers: tests/router/test_endpoints.py",
    ("ModelSettings", "cutoff"): "of reports and manifests, from the record of a run: tests/desk/test_manifest.py",
}
"""Settings that another test reads in a call, with the place."""
GOOD, BAD = ScriptedReply('{"text": "calm names", "direction": 1}'), ScriptedReply("not JSON")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Return the settings that are read from now on, by class and name."""
    found: set[tuple[str, str]] = set()
    for owner in CLASSES:
        plain = owner.__getattribute__

        def spied(self: Any, name: str, plain: Any = plain, owner: type[BaseModel] = owner) -> Any:
            if name in owner.model_fields:
                found.add((owner.__name__, name))
            return plain(self, name)

        monkeypatch.setattr(owner, "__getattribute__", spied)
    return found


def test_every_setting_has_a_caller(
    reads: set[tuple[str, str]], ledger: Ledger, double: ScriptedModel, task: Callable[..., Task]
) -> None:
    models: dict[str, Any] = {
        "small": {"model": "double/small", "place": "local", "input_cost_per_mtok": 1, "output_cost_per_mtok": 1},
        "large": {
            "model": "double/large",
            "region": "CH",
            "tier": "frontier",
            "input_cost_per_mtok": 1,
            "output_cost_per_mtok": 1,
        },
        "served": {"model": "hosted_vllm/x", "place": "local", "api_base": "http://127.0.0.1:9/v1"},
    }
    asked = task(compared=("direction",), idempotent=True, tenant="desk", jurisdiction="CH", refused=1)
    for policy in ("cascade", "learned"):
        double.script = [BAD, GOOD, GOOD, GOOD]
        config = RouterConfig.model_validate(
            {"models": models, "routing": {"policy": policy}, "health": {"hedge": True}, "retries": 0,
             "roles": {"factor": "local"} if policy == "cascade" else {}, "budget": {"tenants": {"desk": {"usd": 1}}}}
        )  # fmt: skip  # a table
        router = Router(config, ledger, providers={"double": lambda: double}, environment={})
        asyncio.run(router.ask(asked))
    every = {(owner.__name__, name) for owner in CLASSES for name in owner.model_fields}
    assert every - reads == ELSEWHERE.keys()
