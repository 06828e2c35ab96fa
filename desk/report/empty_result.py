"""What an empty list of accepted factors shows, and no more than that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..figures import plural

__all__ = ["describe_empty_result", "describe_reused"]

BOUND_SENTENCE = "The section above says how strong a factor would have had to be."


def describe_empty_result(results: Mapping[str, Any]) -> str:
    """Return what was and was not shown by a run that accepted nothing: only what had a trial met the selection days."""
    trials, again = int(results.get("trials") or 0), int(results.get("looks_reused") or 0)
    if not trials and not again:
        return (
            "No factor was accepted, because nothing met the selection days: no trial was spent. "
            "Whether any of what was tried could be told from chance there was not asked."
        )
    met = plural(trials, "trial") + (f" and {plural(again, 'verdict')} from an earlier run's look" if again else "")
    looks = trials + int(results.get("prior_trials") or 0)
    return (
        f"No factor was accepted. That is a result: of what met the selection days ({met}), nothing could be told from "
        f"chance after {plural(looks, 'look')} at them. The rest of what was tried was never looked at there. {BOUND_SENTENCE}"
    )


def describe_reused(results: Mapping[str, Any]) -> str:
    """Return how many verdicts came from a look that an earlier run had taken, if any did."""
    again = int(results.get("looks_reused") or 0)
    if not again:
        return ""
    return f"{plural(again, 'verdict was', 'verdicts were')} answered from an earlier run's look, without a new trial."
