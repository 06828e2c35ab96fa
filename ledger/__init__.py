"""The append-only record of everything a campaign tried, asked, decided and made.

`Ledger` keeps it; the records are in `ledger.records`, the errors in `ledger.errors`. `read_settings` turns a YAML
file into a checked record; it is imported when first used, because pydantic and yaml are slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .changes import (
        CHANGE_EVENT as CHANGE_EVENT,
        CHANGE_KINDS as CHANGE_KINDS,
        SERVED as SERVED,
        VERSION_KINDS as VERSION_KINDS,
        ChangeRow as ChangeRow,
        ChangeWord as ChangeWord,
        VersionKind as VersionKind,
        find_account as find_account,
        find_unapproved as find_unapproved,
        list_changes as list_changes,
    )
    from .database.locks import wait_while_locked as wait_while_locked
    from .digest import (
        JSON as JSON,
        canonical_json as canonical_json,
        compute_digest as compute_digest,
        list_texts as list_texts,
    )
    from .errors import (
        AlphaloomError as AlphaloomError,
        LedgerConflict as LedgerConflict,
        LedgerError as LedgerError,
        Mistake as Mistake,
        RunLocked as RunLocked,
        SettingsError as SettingsError,
        UnknownRecord as UnknownRecord,
        UnknownRun as UnknownRun,
        WorkspaceError as WorkspaceError,
    )
    from .files.objects import (
        cut_listed as cut_listed,
        cut_member as cut_member,
        read_json as read_json,
        write_json as write_json,
    )
    from .files.settings import read_settings as read_settings
    from .library import Pass as Pass
    from .records import (
        Attempt as Attempt,
        Boundaries as Boundaries,
        Evaluation as Evaluation,
        Event as Event,
        Fingerprint as Fingerprint,
        JsonObject as JsonObject,
        LibraryRow as LibraryRow,
        Look as Look,
        ModelCall as ModelCall,
        Opening as Opening,
        Run as Run,
        Sighting as Sighting,
        Stage as Stage,
        StatusChange as StatusChange,
        Trial as Trial,
        VerdictRow as VerdictRow,
        WindowKey as WindowKey,
    )
    from .reservations import (
        PICO as PICO,
        Cap as Cap,
        CapReached as CapReached,
        CapScope as CapScope,
        Hold as Hold,
        Wish as Wish,
        picos as picos,
        utc_day as utc_day,
    )
    from .runs import (
        ask_to_close as ask_to_close,
        ask_to_stop as ask_to_stop,
        count_stops as count_stops,
        is_closing as is_closing,
        note_start as note_start,
    )
    from .store import Journal as Journal, Ledger as Ledger
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "changes": (
                "CHANGE_EVENT CHANGE_KINDS SERVED VERSION_KINDS ChangeRow ChangeWord VersionKind find_account "
                "find_unapproved list_changes"
            ),
            "database.locks": "wait_while_locked",
            "digest": "JSON canonical_json compute_digest list_texts",
            "errors": (
                "AlphaloomError LedgerConflict LedgerError Mistake RunLocked SettingsError UnknownRecord UnknownRun "
                "WorkspaceError"
            ),
            "files.objects": "cut_listed cut_member read_json write_json",
            "files.settings": "read_settings",
            "library": "Pass",
            "records": (
                "Attempt Boundaries Evaluation Event Fingerprint JsonObject LibraryRow Look ModelCall Opening Run "
                "Sighting Stage StatusChange Trial VerdictRow WindowKey"
            ),
            "runs": "ask_to_close ask_to_stop count_stops is_closing note_start",
            "reservations": "Cap CapReached CapScope Hold PICO Wish picos utc_day",
            "store": "Journal Ledger",
        },
    )
