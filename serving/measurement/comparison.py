"""A plan's times beside the measured ones, at the lengths that were measured."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from ..choice import choose_launch, compute_mid_reply_length
from ..devices import Device
from ..errors import ServingError
from ..memory import MemoryBudget
from ..request import Request
from ..speed import estimate_first_token, estimate_output_step
from .levels import LevelTimes, Measurement

COMPARED = ("time_to_first_token_ms", "per_token_ms", "tokens_per_second")


def compare_plan(measured: Measurement, request: Request, device: Device, at: datetime) -> dict[str, Any]:
    """Return a measurement as one JSON object, with the plan's figure beside each.

    The device is what the caller says: a server does not tell it. The plan's times are those of prompts that arrive
    together and are read one after the other, nothing cached and nobody else served.
    """
    budget = choose_launch(request, device).budget
    levels = []
    for level in measured.levels:
        row = asdict(level)
        times = {name: row.pop(name) for name in COMPARED}
        levels.append(row | {"measured": times, "planned": _plan_level(level, request, device, budget)})
    return {
        "measured_at": at.isoformat(timespec="seconds"),
        "address": measured.address,
        "server": asdict(measured.server) | {"model": measured.model},
        "device": {"name": device.name, "title": device.title, "count": budget.gpus, "told_by": "the caller"},
        "plan": {"model": request.model.name, "precision": budget.precision},
        "seconds": round(measured.seconds, 1),
        "levels": levels,
        "notes": list(measured.notes),
    }


def _plan_level(level: LevelTimes, request: Request, device: Device, budget: MemoryBudget) -> dict[str, float]:
    """Return the plan's times at one number of streams, whose prompts are read one after the other."""
    asked = _take_lengths(level, request)
    first = estimate_first_token(asked, device, budget).total_s
    step = estimate_output_step(asked.model, device, budget, compute_mid_reply_length(asked), level.streams).total_s
    whole = level.streams * first + max(0, asked.reply_tokens - 1) * step
    figures = (first * (level.streams + 1) / 2 * 1e3, step * 1e3, level.streams * asked.reply_tokens / whole)
    return dict(zip(COMPARED, (round(figure, 2) for figure in figures), strict=True))


def _take_lengths(level: LevelTimes, request: Request) -> Request:
    """Return the request with the measured lengths; as it is where the context does not hold them."""
    prompt, reply = level.prompt_tokens or request.prompt_tokens, level.reply_tokens or request.reply_tokens
    try:
        return replace(request, prompt_tokens=prompt, reply_tokens=reply, recorded=None)
    except ServingError:
        return request
