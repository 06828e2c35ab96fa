"""Draw recall and correlation of each method: a dot at the median, a line from the lowest seed to the highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alphaloom.desk.report.svg import Scale, element

from .table import figures, median

__all__ = ["draw"]

WIDTH, LEFT, BETWEEN, TOP, STEP, BOTTOM = 820.0, 220.0, 36.0, 64.0, 28.0, 34.0
STYLE = """
text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}.small{font-size:12px;fill:#59636e}
.grid{stroke:#d1d9e0}.own{stroke:#0969da;fill:#0969da}.other{stroke:#59636e;fill:#59636e}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#3d444d}
.own{stroke:#4493f8;fill:#4493f8}.other{stroke:#9198a1;fill:#9198a1}}
"""
PANELS = (("recall", "Recall of planted alphas"), ("correlation", "Correlation with the expected return"))


def draw(rows: Mapping[str, Sequence[Mapping[str, Any]]], own: str) -> str:
    """Return a whole SVG file; `own` names the method that is drawn in colour."""
    height = TOP + STEP * len(rows) + BOTTOM
    wide = (WIDTH - LEFT - 2 * BETWEEN) / 2
    body = [element("style", STYLE), element("text", "What each search finds", x=12.0, y=24.0, font_weight="600")]
    for place, (key, title) in enumerate(PANELS):
        start = LEFT + place * (wide + BETWEEN)
        body += axis(Scale(0.0, 1.0, start, start + wide), title, height)
        for line, (name, found) in enumerate(rows.items()):
            ink = "own" if name == own else "other"
            body += mark(
                Scale(0.0, 1.0, start, start + wide),
                TOP + STEP * (line + 0.5),
                [figures(row)[key] for row in found],
                ink,
            )
            if place == 0:
                body.append(element("text", name, x=LEFT - 14, y=TOP + STEP * (line + 0.5) + 4, text_anchor="end"))
            body.append(element("title", f"{name}: {title.lower()} {median(found, key):.2f}"))
    size = f'viewBox="0 0 {WIDTH:.0f} {height:.0f}" width="{WIDTH:.0f}" height="{height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">' + "".join(body) + "</svg>\n"


def axis(across: Scale, title: str, height: float) -> list[str]:
    """Return the grid of one half with its title and numbers."""
    found = [element("text", title, x=across(0.0), y=TOP - 14)]
    for fifth in range(6):
        x = across(fifth / 5)
        found.append(element("line", x1=x, x2=x, y1=TOP, y2=height - BOTTOM, class_="grid"))
        found.append(
            element("text", f"{fifth / 5:.1f}", x=x, y=height - BOTTOM + 18, text_anchor="middle", class_="small")
        )
    return found


def mark(across: Scale, y: float, values: Sequence[float], ink: str) -> list[str]:
    """Return the line over all seeds and the dot at their median."""
    low, high = (min(max(bound, 0.0), 1.0) for bound in (min(values), max(values)))
    middle = (
        sorted(values)[len(values) // 2] if len(values) % 2 else sum(sorted(values)[len(values) // 2 - 1 :][:2]) / 2
    )
    line = element("line", x1=across(low), x2=across(high), y1=y, y2=y, stroke_width=2.0, class_=ink)
    return [line, element("circle", cx=across(min(max(middle, 0.0), 1.0)), cy=y, r=5.0, class_=ink)]
