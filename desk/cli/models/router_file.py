"""The file that names models: router.yaml, or a campaign file with a section `models`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ....ledger import SettingsError

if TYPE_CHECKING:
    from ....router import RouterConfig


ROUTER_FILE = Path("router.yaml")
ROUTER_FILE_HINT = (
    "It holds `models: {NAME: {model: PROVIDER/MODEL}}` (docs/how-to/choose-models.md has one); a campaign file, which "
    "`alphaloom init` writes, does too."
)


class NamedModels(NamedTuple):
    """The models of a file, and whether it is a campaign's."""

    config: RouterConfig
    of_campaign: bool


def read_models(path: Path) -> NamedModels:
    """Read a router.yaml, or the section `models` of a campaign file; relative paths start from its folder."""
    if not path.exists():
        raise SettingsError(f"no file {path}", field=str(path), hint=ROUTER_FILE_HINT)
    from ....ledger import read_settings
    from ....ledger.files import read_text
    from ....router import RouterConfig

    if _is_campaign(read_text(path).value):
        from ....campaign import Settings

        return NamedModels(read_settings(path, Settings).beside(path.parent).models, of_campaign=True)
    return NamedModels(read_settings(path, RouterConfig).beside(path.parent), of_campaign=False)


def _is_campaign(content: Any) -> bool:
    """Return whether a file is a campaign file, even one with mistakes.

    The signs are the place of its models, or sections that no router.yaml has.
    """
    if not isinstance(content, Mapping):
        return False
    models = content.get("models")
    entries = models if isinstance(models, Mapping) else {}
    if any(isinstance(entry, Mapping) and isinstance(entry.get("model"), str) for entry in entries.values()):
        return False
    if isinstance(entries.get("models"), Mapping):
        return True
    from ....campaign import Settings
    from ....router import RouterConfig

    return bool(content.keys() & (Settings.model_fields.keys() - RouterConfig.model_fields.keys()))


def find_unknown_words(config: RouterConfig, roles: Collection[str | None] = ()) -> Iterator[str]:
    """Yield a sentence for each unknown intent or role: programs may declare their own, a person may have mistyped."""
    from ....router.classifier import INTENTS
    from ....router.policy import CALL_INTENTS, ROLE_INTENTS

    intents = [*config.routing.own_intents, *INTENTS]
    for name in config.routing.intents:
        if name not in {*intents, *CALL_INTENTS}:
            sentence = _describe_unknown(f"routing.intents: no such intent is known: {name}", name, intents)
            yield f"{sentence}. It counts only where a program declares it."
    names = list(dict.fromkeys((*config.routing.roles, *config.roles, *ROLE_INTENTS)))
    for role in sorted({role for role in roles if role}):
        if role not in {*names, *intents}:
            yield f"{_describe_unknown(f'no such role is known: {role}', role, names)}. The text alone decides."


def _describe_unknown(sentence: str, name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"{sentence}{f' (did you mean {near[0]}?)' if near else ''}; known: {', '.join(names)}"
