"""Checks of the service: its power, its negative control, its verdicts recomputed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .exposures import (
        AUDIT_EVENT as AUDIT_EVENT,
        AuditRequest as AuditRequest,
        ExposureAudit as ExposureAudit,
        audit_factors as audit_factors,
        list_audits as list_audits,
    )
    from .monoculture import (
        ChanceComparison as ChanceComparison,
        Monoculture as Monoculture,
        compare_mechanisms as compare_mechanisms,
        count_directions as count_directions,
        measure_authors as measure_authors,
        measure_mechanisms as measure_mechanisms,
        measure_series as measure_series,
        read_monoculture as read_monoculture,
    )
    from .negative_control import (
        MAX_RANDOM_FORMULAS as MAX_RANDOM_FORMULAS,
        ControlTally as ControlTally,
        NullRun as NullRun,
        share_interval as share_interval,
        top_up as top_up,
    )
    from .power import (
        few_labels as few_labels,
        outlook as outlook,
        published_scatter as published_scatter,
        record_first_power as record_first_power,
    )
    from .verification import find_loose_ends as find_loose_ends, replay_on_panel as replay_on_panel
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "exposures": "AUDIT_EVENT AuditRequest ExposureAudit audit_factors list_audits",
            "monoculture": (
                "ChanceComparison Monoculture compare_mechanisms count_directions measure_authors measure_mechanisms "
                "measure_series read_monoculture"
            ),
            "negative_control": "ControlTally MAX_RANDOM_FORMULAS NullRun share_interval top_up",
            "power": "few_labels outlook published_scatter record_first_power",
            "verification": "find_loose_ends replay_on_panel",
        },
    )
