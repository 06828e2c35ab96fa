"""The facts of a policy and of its differences from another, for tables and programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DeskError

if TYPE_CHECKING:
    from ....risk import Policy, PolicyChange

SHIPPED_POLICY = "the shipped policy"


def read_today() -> date:
    """Return the present day, in UTC."""
    return datetime.now(UTC).date()


def read_policy_file(file: Path) -> Policy:
    """Return the policy of a file that a person names.

    Raises
    ------
    SettingsError
        With every mistake of the file and its line.
    """
    from ....ledger import read_settings
    from ....risk import Policy

    if not file.exists():
        raise DeskError(
            f"There is no policy file {file}.",
            field="FILE",
            allowed="a YAML file of limits, such as single_name_cap_bp: 500",
            hint="alphaloom risk policy check, without a file, shows every limit.",
            code="no_policy",
        )
    return read_settings(file, Policy)


def load_policy(file: Path | None, workspace: Path) -> tuple[Policy, str]:
    """Return a policy with its source: a file, the workspace's file, or empty for the shipped one."""
    from ....risk import POLICY_FILE, read_policy

    if file is not None:
        return read_policy_file(file), str(file)
    there = workspace / POLICY_FILE
    return read_policy(workspace), str(there) if there.exists() else ""


def describe_policy(policy: Policy, source: str, today: date) -> dict[str, Any]:
    """Return a policy as plain facts: each limit with its unit and the shipped value, and the exceptions."""
    from ....risk import LIMIT_UNITS, PEOPLE_RULES, Policy, RiskLimits, compare_policies, digest_policy

    shipped = Policy()
    changes = {one.name: one.change for one in compare_policies(policy, shipped)}
    limits = [
        {
            "limit": name,
            "value": tell_value(getattr(policy, name)),
            "unit": LIMIT_UNITS[name],
            "meaning": info.description,
            "shipped": tell_value(getattr(shipped, name)),
            "change": changes.get(name),
        }
        for name, info in RiskLimits.model_fields.items()
    ]
    exceptions = [
        {
            **one.model_dump(mode="json"),
            "days_left": max((one.until - today).days, 0),
            "expired": today > one.until,
        }
        for one in sorted(policy.exceptions, key=lambda one: (one.until, one.evidence, one.rule))
    ]
    return {
        "file": source or None,
        "digest": digest_policy(policy),
        "day": today.isoformat(),
        "limits": limits,
        "people": {name: getattr(policy, name) for name in PEOPLE_RULES},
        "exceptions": exceptions,
    }


def describe_changes(changes: Sequence[PolicyChange], first: str, second: str) -> dict[str, Any]:
    """Return the differences of two policies as plain facts."""
    from ....risk import LIMIT_UNITS

    rows = [
        {
            "name": one.name,
            "change": one.change,
            "first": tell_value(one.own),
            "second": tell_value(one.other),
            "unit": LIMIT_UNITS.get(one.name, ""),
        }
        for one in changes
    ]
    return {"first": first, "second": second, "equal": not rows, "changes": rows}


def tell_value(value: Any) -> Any:
    """Return a value of a policy as JSON has it."""
    if isinstance(value, tuple):
        return list(value)
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
