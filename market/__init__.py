"""Prices as they were known that day: panels from files, and a synthetic market whose truth is stated.

What reads files (pyarrow) and what simulates (scipy) is imported when it is first used, so that a panel stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .actions import Actions as Actions, read_actions as read_actions
    from .adjusted import (
        SHARE_COUNT_FIELDS as SHARE_COUNT_FIELDS,
        adjust_forwards as adjust_forwards,
        adjusted_fields as adjusted_fields,
        hides_volumes as hides_volumes,
        reset_volume_levels as reset_volume_levels,
    )
    from .data_warning import DataWarning as DataWarning, format_count as format_count
    from .derive import describe_derivations as describe_derivations
    from .errors import (
        MAX_SHOWN_PER_KIND as MAX_SHOWN_PER_KIND,
        Finding as Finding,
        MarketError as MarketError,
        PanelError as PanelError,
        refuse_missing as refuse_missing,
    )
    from .load import PanelSource as PanelSource, load_panel as load_panel, read_panel as read_panel
    from .panel import (
        PRICE_FIELDS as PRICE_FIELDS,
        UNKNOWN_GROUP as UNKNOWN_GROUP,
        Panel as Panel,
        simple_returns as simple_returns,
    )
    from .point_in_time import (
        NOT_POINT_IN_TIME as NOT_POINT_IN_TIME,
        drop_fields as drop_fields,
        keep_members as keep_members,
        panel_as_of as panel_as_of,
    )
    from .quality import find_data_warnings as find_data_warnings
    from .sensitivity import ALL_FIELDS as ALL_FIELDS, withheld_fields as withheld_fields
    from .synthetic.market import (
        Plant as Plant,
        PlantedAlpha as PlantedAlpha,
        SyntheticConfig as SyntheticConfig,
        SyntheticMarket as SyntheticMarket,
        simulate as simulate,
    )
    from .synthetic.null_panel import Nulling as Nulling, make_null_panel as make_null_panel
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "actions": "Actions read_actions",
            "adjusted": "SHARE_COUNT_FIELDS adjust_forwards adjusted_fields hides_volumes reset_volume_levels",
            "data_warning": "DataWarning format_count",
            "derive": "describe_derivations",
            "errors": "Finding MAX_SHOWN_PER_KIND MarketError PanelError refuse_missing",
            "load": "PanelSource load_panel read_panel",
            "panel": "PRICE_FIELDS Panel UNKNOWN_GROUP simple_returns",
            "point_in_time": "NOT_POINT_IN_TIME drop_fields keep_members panel_as_of",
            "quality": "find_data_warnings",
            "sensitivity": "ALL_FIELDS withheld_fields",
            "synthetic.market": "Plant PlantedAlpha SyntheticConfig SyntheticMarket simulate",
            "synthetic.null_panel": "Nulling make_null_panel",
        },
    )
