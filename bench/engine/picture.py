"""Draw the ratios as bars, on paper light or dark."""

from __future__ import annotations

import math

from alphaloom.desk.report.svg import Scale, element

from .report import lead
from .result import Result

WIDTH, ROW, LEFT, RIGHT, TOP = 760.0, 26.0, 300.0, 60.0, 64.0
STYLE = """
text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.small{font-size:12px;fill:#59636e}.bar{fill:#0969da}.one{stroke:#59636e;stroke-dasharray:3 3}.grid{stroke:#d1d9e0}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.bar{fill:#4493f8}.one{stroke:#9198a1}
.grid{stroke:#3d444d}}
"""


def bars(result: Result) -> list[tuple[str, float]]:
    """Return what is drawn: words and ratio."""
    found: list[tuple[str, float]] = []
    if best := result.pair("KunQuant"):
        counts = best.factors
        words = {
            "ts": f"{counts['ts']} time-series factors",
            "cs": f"{counts['cs']} cross-section factors",
            "all": f"all {counts['all']} factors",
        }
        found += [(f"KunQuant, {words[group]}", result.best("KunQuant", group)) for group in words]
        found += [(f"KunQuant, search by {cost.kind}, compiling", cost.ratio) for cost in result.search if cost.rival]
    for start in ("numpy+bottleneck", "polars", "pandas"):
        if pair := result.pair(start):
            found.append((f"{start}, all {pair.factors['all']} factors", pair.ratio("all")))
    return found


def draw(result: Result) -> str:
    """Return a whole SVG file."""
    shown = bars(result)
    height = TOP + ROW * len(shown) + 34
    top = max([ratio for _, ratio in shown], default=10.0)
    scale = Scale(0.0, math.log10(max(top, 10.0)), LEFT, WIDTH - RIGHT)
    title = "CPU time of other engines, in multiples of alphaloom's"
    body = [element("style", STYLE), element("text", title, x=12.0, y=24.0, font_weight="600")]
    about = (
        f"{result.days} days x {result.names} names, one thread, same run; longer bar: "
        "alphaloom leads by more (log scale)"
    )
    body.append(element("text", about, x=12.0, y=44.0, class_="small"))
    bottom = TOP + ROW * len(shown)
    for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        if tick <= top:
            x = scale(math.log10(tick))
            body.append(element("line", x1=x, x2=x, y1=TOP - 6, y2=bottom, class_="one" if tick == 1 else "grid"))
            body.append(element("text", f"{tick}x", x=x, y=bottom + 18, text_anchor="middle", class_="small"))
    for place, (words, ratio) in enumerate(shown):
        body += _bar(words, ratio, TOP + ROW * place, scale)
    label = f"{title}. " + "; ".join(f"{words}: {ratio:.1f}" for words, ratio in shown)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" '
        f'width="{WIDTH:.0f}" height="{height:.0f}" role="img">'
    )
    return "".join([opening, element("title", label), element("desc", lead(result)), *body, "</svg>\n"])


def _bar(words: str, ratio: float, y: float, scale: Scale) -> list[str]:
    start, stop = scale(0.0), scale(math.log10(max(ratio, 0.1)))
    shown = f"{ratio:.1f}x" if ratio < 20 else f"{ratio:.0f}x"
    return [
        element("text", words, x=LEFT - 10, y=y + 15, text_anchor="end"),
        element(
            "rect", x=min(start, stop), y=y + 2, width=max(abs(stop - start), 1.0), height=ROW - 8, rx=2.0, class_="bar"
        ),
        element("text", shown, x=max(start, stop) + 6, y=y + 15),
    ]
