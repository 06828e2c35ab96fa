"""What a workspace knows: its factors, how they do on new days, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .condition import (
        Condition as Condition,
        find_condition as find_condition,
        list_conditions as list_conditions,
    )
    from .entries import (
        ADDED_BY_HAND as ADDED_BY_HAND,
        MEMBER as MEMBER,
        PROMOTED as PROMOTED,
        WATCHLIST as WATCHLIST,
        Entry as Entry,
        ambiguous_error as ambiguous_error,
        choose_own_text as choose_own_text,
        find_entry as find_entry,
        find_known_row as find_known_row,
        list_comparable as list_comparable,
        list_decaying as list_decaying,
        list_entries as list_entries,
        list_known_at as list_known_at,
        read_retired as read_retired,
        write_in_own_language as write_in_own_language,
    )
    from .exchange import (
        export_library as export_library,
        import_library as import_library,
        read_library_file as read_library_file,
    )
    from .observations import FactorReading as FactorReading
    from .watch import LibraryWatch as LibraryWatch
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "condition": "Condition find_condition list_conditions",
            "entries": (
                "ADDED_BY_HAND Entry MEMBER PROMOTED WATCHLIST ambiguous_error find_entry find_known_row "
                "list_comparable list_decaying list_entries list_known_at read_retired write_in_own_language "
                "choose_own_text"
            ),
            "exchange": "export_library import_library read_library_file",
            "observations": "FactorReading",
            "watch": "LibraryWatch",
        },
    )
