"""What a person asked for and brought along, and how varied the search was, in sentences for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..figures import plural

__all__ = ["collect_doubts", "describe_request", "describe_variety"]


def describe_request(results: Mapping[str, Any]) -> str:
    """Return what the campaign file asked for and brought along, empty where it left the agents alone."""
    steer, own = results.get("steer") or {}, results.get("own") or {}
    said = [f"Asked for: {steer['goal']}"] if steer.get("goal") else []
    said += [f"{word}: {', '.join(steer[key])}" for key, word in STEER_WORDS.items() if steer.get(key)]
    seeds = (own.get("seed_library") or {}).get("factors", 0)
    pages = [name for name, page in (own.get("prompts") or {}).items() if page.get("whose") == "own"]
    brought = [plural(seeds, "formula")] if seeds else []
    brought += [plural(own["hypotheses"], "hypothesis", "hypotheses")] if own.get("hypotheses") else []
    brought += [f"own pages for {', '.join(pages)}"] if pages else []
    brought += [f"the agent {own['agent']}"] if own.get("agent") else []
    said += [f"Brought along: {', '.join(brought)}"] if brought else []
    return "".join(f"{each.rstrip('.')}. " for each in said).strip()


STEER_WORDS = {"avoid": "To be avoided", "focus": "First of all", "fields": "Only the fields"}


def describe_variety(results: Mapping[str, Any]) -> str:
    """Return how many different mechanisms the search worked on, empty where that was not counted."""
    found = results.get("diversity") or {}
    if not found.get("hypotheses"):
        return ""
    said = f"{plural(found['hypotheses'], 'hypothesis', 'hypotheses')} on {plural(found['mechanisms'], 'mechanism')}"
    said += f", as varied as {found['effective']:.1f} equally frequent ones"
    if found.get("niches"):
        said += f", in {plural(found['niches'], 'niche')} of mechanism, horizon and turnover"
    refused = found.get("refused", 0)
    return said + (f"; {refused} more got no branch, most because they repeated one." if refused else ".")


def collect_doubts(entry: Mapping[str, Any]) -> Sequence[str]:
    """Return what a rule or a model doubts of a factor and its words; neither decided anything."""
    told = entry.get("alignment") or {}
    opinions = [each for each in told.get("opinions", ()) if each.get("verdict") == "doubts"]
    return [
        *told.get("doubts", ()),
        *(f"a model doubts that it says what its hypothesis says: {each['why']}" for each in opinions[-1:]),
    ]
