"""Prices as they were known that day: panels from files, data checks, and synthetic markets with known alphas.

pyarrow (files) and scipy (simulation) are imported on first use, so that importing a panel stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .actions import Actions as Actions, bound_ratio as bound_ratio, read_actions as read_actions
    from .adjusted import (
        SHARE_COUNT_FIELDS as SHARE_COUNT_FIELDS,
        adjust_forwards as adjust_forwards,
        find_adjusted_fields as find_adjusted_fields,
        has_unsafe_volume_levels as has_unsafe_volume_levels,
        reset_volume_levels as reset_volume_levels,
    )
    from .beside.symbol_changes import read_symbol_changes as read_symbol_changes
    from .calendar import find_next_session as find_next_session
    from .derive import describe_derivations as describe_derivations
    from .errors import (
        MAX_SHOWN_PER_KIND as MAX_SHOWN_PER_KIND,
        DataWarning as DataWarning,
        MarketError as MarketError,
        PanelError as PanelError,
        format_count as format_count,
        refuse_missing as refuse_missing,
    )
    from .fetch.quotes import FetchedPrices as FetchedPrices, make_quotes as make_quotes
    from .fetch.source import PriceSource as PriceSource, YahooSource as YahooSource
    from .frame import panel_from as panel_from
    from .load import PanelSource as PanelSource, load_panel as load_panel, read_panel as read_panel
    from .panel import (
        PRICE_FIELDS as PRICE_FIELDS,
        UNKNOWN_GROUP as UNKNOWN_GROUP,
        Panel as Panel,
        compute_simple_returns as compute_simple_returns,
    )
    from .point_in_time import (
        NOT_POINT_IN_TIME as NOT_POINT_IN_TIME,
        keep_members as keep_members,
        take_panel_as_of as take_panel_as_of,
    )
    from .quality import find_data_warnings as find_data_warnings
    from .quality.summary import PanelOverview as PanelOverview, summarise_panel as summarise_panel
    from .reading import Reading as Reading
    from .sensitivity import (
        ALL_FIELDS as ALL_FIELDS,
        drop_fields as drop_fields,
        find_withheld_fields as find_withheld_fields,
    )
    from .synthetic.market import (
        Plant as Plant,
        PlantedAlpha as PlantedAlpha,
        SyntheticConfig as SyntheticConfig,
        SyntheticMarket as SyntheticMarket,
        draw_world as draw_world,
        plant_alphas as plant_alphas,
        simulate as simulate,
    )
    from .synthetic.null_panel import Nulling as Nulling, make_null_panel as make_null_panel
    from .table import Table as Table, read_table as read_table
    from .traded import find_traded_rule as find_traded_rule, measure_traded_money as measure_traded_money
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "actions": "Actions bound_ratio read_actions",
            "adjusted": (
                "SHARE_COUNT_FIELDS adjust_forwards find_adjusted_fields has_unsafe_volume_levels reset_volume_levels"
            ),
            "beside.symbol_changes": "read_symbol_changes",
            "calendar": "find_next_session",
            "derive": "describe_derivations",
            "errors": "DataWarning MAX_SHOWN_PER_KIND MarketError PanelError format_count refuse_missing",
            "fetch.quotes": "FetchedPrices make_quotes",
            "fetch.source": "PriceSource YahooSource",
            "frame": "panel_from",
            "load": "PanelSource load_panel read_panel",
            "panel": "PRICE_FIELDS Panel UNKNOWN_GROUP compute_simple_returns",
            "point_in_time": "NOT_POINT_IN_TIME keep_members take_panel_as_of",
            "quality": "find_data_warnings",
            "quality.summary": "PanelOverview summarise_panel",
            "reading": "Reading",
            "sensitivity": "ALL_FIELDS drop_fields find_withheld_fields",
            "synthetic.market": "Plant PlantedAlpha SyntheticConfig SyntheticMarket draw_world plant_alphas simulate",
            "synthetic.null_panel": "Nulling make_null_panel",
            "table": "Table read_table",
            "traded": "find_traded_rule measure_traded_money",
        },
    )
