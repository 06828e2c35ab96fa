"""Which models answer the agents: the offline researcher where a campaign file names none."""

from __future__ import annotations

from pydantic import Field

from ..router import ModelSettings, RouterConfig, TierChoice
from .offline import OFFLINE_MODEL_NAME, describe_unmatched
from .own.steer import Steer

OFFLINE_MODEL = ModelSettings(model=OFFLINE_MODEL_NAME, tier="local", place="local")


class Models(RouterConfig):
    """The router's settings, with the offline researcher where no model is named."""

    models: dict[str, ModelSettings] = Field(default={"researcher": OFFLINE_MODEL}, min_length=1)
    roles: dict[str, TierChoice] = Field(
        default={"idea": "frontier", "factor": "local", "eval": "frontier", "report": "local"}
    )

    def unheard(self, steer: Steer) -> list[str]:
        """Return what a person asked for that the offline researcher, where it proposes, knows nothing of."""
        offline = any(model.model == OFFLINE_MODEL_NAME for model in self.models.values())
        return describe_unmatched(steer.record()) if offline else []
