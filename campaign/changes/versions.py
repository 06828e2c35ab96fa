"""The versions that a campaign or a book uses: each a kind, a name, and a text whose digest identifies it."""

from __future__ import annotations

import importlib.util
import json
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...agents import Own, read_shipped_pages
from ...evaluation.manifest import find_software
from ...ledger import VersionKind, compute_digest
from ...risk import PEOPLE_RULES, Policy
from ...router import describe_model, describe_router

if TYPE_CHECKING:
    from ..campaign import Settings

BENCHED_KINDS: Final = ("prompt", "model", "router")
"""The kinds of which a new version may have to pass the bench before a campaign uses it."""
LIBRARIES: Final = ("langgraph", "litellm", "mcp", "numba", "numpy", "pandas")
"""Libraries whose version is a part of the software's."""


@dataclass(frozen=True)
class UsedVersion:
    """One thing in use, as it is now.

    Attributes
    ----------
    kind, name
        What it is; the name stays while the version changes.
    body
        The page, or the settings as JSON with one key a line.
    """

    kind: VersionKind
    name: str
    body: str

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the body, which is its name among the stored objects."""
        return compute_digest(self.body)

    @property
    def label(self) -> str:
        """Return kind and name."""
        return f"{self.kind} {self.name}"


def collect_versions(settings: Settings, own: Own, policy: Policy) -> tuple[UsedVersion, ...]:
    """Return the versions that a campaign uses: policy, software, prompt pages, models, router, and an own agent.

    A page and a router that a person sets are named after the campaign, so that two campaigns with pages of their own
    do not seem to change each other's.
    """
    campaign = settings.name
    pages = read_shipped_pages()
    shipped = [UsedVersion("prompt", name, text) for name, text in pages.items() if name not in own.prompts]
    replaced = [UsedVersion("prompt", f"{campaign}/{name}", text) for name, text in sorted(own.prompts.items())]
    models = [
        UsedVersion("model", f"{model.model} as {name}", _write(describe_model(model)))
        for name, model in settings.models.models.items()
    ]
    router = UsedVersion("router", campaign, _write(describe_router(settings.models)))
    return (*list_common_versions(policy), *shipped, *replaced, *models, *_find_agent(own.agent), router)


def list_common_versions(policy: Policy) -> tuple[UsedVersion, ...]:
    """Return the versions of the policy and of the software, which books use, too."""
    return UsedVersion("policy", "policy.yaml", _write(_describe_policy(policy))), _find_software()


def _describe_policy(policy: Policy) -> dict[str, Any]:
    """Return every setting of a policy, also those about people, which its digest leaves out."""
    return {**policy.model_dump(mode="json"), **{name: getattr(policy, name) for name in PEOPLE_RULES}}


def _find_software() -> UsedVersion:
    found = {"alphaloom": find_software()["version"], "python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return UsedVersion("software", "alphaloom", _write(found))


def _find_agent(name: str) -> Iterator[UsedVersion]:
    """Yield the code of a person's own agent, which proposes as a model does."""
    where, _, function = name.rpartition(":")
    if not where:
        return
    spec = None if where.endswith(".py") else importlib.util.find_spec(where)
    file = Path(where) if where.endswith(".py") else Path(spec.origin or "") if spec else Path()
    body = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else "missing\n"
    yield UsedVersion("model", f"own agent {file.stem}:{function}", body)


def _write(settings: dict[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
