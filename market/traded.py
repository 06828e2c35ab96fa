"""Money traded per day: the one place where a price is multiplied by a volume.

A price and a volume may be multiplied if both count the same shares. A file mixes them: quotes or closes in shares of
the last day, volumes as traded or in shares of the last day. A split recorded on any day, or its absence, changes no
money traded on any day, whatever the mix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from .panel import Panel

Frame = NDArray[np.float64]
TradedRule = Literal["close_raw*volume", "close_raw*quoted_volume", "close*volume", "close*adjusted_volume"]
"""How the money traded is computed: a quoted volume is one as traded, an adjusted one is in shares of the last day."""
AMOUNT_RULES: Final[tuple[TradedRule, ...]] = (
    "close_raw*volume",
    "close_raw*quoted_volume",
    "close*volume",
    "close*adjusted_volume",
)
QUOTED_RULES: Final[tuple[TradedRule, ...]] = ("close_raw*volume", "close_raw*quoted_volume")
"""The rules that read no adjusted close."""
SPLIT_RULES: Final[tuple[TradedRule, ...]] = ("close_raw*quoted_volume", "close*adjusted_volume")
"""The rules that read the recorded splits."""


def measure_traded_money(panel: Panel) -> Frame:
    """Return the money traded in each symbol on each day, ``[T, N]``, in the currency of the prices.

    Not below 0; 0 on a day without a trade; NaN where the price or the volume is missing. By the first rule that fits:

    1. Quoted closes (`close_raw`) times volumes as traded. Volumes of unstated kind count as traded.
    2. Quoted closes times adjusted volumes over the recorded splits (`Panel.splits`) after the day.
    3. Closes times volumes, both in shares of one day. So it is where nothing says otherwise, where both count the
       shares of the first day, and where volumes are adjusted and no splits are recorded: then dividends that the
       closes are adjusted for are missing from the money of the days before them, and at other closes than those of the
       file (`adjust_forwards`) the money of each symbol is wrong by one factor.
    4. Without quoted closes, where volumes are as traded and splits are recorded: closes times volumes in shares of the
       last day.
    """
    rule = find_traded_rule(panel)
    return compute_traded_money(panel.fields, rule, count_later_shares(panel) if rule in SPLIT_RULES else None)


def find_traded_rule(panel: Panel) -> TradedRule:
    """Return the rule by which `measure_traded_money` computes the money traded in a panel."""
    return choose_traded_rule(panel.fields, panel.volumes, has_splits=panel.splits is not None)


def choose_traded_rule(fields: Mapping[str, Frame], volumes: str, *, has_splits: bool) -> TradedRule:
    """Return how the money traded follows from fields, the kind of their volumes, and whether splits are recorded."""
    if "close_raw" not in fields:
        return "close*adjusted_volume" if volumes == "quoted" and has_splits else "close*volume"
    if volumes == "forward":
        return "close*volume"
    if volumes != "adjusted":
        return "close_raw*volume"
    return "close_raw*quoted_volume" if has_splits else "close*volume"


def compute_traded_money(fields: Mapping[str, Frame], rule: TradedRule, later: Frame | None = None) -> Frame:
    """Return the money traded by a rule, in the shape of the fields; see `measure_traded_money`.

    Parameters
    ----------
    fields
        close, volume, and close_raw where the rule reads it.
    rule
        From `choose_traded_rule`.
    later
        `count_later_shares`, where the rule needs it.
    """
    price = fields["close_raw" if rule in QUOTED_RULES else "close"]
    money: Frame = price * fields["volume"]
    if later is None or rule not in SPLIT_RULES:
        return money
    return money / later if rule == "close_raw*quoted_volume" else money * later


def count_later_shares(panel: Panel) -> Frame | None:
    """Return how many shares of the last day one share of each day became, ``[T, N]``; None without recorded splits.

    The last day is that of the panel on which the splits were recorded: a part of its rows counts later splits too, as
    its adjusted volumes do.
    """
    if panel.splits is None:
        return None
    later = np.ones((panel.days, panel.names))
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    for day, symbol, shares in panel.splits:
        if (place := column.get(symbol)) is not None:
            later[: int(np.searchsorted(panel.dates, np.datetime64(day, "D"))), place] *= shares
    return later
