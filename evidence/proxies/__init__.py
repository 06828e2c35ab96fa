"""Does a score stand in for a group attribute: dependence measures, probes, and permutations of groups over assets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .dependence import distance_correlation as distance_correlation, maximal_correlation as maximal_correlation
    from .permutation import STOP_EXCEEDANCES as STOP_EXCEEDANCES
    from .proxy_audit import (
        SIZE as SIZE,
        AuditInput as AuditInput,
        ProxyFinding as ProxyFinding,
        audit_groups as audit_groups,
        audit_level as audit_level,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "dependence": "distance_correlation maximal_correlation",
            "permutation": "STOP_EXCEEDANCES",
            "proxy_audit": "AuditInput ProxyFinding SIZE audit_groups audit_level",
        },
    )
