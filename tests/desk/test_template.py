"""The campaign file that `init` writes can be run as it is, and tells every setting and its true default."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from alphaloom.desk.cli.campaign.run import CAMPAIGN_TEMPLATE

EXAMPLES = {
    *("panel", "members", "fundamentals", "symbol_changes", "sectors", "actions", "volumes", "as_of", "name", "models"),
}  # shown by example


def leaves(settings: BaseModel) -> dict[str, Any]:
    """Return every setting by its dotted name."""
    found: dict[str, Any] = {}
    for name, value in settings:
        inner = leaves(value) if isinstance(value, BaseModel) else {"": value}
        found |= {f"{name}.{key}".rstrip("."): each for key, each in inner.items()}
    return found


@pytest.fixture(scope="module")
def settings() -> type[BaseModel]:
    """Return the record of settings: the wiring is slow to import."""
    from alphaloom.campaign import Settings

    return Settings


def read(text: str, settings: type[BaseModel]) -> BaseModel:
    """Read a file's text."""
    return settings.model_validate(yaml.safe_load(text))


def test_the_template_runs_as_it_is(settings: type[BaseModel], tmp_path: Path) -> None:
    from alphaloom.ledger import read_settings

    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN_TEMPLATE.read_text(encoding="utf-8"))
    assert read_settings(file, settings)


def test_every_setting_is_there_with_its_default(settings: type[BaseModel]) -> None:
    uncommented = re.sub(
        r'^(\s*)#(?=["\w]+:)', r"\1", CAMPAIGN_TEMPLATE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    shown = read(uncommented, settings)
    default, told = leaves(settings.model_validate({})), leaves(shown)
    assert {key: told[key] for key in default if key.split(".")[-1] not in EXAMPLES} == {
        key: value for key, value in default.items() if key.split(".")[-1] not in EXAMPLES
    }
    for key in default:
        assert re.search(rf'^\s*#?"?{key.split(".")[-1]}"?:', uncommented, flags=re.MULTILINE), key
