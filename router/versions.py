"""What counts as a version of a model and of the router, as plain data that can be compared and shown."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from .calls.task import Task
from .config import ModelSettings, RouterConfig
from .redaction import Redactor

PRICE_SETTINGS: Final = ("input_cost_per_mtok", "output_cost_per_mtok", "cached_input_cost_per_mtok")
"""Settings of a model that are no part of its version: they change what it costs, and no answer."""
TAUGHT_FILES: Final = ("weights.npz", "outcomes.json")
"""What the shipped router was taught: the classifier of prompts, and the outcomes that it learns from at first."""
EMBEDDING_FILES: Final = ("onnx/model.onnx", "tokenizer.json")
_CLASSIFIER = Path(__file__).with_name("classifier")


def describe_model(settings: ModelSettings) -> dict[str, Any]:
    """Return the settings of a model that can change its answers, with the sampling of every task."""
    sampling = {"max_tokens": Task.max_tokens, "temperature": None, "seed": "by campaign and task"}
    return {**settings.model_dump(mode="json", exclude=set(PRICE_SETTINGS)), "sampling": sampling}


def describe_router(config: RouterConfig) -> dict[str, Any]:
    """Return the settings by which calls are routed, without models and budgets, and the digests of taught files.

    A file that is not there has the digest "missing".
    """
    settings = config.model_dump(mode="json", exclude={"models", "budget"})
    embedding = config.routing.embedding
    if embedding is not None:  # a folder's place is no part of the version, its files are
        settings["routing"]["embedding"] = dict(_digest_files(embedding, EMBEDDING_FILES))
    return {**settings, "taught": dict(_digest_files(_CLASSIFIER, TAUGHT_FILES))}


def _digest_files(folder: Path, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        file = folder / name
        yield name, sha256(file.read_bytes()).hexdigest() if file.is_file() else "missing"


def mask_keys(text: str) -> str:
    """Return a text without keys and passwords, as far as their shape or the name before them tells them."""
    return Redactor().without_keys(text)
