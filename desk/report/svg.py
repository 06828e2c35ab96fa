"""The elements of SVG that the report's charts use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

TICKS = 4


def element(name: str, text: str | None = None, /, **attributes: object) -> str:
    """Return one element; text and attributes are escaped, `_` becomes `-` and a trailing `_` is dropped."""
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    opening = "".join(f' {key}="{escape(_format_short(value))}"' for key, value in pairs)
    return f"<{name}{opening}/>" if text is None else f"<{name}{opening}>{escape(text)}</{name}>"


def drawing(width: float, height: float, label: str, body: Sequence[str]) -> str:
    """Return a whole picture that scales with its container and has its label as a title."""
    opening = (
        f'<svg viewBox="0 0 {_format_short(width)} {_format_short(height)}" role="img" aria-label="{escape(label)}">'
    )
    return "".join([opening, element("title", label), *body, "</svg>"])


def path_data(points: Sequence[tuple[float, float]], *, close: bool = False) -> str:
    """Return the `d` of a line through the points, to a tenth of a pixel."""
    steps = " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"M{steps}{'Z' if close else ''}"


def nice_ticks(low: float, high: float) -> list[float]:
    """Return about `TICKS` round numbers that lie within [low, high]."""
    if not high > low:
        return [low]
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


@dataclass(frozen=True)
class Scale:
    """A straight map of [low, high] onto [start, stop] pixels."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; the middle for a scale without extent."""
        if self.high == self.low:
            return (self.start + self.stop) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


@dataclass(frozen=True)
class Frame:
    """The picture's size and the margins around its plotting area, in pixels."""

    width: float
    height: float
    left: float = 50.0
    right: float = 10.0
    top: float = 12.0
    bottom: float = 22.0

    def across(self, low: float, high: float) -> Scale:
        """Return the scale from left to right."""
        return Scale(low, high, self.left, self.width - self.right)

    def upward(self, low: float, high: float) -> Scale:
        """Return the scale from bottom to top."""
        return Scale(low, high, self.height - self.bottom, self.top)


def _format_short(value: object) -> str:
    """Return a number to a tenth of a pixel without trailing zeros; anything else as `str`."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
