"""Draw the curves of cost and quality, and the ways that are one point each."""

from __future__ import annotations

from alphaloom.desk.report.svg import Scale, element
from bench.router.curve import Ends
from bench.router.measured import CASCADE, ORACLE, SHIPPED, THEN_CASCADE, Measured
from bench.router.scorers import ROUTER

__all__ = ["draw"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 780.0, 440.0, 56.0, 220.0, 48.0, 50.0
INKS = {ROUTER: "#0969da", ORACLE: "#1f883d", "chance": "#8c959f", "length": "#bf8700", "nearest prompts": "#8250df",
        "factorisation": "#cf222e", "TF-IDF + LR": "#953800", "embedding + LR": "#bf3989",
        "router, embedding": "#1b7c83"}  # fmt: skip  # a table
CASCADES = (ROUTER, "chance", ORACLE)
"""Of whom the curve with a cascade is drawn, dashed; the others' lie between the first two."""
LABELS = {SHIPPED: (12.0, 34.0, "start"), THEN_CASCADE: (-10.0, -22.0, "end"), "always cascade": (-12.0, -4.0, "end")}
"""Where the words beside a point stand, away from all lines."""
STYLE = """
text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}.small{font-size:12px;fill:#59636e}
.grid{stroke:#d1d9e0}polyline{fill:none;stroke-width:2}.dashed{stroke-dasharray:5 3}.point{fill:#59636e}
.label{font-size:12px;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#3d444d}.point{fill:#9198a1}.label{stroke:#0d1117}}
"""
POINTS = 120
"""Of a curve that are drawn."""


def draw(measured: Measured) -> str:
    """Return a whole SVG file."""
    across, up = Scale(0.0, 1.0, LEFT, WIDTH - RIGHT), Scale(0.0, 1.05, HEIGHT - BOTTOM, TOP)
    title = "Quality recovered (0 % always-local, 100 % always-frontier) by cost"
    body = [element("style", STYLE), element("text", title, x=12.0, y=24.0, font_weight="600"), *_grid(across, up)]
    replay, weights = measured.replay, measured.replay.weights(measured.once)
    ends = Ends.of(replay.table, weights)
    dashed = {name: replay.cascaded[name] for name in (cascade + CASCADE for cascade in CASCADES)}
    lines = list(enumerate({**replay.curves, **dashed}.items()))
    for place, (name, curve) in reversed(lines):  # the router is drawn last, on top
        costs, right = curve.line(weights)
        step = max(1, len(costs) // POINTS)
        told = zip(costs[::step] / ends.frontier[0], ends.recovered(right[::step]), strict=True)
        line = " ".join(f"{across(float(x)):.1f},{up(float(y)):.1f}" for x, y in told)
        kind, ink = "dashed" if CASCADE in name else None, INKS[name.removesuffix(CASCADE)]
        body.append(element("polyline", points=line, stroke=ink, class_=kind))
        row = TOP + 12 + 22 * place
        body.append(
            element(
                "polyline", points=f"{WIDTH - RIGHT + 14},{row} {WIDTH - RIGHT + 38},{row}", stroke=ink, class_=kind
            )
        )
        body.append(element("text", name, x=WIDTH - RIGHT + 44, y=row + 4))
    for name, (aside, down, anchor) in LABELS.items():
        saved, recovered = replay.place(name, measured.once)
        x, y = across(1.0 - saved), up(recovered)
        body += [
            element("circle", cx=x, cy=y, r=4.0, class_="point"),
            element("text", name, x=x + aside, y=y + down, text_anchor=anchor, class_="label"),
        ]
    size = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "".join([opening, element("title", title), *body, "</svg>\n"])


def _grid(across: Scale, up: Scale) -> list[str]:
    found = []
    for tenth in range(0, 11, 2):
        x, y = across(tenth / 10), up(tenth / 10)
        found.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        found.append(element("text", f"{tenth * 10}%", x=LEFT - 8, y=y + 4, text_anchor="end", class_="small"))
        found.append(
            element("text", f"{tenth * 10}%", x=x, y=HEIGHT - BOTTOM + 18, text_anchor="middle", class_="small")
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    found.append(
        element("text", "cost, of always-frontier's", x=middle, y=HEIGHT - 10, text_anchor="middle", class_="small")
    )
    return found
