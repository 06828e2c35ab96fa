"""A person's own agent at work: what it is shown, what becomes of what it says, and of what goes wrong."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError

from ..protocols import Json, SearchContext
from .own import OwnReply, View, deep_freeze

__all__ = ["ask_own_agent"]

MAX_FAILURE_CHARS = 500
"""Characters that are kept of an error."""


async def ask_own_agent(desk: SearchContext, key: str, count: int, context: Json) -> list[Json]:
    """Return the hypotheses of the person's own agent, kept in the journal under the key; none where it failed.

    Parameters
    ----------
    context
        What the Idea agent is told in the same round; a program is told it whole, numbers with all their digits and operators
        with their signatures.
    """
    view = _view(desk, key, count, context)

    async def produce() -> Json:
        try:
            said = await asyncio.wait_for(desk.guest(view), desk.steer.agent_timeout_s)
            reply = OwnReply.model_validate(said)
        except ValidationError as error:
            return {"failed": _describe_mistakes(error)}
        except TimeoutError:
            return {"failed": f"no answer within {desk.steer.agent_timeout_s:g} seconds (steer.agent_timeout_s)"}
        except Exception as error:  # noqa: BLE001 - a person's code may raise anything; it costs this round's hypotheses
            return {"failed": f"{type(error).__name__}: {error}"[:MAX_FAILURE_CHARS]}
        return reply.model_dump(mode="json")

    kept = await desk.once("own_agent", key, produce)
    if "failed" in kept:
        desk.progress("own_agent", {"round": context["request"]["round"], "failed": kept["failed"]})
    return list(kept.get("hypotheses", []))[:count]


def _view(desk: SearchContext, key: str, count: int, context: Json) -> View:
    steer, spoken = desk.steer, context["language"]
    return View(
        key=key,
        seed=desk.seed_for(f"{key}/own"),
        round=context["request"]["round"],
        count=count,
        horizon_days=desk.horizon_days,
        goal=steer.goal,
        avoid=steer.avoid,
        focus=steer.focus,
        fields=tuple(spoken["fields"]),
        groups=tuple(spoken["groups"]),
        operators=tuple(str(each) for each in spoken["operators"]),
        record=deep_freeze(context["record"]),
    )


def _describe_mistakes(error: ValidationError) -> str:
    """Return pydantic's mistakes in a line."""
    told = [f"{'.'.join(map(str, each['loc'])) or 'reply'}: {each['msg']}" for each in error.errors(include_url=False)]
    return "; ".join(told)[:MAX_FAILURE_CHARS]
