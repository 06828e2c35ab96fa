"""May it be traded? A deterministic gate from signals, book and policy to decisions; nothing here asks a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .decision import Approved as Approved, Decision as Decision, decide as decide, read_checks as read_checks
    from .events import (
        BookEvent as BookEvent,
        DayRolled as DayRolled,
        Delisted as Delisted,
        Filled as Filled,
        Flowed as Flowed,
        ModeSet as ModeSet,
        Paid as Paid,
        Priced as Priced,
        Rejected as Rejected,
        apply as apply,
    )
    from .exposure import PER_ONE as PER_ONE, PER_SD as PER_SD, Exposure as Exposure, list_failing as list_failing
    from .policy import (
        AUDIT_RULES as AUDIT_RULES,
        PEOPLE_RULES as PEOPLE_RULES,
        STANDING_RULES as STANDING_RULES,
        Policy as Policy,
        PolicyException as PolicyException,
        RiskLimits as RiskLimits,
        digest_policy as digest_policy,
    )
    from .policy_diff import PolicyChange as PolicyChange, compare_policies as compare_policies
    from .policy_file import POLICY_FILE as POLICY_FILE, read_policy as read_policy
    from .record import (
        ALARM_EVENT as ALARM_EVENT,
        LeakAlarm as LeakAlarm,
        acknowledge_alarm as acknowledge_alarm,
        list_alarms as list_alarms,
        read_standings as read_standings,
    )
    from .rules import (
        ALL_RULES as ALL_RULES,
        BP as BP,
        DAYS_OF_TURNOVER as DAYS_OF_TURNOVER,
        RULES as RULES,
        TOTAL_RULES as TOTAL_RULES,
        VOLUME_PARTS as VOLUME_PARTS,
        RuleCheck as RuleCheck,
        SignalChange as SignalChange,
    )
    from .signal import (
        UNITS_PER_BP as UNITS_PER_BP,
        UNITS_PER_EQUITY as UNITS_PER_EQUITY,
        RiskError as RiskError,
        Signal as Signal,
    )
    from .sizing import (
        SizedBook as SizedBook,
        Sizing as Sizing,
        measure_doubt as measure_doubt,
        size_book as size_book,
    )
    from .standing import SEPARATOR as SEPARATOR, Standing as Standing, list_ids as list_ids
    from .state import (
        MAX_SESSIONS as MAX_SESSIONS,
        MODES as MODES,
        AssetFacts as AssetFacts,
        BookState as BookState,
        Mode as Mode,
    )
    from .units import LIMIT_UNITS as LIMIT_UNITS, RULE_UNITS as RULE_UNITS
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "decision": "Approved Decision decide read_checks",
            "events": "BookEvent DayRolled Delisted Filled Flowed ModeSet Paid Priced Rejected apply",
            "exposure": "Exposure PER_ONE PER_SD list_failing",
            "policy": "AUDIT_RULES PEOPLE_RULES STANDING_RULES RiskLimits Policy PolicyException digest_policy",
            "policy_diff": "PolicyChange compare_policies",
            "policy_file": "POLICY_FILE read_policy",
            "record": "ALARM_EVENT LeakAlarm acknowledge_alarm list_alarms read_standings",
            "rules": "ALL_RULES BP DAYS_OF_TURNOVER RULES TOTAL_RULES VOLUME_PARTS RuleCheck SignalChange",
            "signal": "UNITS_PER_BP UNITS_PER_EQUITY RiskError Signal",
            "sizing": "SizedBook Sizing measure_doubt size_book",
            "standing": "SEPARATOR Standing list_ids",
            "state": "AssetFacts BookState MAX_SESSIONS MODES Mode",
            "units": "LIMIT_UNITS RULE_UNITS",
        },
    )
