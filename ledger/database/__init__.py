"""The database protocol of the ledger, and its SQLite implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .home import Home as Home, has_record as has_record
    from .locks import Wait as Wait, hold_lock as hold_lock, wait_for_lock as wait_for_lock
    from .protocol import explained as explained
    from .schema import EXEMPT_TABLES as EXEMPT_TABLES
    from .sqlite import begin_immediate as begin_immediate, enable_wal as enable_wal
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "home": "Home has_record",
            "locks": "Wait hold_lock wait_for_lock",
            "protocol": "explained",
            "schema": "EXEMPT_TABLES",
            "sqlite": "begin_immediate enable_wal",
        },
    )
