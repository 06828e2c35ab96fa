"""Draw how often a factor is accepted against its true RankIC, one line a variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alphaloom.desk.report.svg import Scale, element

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760.0, 420.0, 56.0, 236.0, 56.0, 46.0
INKS = ("#8c959f", "#bf8700", "#cf222e", "#8250df", "#1f883d", "#0969da", "#0a3069")
STYLE = """
text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}.small{font-size:12px;fill:#59636e}
.grid{stroke:#d1d9e0}.goal{stroke:#59636e;stroke-dasharray:4 3}polyline{fill:none;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#3d444d}.goal{stroke:#9198a1}}
"""


def draw(grid: Sequence[float], shares: Mapping[str, Sequence[float]]) -> str:
    """Return a whole SVG file: `shares` gives each variant's acceptance at each RankIC of `grid`."""
    across, up = Scale(0.0, max(grid), LEFT, WIDTH - RIGHT), Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    title = "Accepted as the tenth trial, by true RankIC"
    body = [element("style", STYLE), element("text", title, x=12.0, y=24.0, font_weight="600")]
    for tenth in range(0, 11, 2):
        y = up(tenth / 10)
        body.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="goal" if tenth == 8 else "grid"))
        body.append(element("text", f"{tenth * 10}%", x=LEFT - 8, y=y + 4, text_anchor="end", class_="small"))
    for value in grid:
        body.append(
            element("text", f"{value:.2f}", x=across(value), y=HEIGHT - 24, text_anchor="middle", class_="small")
        )
    body.append(element("text", "RankIC with the raw five-day return", x=LEFT, y=HEIGHT - 6, class_="small"))
    for place, (name, line) in enumerate(shares.items()):
        ink, y = INKS[place % len(INKS)], TOP + 12 + 22 * place
        points = " ".join(f"{across(x):.1f},{up(share):.1f}" for x, share in zip(grid, line, strict=True))
        body.append(element("polyline", points=points, stroke=ink))
        body.append(
            element("line", x1=WIDTH - RIGHT + 14, x2=WIDTH - RIGHT + 36, y1=y, y2=y, stroke=ink, stroke_width=3.0)
        )
        body.append(element("text", name, x=WIDTH - RIGHT + 42, y=y + 4))
    size = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "".join([opening, element("title", title), *body, "</svg>\n"])
