"""The measurement of a running model server beside its plan, for `alphaloom models plan --measure`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console import stderr_console, stdout_console
from .gate import parse_server_url

if TYPE_CHECKING:
    from ....serving import Device, Request

__all__ = ["measure", "print_measurement"]

KEY_VARIABLE = "VLLM_API_KEY"
COLUMNS = (
    ("first token, ms", "time_to_first_token_ms"),
    ("per token, ms", "per_token_ms"),
    ("tokens/s", "tokens_per_second"),
)


def measure(address: str, request: Request, device: Device, limit_s: float, out: Path | None) -> dict[str, Any]:
    """Measure the server at an address, and return its figures beside the plan's; write them as JSON if asked."""
    import json
    import time
    from datetime import UTC, datetime

    import anyio

    from ....serving.measurement import Measurement, MeasurementTerms, ServerClient, compare_plan, measure_server

    place, at = parse_server_url(address, "--measure"), datetime.now(UTC)
    terms = MeasurementTerms(
        request.prompt_tokens, request.reply_tokens, request.model.name, time_limit_s=limit_s, mark=at.isoformat()
    )

    async def ask() -> Measurement:
        key = os.environ.get(KEY_VARIABLE) or None
        async with ServerClient(place, key, time.monotonic) as client:
            return await measure_server(client, terms, time.monotonic, stderr_console().out)

    figures = compare_plan(anyio.run(ask), request, device, at)
    if out:
        out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def print_measurement(figures: dict[str, Any], out: Path | None) -> None:
    """Print the measured figures and the plan's, a row for each number of streams."""
    from rich.table import Table
    from rich.text import Text

    console, server, device = stdout_console(), figures["server"], figures["device"]
    version = f"version {server['version']}" if server["version"] else "version not told"
    title = f"Measured on {figures['measured_at']} at {figures['address']}: {server['model']}, {version}"
    console.print(Text(title, style="bold"))
    console.print(
        Text(f"The plan's figures are for {device['count']} x {device['title']}, as you said: no server tells.")
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("streams", "answered", "tokens in", "out", *(f"{title} (plan)" for title, _ in COLUMNS)):
        table.add_column(name, justify="right", no_wrap=True)
    for level in figures["levels"]:
        both = [f"{_show(level['measured'][name])} ({level['planned'][name]:,g})" for _, name in COLUMNS]
        lengths = (_show(level["prompt_tokens"]), _show(level["reply_tokens"]))
        asked = level["answered"] + level["failed"] + level["given_up"]
        table.add_row(str(level["streams"]), f"{level['answered']} of {asked}", *lengths, *both)
    console.print(table)
    for level in figures["levels"]:
        if level["first_failure"]:
            console.print(Text(f"{level['failed']} failed with {level['streams']} at once: {level['first_failure']}"))
    for note in figures["notes"]:
        console.print(Text(f"Note: {note}."))
    if out:
        stderr_console().out(f"Measurement written to {out}.")


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:,g}"
