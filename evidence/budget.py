"""What a campaign may spend on its search, besides what its models cost."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Budget(BaseModel):
    """What a campaign may spend on evidence, ideas and time; calls, tokens and money are the models' own budget."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    evaluations: int = Field(default=240, ge=1, description="factors scored on the search window")
    trials: int = Field(default=10, ge=0, description="looks at the selection window")
    hypotheses: int | None = Field(
        default=None, ge=1, description="hypotheses proposed; none: as many as rounds ask for"
    )
    wall_s: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="seconds of work, over all processes of the run; such an end is not repeated to the byte",
    )
