"""What an empty list of accepted factors shows, and no more than that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figures import plural

if TYPE_CHECKING:
    from ...evaluation.closing import Results

__all__ = ["describe_empty_result", "describe_reused"]

BOUND_SENTENCE = "The section above says how strong a factor would have had to be."


def describe_empty_result(results: Results) -> str:
    """Return what was and was not shown by a run that accepted nothing: only what had a trial met the selection days."""
    trials, reused = results.trials, results.looks_reused
    if not trials and not reused:
        return (
            "No factor was accepted, because nothing met the selection days: no trial was spent. "
            "Whether any of what was tried could be told from chance there was not asked."
        )
    met = plural(trials, "trial") + (f" and {plural(reused, 'verdict')} from an earlier run's look" if reused else "")
    return (
        f"No factor was accepted. That is a result: of what met the selection days ({met}), nothing could be told from "
        f"chance after {plural(trials + results.prior_trials, 'look')} at them. The rest of what was tried was never looked "
        f"at there. {BOUND_SENTENCE}"
    )


def describe_reused(results: Results) -> str:
    """Return how many verdicts came from a look that an earlier run had taken, if any did."""
    reused = results.looks_reused
    if not reused:
        return ""
    return f"{plural(reused, 'verdict was', 'verdicts were')} answered from an earlier run's look, without a new trial."
