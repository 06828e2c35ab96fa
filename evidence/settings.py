"""Settings of the gate and its windows, fixed before a campaign starts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator


class WindowSettings(BaseModel):
    """How the days of a data set are divided at its first campaign."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    search: float = Field(default=0.6, gt=0, lt=1, description="share of the days that agents see")
    selection: float = Field(default=0.2, gt=0, lt=1, description="share of the days that only the gate sees")
    min_search_days: int = Field(default=120, ge=40, description="days")
    min_selection_days: int = Field(default=60, ge=40, description="days")
    min_sealed_days: int = Field(default=40, ge=40, description="days")

    @model_validator(mode="after")
    def _check_sealed_share(self) -> WindowSettings:
        if self.search + self.selection > 0.95:
            raise ValueError("search + selection must leave at least 0.05 of the days sealed")
        return self


class CostSettings(BaseModel):
    """What trading is charged."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bps_per_side: float = Field(default=10.0, ge=0, description="basis points of traded notional, one way")
    borrow_bps_per_year: float = Field(default=50.0, ge=0, description="basis points of short notional a year")


class ComplexitySettings(BaseModel):
    """Bounds of a formula and the price of its size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_size: int = Field(default=30, ge=1, description="nodes")
    max_depth: int = Field(default=10, ge=1, description="levels")
    max_constants: int = Field(default=8, ge=0, description="free numbers, windows included")
    max_fields: int = Field(default=5, ge=1, description="raw fields")
    price_per_node: float = Field(default=0.02, ge=0, description="taken from |t| on search for each node over five")


class LibrarySettings(BaseModel):
    """How the library's factors are watched on new days, and what retires or proves one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: float = Field(
        default=0.05, gt=0, lt=0.5, description="expected share of false ones among those that new days prove"
    )
    decay_share: float = Field(
        default=0.5, gt=0, lt=1, description="share of the selection RankIC below which a factor has decayed"
    )
    flag_days: int = Field(default=252, ge=126, description="scored days that the flag of decay looks back on")
    flag_p: float = Field(default=0.02, gt=0, lt=0.5, description="largest p-value that flags a decay")
    retire_e: float = Field(
        default=10.0, ge=0, description="e-detector that retires: quarters between false retirements; 0 never retires"
    )
    retired_are_redundant: bool = Field(
        default=False, description="refuse what says the same as a retired factor; its formula is never original"
    )


EARLIER_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"label_scale": "none", "test": "labels", "screen_t": 0.0, "combination": "equal", "trading_rate": 1.0}
)
"""Values of settings in runs that are older than the setting."""


MAX_WATCH_P = 0.05
RECORDED_CONTEXT = "recorded"
"""Key of a validation context: the settings are those of a recorded run, and may have values that were allowed then."""


def complete_settings(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded evidence settings of a run, completed by the values of settings that it is older than."""
    return {**EARLIER_DEFAULTS, **recorded}


class EvidenceSettings(BaseModel):
    """Everything the evidence room is told by a campaign file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    horizon_days: int = Field(default=5, ge=1, le=20, description="days from entry to exit")
    returns: Literal["residual", "raw"] = Field(
        default="residual",
        description="score against returns with market, sector and size taken out, or against raw ones",
    )
    label_scale: Literal["own_risk", "none"] = Field(
        default="own_risk",
        description="unit of residual returns: what each name moves by on its own, or plain returns",
    )
    test: Literal["labels", "held"] = Field(
        default="labels",
        description="what a trial tests: overlapping labels, or (more power, see evidence/scoring/holding_ic.py for "
        "its risk) one-day returns against the ranks held that day",
    )
    screen_t: float = Field(
        default=0.0,
        ge=0,
        description="t on every fifth search day below which no whole sheet is made; 0 makes them all",
    )
    level: float = Field(default=0.05, gt=0, lt=0.5, description="level of the stream of trials")
    watch_p: float = Field(default=0.05, gt=0, lt=0.5, description="largest p-value of a watched factor, at most 0.05")
    max_similarity: float = Field(
        default=0.85, gt=0, le=1, description="largest shared-subtree ratio with a known factor"
    )
    max_redundancy: float = Field(
        default=0.7, gt=0, le=1, description="largest absolute rank correlation with the library"
    )
    leak_rank_ic: float = Field(
        default=0.08, gt=0, lt=1, description="mean RankIC on selection above which a leak is feared"
    )
    prior_trials: int = Field(
        default=0, ge=0, description="looks at these days made elsewhere, by hand or by another tool"
    )
    combination: Literal["equal", "ridge", "adaptive", "best"] = Field(
        default="adaptive",
        description="how accepted factors are weighed; best takes the highest Sharpe after costs in walk-forward on "
        "search",
    )
    trading_rate: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of the way to the combination traded each day; 0 takes the best after costs on search",
    )
    published: bool = Field(default=True, description="score the published formulas first, and compare with them")
    open_sealed: bool = Field(
        default=False, description="open the sealed window at the close, once, for the combination"
    )
    acknowledged: tuple[str, ...] = Field(
        default=(), description="ids of factors whose leak alarm a person has looked into"
    )
    windows: WindowSettings = WindowSettings()
    costs: CostSettings = CostSettings()
    complexity: ComplexitySettings = ComplexitySettings()
    library: LibrarySettings = LibrarySettings()

    @field_validator("watch_p")
    @classmethod
    def _check_watch_p(cls, value: float, info: ValidationInfo) -> float:
        """Refuse a wide watchlist, from which agents could compose a passing factor; recorded runs keep their value."""
        if value > MAX_WATCH_P and not (info.context or {}).get(RECORDED_CONTEXT):
            raise ValueError(f"must be at most {MAX_WATCH_P}")
        return value
