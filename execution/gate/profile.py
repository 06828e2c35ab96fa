"""Venue profiles: the hours of a market, and the rates at which an account may send there."""

from __future__ import annotations

from datetime import time
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, RootModel, StrictInt, field_validator

from ...ledger import read_settings

PROFILES_FILE: Final = Path(__file__).with_name("profiles.yaml")


class RateLimit(BaseModel):
    """How many orders, or orders and cancels, are too many: the one that would reach a number is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    per_second: StrictInt | None = Field(default=None, ge=1, description="too many within a second; null: no limit")
    times_a_day: StrictInt = Field(default=1, ge=1, description="seconds of a day that must be too busy")
    per_day: StrictInt | None = Field(default=None, ge=1, description="too many within a day; null: no limit")


class VenueProfile(BaseModel):
    """The hours of a market, and the rates that its rules name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = Field(default="", description="which rule or market it is")
    time_zone: str = Field(description="zone of the hours and of the day over which is counted: America/New_York")
    hours: tuple[tuple[str, str], ...] = Field(
        min_length=1, description="opening and closing on Monday to Friday, as 09:30; used without a calendar"
    )
    orders: RateLimit = Field(default=RateLimit(), description="orders of the account")
    messages: RateLimit = Field(default=RateLimit(), description="orders and cancels of the account")

    @field_validator("time_zone")
    @classmethod
    def _find_zone(cls, name: str) -> str:
        """Refuse a zone that this machine does not know."""
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValueError("name a time zone of the IANA database, such as Europe/London") from None
        return name

    @field_validator("hours")
    @classmethod
    def _read_hours(cls, hours: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """Refuse hours that are no times, or do not follow one another."""
        times = [time.fromisoformat(text) for span in hours for text in span]
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise ValueError("each time must be later than the one before, within one day")
        return hours


class ProfileTable(RootModel[dict[str, VenueProfile]]):
    """Profiles by name."""


@cache
def read_profiles() -> dict[str, VenueProfile]:
    """Return the profiles of the package by name."""
    return read_settings(PROFILES_FILE, ProfileTable).root
