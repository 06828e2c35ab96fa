"""Settings of the market that a campaign works on: a file of prices, or a synthetic market with planted alphas."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...market import (
    Actions,
    Nulling,
    Panel,
    PanelSource,
    Reading,
    SyntheticConfig,
    SyntheticMarket,
    load_panel,
    make_null_panel,
    read_actions,
    read_panel,
    read_symbol_changes,
)
from ..language.node import STANDARD_FIELDS, STANDARD_GROUPS
from .planted import PlantSettings, build_planted_market

FieldSensitivity = Annotated[str, Field(pattern=r"^(confidential|jurisdiction:[A-Z]{2})$")]
"""Sensitivity of a field: only callers with the scope data:LABEL may see it."""


class MarketSettings(BaseModel):
    """Names a market; without a panel it is simulated."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(default="", description="what reports call the data")
    licence: str = Field(
        default="",
        max_length=200,
        description="licence or source of the data, as you declare it; in report and manifest",
    )
    panel: Path | None = Field(default=None, description="Parquet or CSV, tidy or wide; none: the synthetic market")
    read: Reading = Field(default=Reading(), description="how the tables are written, where they do not say it")
    members: Path | None = Field(default=None, description="who was in the universe: symbol, from, to")
    fundamentals: Path | None = Field(
        default=None, description="figures as they became known: symbol, known, period if wanted, and columns"
    )
    symbol_changes: Path | None = Field(
        default=None, description="date, symbol, new_symbol: what a company is called from a day on; empty: it ended"
    )
    calendar: str = Field(
        default="", description="the exchange whose sessions the days are, a code of exchange-calendars, e.g. XNYS"
    )
    sectors: Path | None = Field(default=None, description="Parquet or CSV with symbol and sector")
    as_of: date | None = Field(default=None, description="no row may be later; the last date by default")
    actions: Path | None = Field(default=None, description="splits and dividends: date, symbol, dividend, split")
    volumes: Literal["", "quoted", "adjusted"] = Field(
        default="", description="the panel's: as traded that day, or in shares of its last day"
    )
    labels: dict[str, tuple[FieldSensitivity, ...]] = Field(
        default={}, description="who may see a field, e.g. {cap: [confidential]}"
    )
    derive: dict[str, str] = Field(default={}, description="fields to compute, e.g. {vwap: typical}")
    nulled: Nulling | None = Field(default=None, description="make the panel null by the seed: nothing may be found")
    synthetic: SyntheticConfig = SyntheticConfig()
    plants: PlantSettings = PlantSettings()

    @model_validator(mode="after")
    def _require_volumes(self) -> MarketSettings:
        if self.actions is not None and not self.volumes:
            raise ValueError(
                "volumes: with actions say what the panel's volumes are, quoted (as traded that day) or adjusted "
                "(in shares of its last day)"
            )
        return self

    def beside(self, folder: Path) -> MarketSettings:
        """Return the settings with relative paths resolved from a folder."""
        paths = {
            name: (folder / path).absolute()
            for name in ("panel", "sectors", "actions", "members", "fundamentals", "symbol_changes")
            if (path := getattr(self, name))
        }
        return self.model_copy(update=paths)

    def given(self, panel: str | Path | None, sectors: str | Path | None, as_of: date | None) -> MarketSettings:
        """Return the settings with changes from the command line, whose paths start from the working directory."""
        files = {"panel": panel, "sectors": sectors}
        changes: dict[str, Path | date] = {
            name: Path(path).absolute() for name, path in files.items() if path is not None
        }
        return self.model_copy(update=changes | ({"as_of": as_of} if as_of is not None else {}))

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return the fields and groupings of the synthetic market; None for a file, which must be read first."""
        return (STANDARD_FIELDS, STANDARD_GROUPS) if self.panel is None else None

    def read_actions(self) -> Actions | None:
        """Read the file of splits and dividends, under the newest symbols; None if none is named.

        A market that was made null has none: its prices are not those that the file is of.
        """
        if self.actions is None or self.nulled is not None:
            return None
        changes = read_symbol_changes(self.symbol_changes, self.read) if self.symbol_changes else None
        return read_actions(self.actions, self.read, changes.trace if changes else None)

    def open(self, seed: int) -> tuple[Panel, str]:
        """Load or simulate the market and return its panel with the name of its data set.

        Raises
        ------
        PanelError
            With all mistakes of the file.
        """
        if self.panel is not None:
            source = PanelSource(self.panel, self.sectors, self.as_of, self.derive, self.name, self.read)
            source = replace(source, members=self.members, fundamentals=self.fundamentals)
            source = replace(source, symbol_changes=self.symbol_changes, calendar=self.calendar)
            source = replace(source, actions=self.actions, volumes=self.volumes)
            if self.nulled is not None:
                return make_null_panel(read_panel(source), seed, self.nulled), f"{source.name}-null-{seed}"
            return load_panel(source), source.name
        return self._simulate(seed).panel, self.name or f"synthetic-{seed}"

    def reveal(self, seed: int) -> SyntheticMarket | None:
        """Simulate the market again and return it with its truth; None for prices of a file and where nothing is."""
        return None if self.panel is not None or self.synthetic.nothing else self._simulate(seed)

    def _simulate(self, seed: int) -> SyntheticMarket:
        return _simulate_once(self.synthetic.model_copy(update={"seed": seed}), self.plants)


@lru_cache(maxsize=1)
def _simulate_once(config: SyntheticConfig, plants: PlantSettings) -> SyntheticMarket:
    """Simulate the market that this process asked for last once: its arrays are read-only."""
    return build_planted_market(config, plants)
