"""Write the result as text, with the sentence that says where the lead comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .environments import OWN, SKIPPED
from .measure import GROUPS, Agreement
from .result import GROUP_WORDS, Pair, Result

REASONS = {
    "KunQuant": (
        (("ts_slope", "ts_rsquare", "ts_residual"), "its running float32 sums drift"),
        (("where", "ts_count"), "a comparison with a missing value counts as false"),
        (("max", "min"), "the larger of a missing value and x is x"),
        (("ts_corr",), "a constant window has a correlation where rounding left it a variance"),
    ),
    "polars": ((("ts_corr", "ts_cov"), "float32 moments without a guard"),),
    "numpy+bottleneck": (
        (("ts_argmax", "ts_argmin"), "the newest wins a tie"),
        (("ts_skew", "ts_kurt", "ts_cov", "ts_corr"), "float32 moments without a guard"),
        (("ts_std", "ts_var", "ts_zscore"), "float32 running sums"),
    ),
}
"""For each rival the operators whose meaning or rounding differs, first match wins."""
NEAR_TIES = "near-ties that float32 orders by chance"


def lines(result: Result, formulas: dict[str, str], operators: dict[str, set[str]]) -> Iterator[str]:
    """Yield the whole report, line by line."""
    yield from _head(result, formulas)
    yield from _pairs(result)
    yield from _peaks(result)
    yield from _agreement(result, operators)
    yield from _operators(result)
    yield from _search(result)
    yield from _threads(result)
    yield f"\n{lead(result)}"


def table(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield rows as aligned text: the first column to the left, numbers to the right."""
    words = [[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    wide = [max(len(row[column]) for row in words) for column in range(len(words[0]))]
    for row in words:
        yield "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()


def _head(result: Result, formulas: dict[str, str]) -> Iterator[str]:
    yield f"{result.days} days x {result.names} names, float32, 1 % missing; {result.machine}"
    yield f"median of {result.repeats} repeats in turns, one thread; load {result.load[0]:.1f}"
    for form, count in result.nodes.items():
        yield (
            f"operator nodes {form}: {count['trees']} in trees, {count['distinct']} distinct, of which"
            f" {count['ranks']} are cross-sectional ranks ({100 * count['share']:.1f} %)"
        )
    yield ""
    yield from (f"{name}  {text}" for name, text in formulas.items())


def _pairs(result: Result) -> Iterator[str]:
    yield "\nCPU seconds, the same formulas on both sides; ratio = rival / alphaloom"
    rows: list[Sequence[object]] = [("", "factors", "alphaloom", "rival", "ratio", "before the first run")]
    for pair in result.pairs:
        for group in GROUPS:
            rows.append(
                (
                    f"{pair.rival}, {GROUP_WORDS[group]}",
                    pair.factors[group],
                    f"{pair.own[group]:.3f}",
                    f"{pair.other[group]:.3f}",
                    f"{pair.ratio(group):.1f}",
                    f"{pair.compiled.get(group, 0.0):.2f}",
                )
            )
    yield from table(rows)
    if result.pairs:
        first = result.pairs[0]
        speed = first.factors["all"] / first.own["all"]
        yield (
            f"alphaloom computes {speed:.0f} factors a second and core, once it has read them, "
            f"which takes {first.read:.2f} s"
        )
    for pair in result.pairs:
        for name, reason in pair.left_out.items():
            yield f"left out beside {pair.rival}: {name} ({reason})"
    for name, reason in {**result.skipped, **SKIPPED}.items():
        yield f"not run: {name} ({reason})"


def _peaks(result: Result) -> Iterator[str]:
    if result.peaks:
        yield "\nmost memory of a fresh process that only computes all of them (and holds the results, unless streamed)"
        yield from table([(name, f"{size / 1e6:.0f} MB") for name, size in result.peaks.items()])


def _agreement(result: Result, operators: dict[str, set[str]]) -> Iterator[str]:
    if not result.agreement:
        return
    yield (
        "\nagreement with pandas in float64: cells within 1e-3 of the day's standard deviation, "
        "and cells missing in both"
    )
    for name, found in result.agreement.items():
        apart = {factor: each for factor, each in found.items() if not each.full}
        yield f"{name}: {len(found) - len(apart)} of {len(found)} factors in more than 99.99 % of cells"
        for factor, each in apart.items():
            yield f"  {factor}  values {100 * each.values:.2f} %  gaps {100 * each.gaps:.2f} %  " + reason(
                name, operators[factor], each
            )


def reason(engine: str, used: set[str], found: Agreement) -> str:
    """Say why values differ, as far as the operators tell."""
    causes = (cause for start, known in REASONS.items() if engine.startswith(start) for cause in known)
    for names, why in causes:
        if used & set(names) and (found.gaps < 0.99 or "drift" in why or "moments" in why or "sums" in why):
            return why
    return NEAR_TIES if used & {"rank", "ts_rank", "ts_corr"} else ""


def _operators(result: Result) -> Iterator[str]:
    if result.operators:
        yield "\none operator alone, ns a cell"
        names = list(next(iter(result.operators.values())))
        yield from table(
            [
                ("", *names),
                *(
                    (text, *(f"{found.get(name, float('nan')):.2f}" for name in names))
                    for text, found in result.operators.items()
                ),
            ]
        )


def _search(result: Result) -> Iterator[str]:
    for cost in result.search:
        yield f"\nsearch by {cost.kind}: CPU ms a child; {100 * cost.known:.0f} % of its nodes are its parents'"
        rows: list[Sequence[object]] = [
            ("alphaloom, one by one", cost.own["single"]),
            ("alphaloom, in batches", cost.own["batch"]),
            ("alphaloom, in batches, parents cached", cost.own["cached"]),
        ]
        words = {"single": "one by one", "batch": "in batches"}
        rows += [
            (f"KunQuant, {words[name]}: compile {compiled:.0f} + run {ran:.1f}", compiled + ran)
            for name, (compiled, ran) in cost.rival.items()
        ]
        yield from table(rows)
        if cost.rival:
            yield f"KunQuant in batches, compiling included, takes {cost.ratio:.0f} times as long"


def _threads(result: Result) -> Iterator[str]:
    if result.threads:
        one, two = result.threads[1], result.threads[2]
        yield f"\nwall seconds, all factors: {one:.3f} on one thread, {two:.3f} on two, {one / two:.2f} times as fast"
        yield f"(load of the machine before: {result.load[0]:.1f}; two threads gain only where two cores are free)"


def lead(result: Result) -> str:
    """Say how far ahead alphaloom is of the fastest rival, and which part of the work that comes from."""
    best = result.pair("KunQuant")
    if best is None or not result.ranks:
        return "The race against KunQuant was not run: nothing is said about the lead."
    gap = best.other["all"] - best.own["all"]
    ranks = _rank_seconds(result, best)
    series, ahead = best.other["ts"] - best.own["ts"], result.best("KunQuant", "ts")
    text = (
        f"All {best.factors['all']} factors take KunQuant {result.best('KunQuant', 'all'):.1f} times the CPU seconds of"
        " alphaloom, its compiling not counted; "
        f"{100 * ranks / gap:.0f} % of the difference are its cross-sectional ranks"
    )
    if ahead > 1:
        text += f" and {100 * series / gap:.0f} % the time-series factors, where alphaloom leads {ahead:.1f} times."
    else:
        text += f"; on time-series factors alone alphaloom does not lead ({ahead:.1f} times)."
    if result.search and result.search[0].rival:
        shares = [cost.rival["batch"][0] / sum(cost.rival["batch"]) for cost in result.search]
        text += (
            f" In a search KunQuant takes {min(cost.ratio for cost in result.search):.0f} times as long, and"
            f" {100 * sum(shares) / len(shares):.0f} % of that is compiling, which alphaloom does not do."
        )
    return text


def _rank_seconds(result: Result, best: Pair) -> float:
    """Return how much longer all distinct ranks take the rival, from the cost of one."""
    return (result.ranks[best.rival] - result.ranks[OWN.name]) * float(result.nodes["as written"]["ranks"])
