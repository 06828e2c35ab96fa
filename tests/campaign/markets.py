"""Small markets as files, and the settings of campaigns that end in seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from alphaloom.factors import PlantSettings, build_planted_market
from alphaloom.market import Panel, SyntheticConfig

NOON = datetime(2199, 7, 9, 12, tzinfo=UTC)
COLUMNS = ("open", "high", "low", "close", "volume", "vwap", "cap")
BRIEF = [
    "evidence.published=false",
    "evidence.windows.search=0.45",
    "evidence.windows.selection=0.4",
    "agents.rounds=3",
    "agents.hypotheses=4",
    "agents.candidates=4",
    "agents.steps=1",
    "agents.min_search_t=0",
    "budget.evaluations=45",
    "budget.trials=9",
]
"""A few seconds; nothing in the gate is lowered. The published formulas are scored in `CLOSING` alone."""

CLOSING = [
    *BRIEF,
    "evidence.published=true",
    "evidence.open_sealed=true",
    "evidence.leak_rank_ic=0.5",
    "risk.single_name_cap_bp=400",
]
"""A close in which everything happens: the risk gate is tightened, and strong plants would look like a leak."""


def strong(days: int = 700, names: int = 60, seed: int = 3) -> Panel:
    """Simulate a market with so much planted in it that any search finds some."""
    plants = PlantSettings(count=20, rank_ic=(0.08, 0.08), fading=0.0, dying=0.0)
    return build_planted_market(SyntheticConfig(seed=seed, days=days, names=names), plants).panel


def tidy(panel: Panel) -> pd.DataFrame:
    """Return a panel as people keep prices: a row for each date and symbol, and a column of their own, `mood`."""
    rows, columns = np.nonzero(panel.universe)
    frame = pd.DataFrame(
        {"date": panel.dates[rows].astype("datetime64[s]"), "symbol": np.array(panel.symbols)[columns]}
    )
    for name in COLUMNS:
        frame[name] = panel.fields[name][rows, columns]
    frame["mood"] = np.sin(np.arange(len(frame)) * 0.7)
    return frame


def sectors(panel: Panel) -> pd.DataFrame:
    labels = np.array([*panel.group_labels["sector"], ""])
    return pd.DataFrame({"symbol": panel.symbols, "sector": labels[panel.groups["sector"]]})


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table as its name says, Parquet or CSV."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path
