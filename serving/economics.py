"""Power, energy and price of a launch: makers' power limits, assumed shares of them, and a price that is given."""

from __future__ import annotations

from dataclasses import dataclass

from .assumptions import POWER_SHARE_FULL, POWER_SHARE_SINGLE
from .devices import Device
from .memory import MemoryBudget
from .request import Request
from .speed import estimate_first_token, estimate_output_step

HOUR_S, MILLION = 3600.0, 1e6


@dataclass(frozen=True)
class Economics:
    """What one launch draws and costs at full load; None where a figure it needs is not known."""

    tokens_per_second: float
    """Tokens out a second at full load, with the reading of their prompts."""
    watts_single: float | None
    """Power of all GPUs with one sequence, in W."""
    watts_full: float | None
    """Power of all GPUs at full load, in W."""
    usd_per_hour: float | None
    """Price of all GPUs, in USD an hour."""

    @property
    def joules_per_token(self) -> float | None:
        """Return J for each token out, which is MJ per million tokens."""
        return None if self.watts_full is None else self.watts_full / self.tokens_per_second

    @property
    def usd_per_million(self) -> float | None:
        """Return USD per million tokens out."""
        if self.usd_per_hour is None:
            return None
        return self.usd_per_hour / (self.tokens_per_second * HOUR_S) * MILLION


def estimate_economics(request: Request, device: Device, budget: MemoryBudget, length: float) -> Economics:
    """Return power, energy and price of one launch whose sequences are `length` tokens long in the middle of a reply.

    While its sequences generate a reply each, the launch also reads a prompt for each of them: none is cached.
    """
    step = estimate_output_step(request.model, device, budget, length, budget.sequences).total_s
    prompts = budget.sequences * estimate_first_token(request, device, budget).total_s
    rate = budget.sequences * request.reply_tokens / (prompts + request.reply_tokens * step)
    limit = None if device.watts is None else device.watts * budget.gpus
    price = request.usd_per_hour
    return Economics(
        rate,
        None if limit is None else limit * POWER_SHARE_SINGLE,
        None if limit is None else limit * POWER_SHARE_FULL,
        None if price is None else price * budget.gpus,
    )
