"""The times of a running OpenAI-compatible server, measured with a bounded number of requests, beside a plan's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .client import ServerClient as ServerClient
    from .levels import (
        Measurement as Measurement,
        MeasurementTerms as MeasurementTerms,
        compare_plan as compare_plan,
        measure_server as measure_server,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "client": "ServerClient",
            "levels": "Measurement MeasurementTerms compare_plan measure_server",
        },
    )
