"""How a table is to be read where it does not say so itself; every setting is named by the message that asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from .errors import PanelError

DateForm = Literal["", "day_first", "month_first", "excel", "unix"]
DecimalMark = Literal["", "point", "comma"]


class Reading(BaseModel):
    """Settings of a table's reader. Nothing has to be set for a tidy table with ISO dates and a decimal point."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: dict[str, str] = Field(
        default={}, description="the column of a field, where its name differs, e.g. {symbol: Ticker, close: Last}"
    )
    dates: DateForm = Field(
        default="",
        description="how dates are written: day_first or month_first (02/01/2013), excel (41276) or unix (1357084800)",
    )
    time_zone: str = Field(
        default="", description="the exchange's zone, e.g. America/New_York; an instant is its day in that zone"
    )
    decimal: DecimalMark = Field(default="", description="the decimal mark of numbers such as 1,234: point or comma")
    missing: tuple[str, ...] = Field(default=(), description='words that stand for an empty cell, e.g. ["NaN", "-"]')
    duplicates: Literal["refuse", "drop_equal"] = Field(
        default="refuse", description="drop_equal leaves out rows that repeat another one in every cell"
    )

    closed_days: Literal["refuse", "leave_out"] = Field(
        default="refuse", description="leave_out reads a table without its days that are no session of market.calendar"
    )

    @model_validator(mode="wrap")
    @classmethod
    def _explain_mistakes(
        cls, values: object, handler: ModelWrapValidatorHandler[Reading], info: ValidationInfo
    ) -> Reading:
        """Name each mistake of settings that are given in Python as a settings file's are named."""
        try:
            return handler(values)
        except ValidationError:
            if info.mode == "json":  # a settings file, whose reader names the line
                raise
        if not isinstance(values, Mapping):
            what = f"reading is a Reading, or a dict of its settings, not {type(values).__name__}"
            raise PanelError(what, field="reading", hint="Give Reading(time_zone='America/New_York').")
        from ..ledger import read_settings

        return read_settings(None, cls, [f"{key}={json.dumps(value, default=str)}" for key, value in values.items()])

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, zone: str) -> str:
        try:
            if zone:
                ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{zone!r} is no time zone; allowed: a name such as America/New_York") from None
        return zone


AS_IT_STANDS = Reading()
"""The settings of a table that says everything itself."""
