"""Which models answer the agents: the offline researcher where a campaign file names none."""

from __future__ import annotations

from pydantic import Field

from ..router import ModelSettings, RouterConfig
from .offline import NAME

OFFLINE = ModelSettings(model=NAME, tier="local", place="local")


class Models(RouterConfig):
    """The router's settings, with the offline researcher where no model is named."""

    models: dict[str, ModelSettings] = Field(default={"researcher": OFFLINE}, min_length=1)
