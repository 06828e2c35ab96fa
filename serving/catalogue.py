"""The models that are known by name: numbers in `models.yaml`, written by hand, fetched from nowhere."""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..router import UnknownModel
from .architecture import Architecture
from .reading import architecture, read_architecture

__all__ = ["find_model", "model_names"]


@cache
def _table() -> dict[str, dict[str, Any]]:
    read = yaml.safe_load(Path(__file__).with_name("models.yaml").read_text(encoding="utf-8"))
    return dict(read)


def model_names() -> tuple[str, ...]:
    """Return the names of the models in the table."""
    return tuple(_table())


def find_model(asked: str, field: str = "--model") -> Architecture:
    """Return a model by its name in the table, the name of its source, or the path of a config.json."""
    for name, config in _table().items():
        if asked.lower() in (name.lower(), str(config["source"]).lower()):
            return architecture(config, name, str(config["source"]))
    file = Path(asked)
    if file.is_dir():
        return read_architecture(file / "config.json")
    if file.suffix == ".json" or file.is_file():
        return read_architecture(file)
    near = difflib.get_close_matches(asked.lower(), [name.lower() for name in model_names()], 1)
    meant = [name for name in model_names() if [name.lower()] == near]
    raise UnknownModel(
        f"no model is known as {asked!r}", field=field, got=asked, allowed=[*model_names(), "the path of a config.json"],
        hint=f"Did you mean {meant[0]}?" if meant else "Give the path of the config.json that lies beside the weights.",
    )  # fmt: skip
