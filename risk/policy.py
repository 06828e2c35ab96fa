"""The limits of a book. A person sets them in the campaign file; nothing else can."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt


class Policy(BaseModel):
    """Limits in whole numbers; a value equal to its limit passes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    single_name_cap_bp: StrictInt = Field(
        default=500, ge=0, description="largest exposure of a name, at its worse bound"
    )
    interval_width_cap_bp: StrictInt = Field(
        default=1_000, ge=0, description="largest distance between a signal's bounds"
    )
    gross_cap_bp: StrictInt = Field(default=20_000, ge=0, description="long plus short exposure")
    net_cap_bp: StrictInt = Field(default=2_000, ge=0, description="long minus short exposure, either sign")
    turnover_cap_bp: StrictInt = Field(default=20_000, ge=0, description="bought plus sold in a day")
    trailing_drawdown_cap_bp: StrictInt = Field(
        default=1_500, ge=0, description="fall of equity from its highest value"
    )
    daily_loss_cap_bp: StrictInt = Field(default=300, ge=0, description="loss of the day, of equity at its start")
    max_data_age_days: StrictInt = Field(default=5, ge=0, description="calendar days since a name's last price")
    kill_switch: StrictBool = Field(default=False, description="refuse everything, also what reduces")
