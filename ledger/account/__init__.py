"""What the record says of a decision, in sentences made by rule, each with the leaves of the log that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .explain import explain_name as explain_name, explain_record as explain_record, name_leaf as name_leaf
    from .overview import (
        list_changes as list_changes,
        list_overrides as list_overrides,
        read_overview as read_overview,
        report_exposures as report_exposures,
    )
    from .rows import RecordReader as RecordReader
    from .sentences import DecisionAccount as DecisionAccount, Responsible as Responsible, Sentence as Sentence
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "explain": "explain_name explain_record name_leaf",
            "overview": "list_changes list_overrides read_overview report_exposures",
            "rows": "RecordReader",
            "sentences": "DecisionAccount Responsible Sentence",
        },
    )
