"""Write the 158 formulas of Qlib's Alpha158: 9 shapes of the day's bar, 4 prices, and 29 rolling ones at 5 windows.

The names and formulas are those of `Alpha158DL.get_feature_config` with its default configuration, pyqlib 0.9.7.
"""

from __future__ import annotations

from collections.abc import Iterator

WINDOWS = (5, 10, 20, 30, 60)

BAR = {
    "KMID": "($close-$open)/$open",
    "KLEN": "($high-$low)/$open",
    "KMID2": "($close-$open)/($high-$low+1e-12)",
    "KUP": "($high-Greater($open, $close))/$open",
    "KUP2": "($high-Greater($open, $close))/($high-$low+1e-12)",
    "KLOW": "(Less($open, $close)-$low)/$open",
    "KLOW2": "(Less($open, $close)-$low)/($high-$low+1e-12)",
    "KSFT": "(2*$close-$high-$low)/$open",
    "KSFT2": "(2*$close-$high-$low)/($high-$low+1e-12)",
}

SPREAD = "(Max($high, {d})-Min($low, {d})+1e-12)"
RISES, FALLS = "Mean($close>Ref($close, 1), {d})", "Mean($close<Ref($close, 1), {d})"
MOVE = "Abs($close/Ref($close, 1)-1)*$volume"

ROLLING = {
    "ROC": "Ref($close, {d})/$close",
    "MA": "Mean($close, {d})/$close",
    "STD": "Std($close, {d})/$close",
    "BETA": "Slope($close, {d})/$close",
    "RSQR": "Rsquare($close, {d})",
    "RESI": "Resi($close, {d})/$close",
    "MAX": "Max($high, {d})/$close",
    "MIN": "Min($low, {d})/$close",
    "QTLU": "Quantile($close, {d}, 0.8)/$close",
    "QTLD": "Quantile($close, {d}, 0.2)/$close",
    "RANK": "Rank($close, {d})",
    "RSV": "($close-Min($low, {d}))/" + SPREAD,
    "IMAX": "IdxMax($high, {d})/{d}",
    "IMIN": "IdxMin($low, {d})/{d}",
    "IMXD": "(IdxMax($high, {d})-IdxMin($low, {d}))/{d}",
    "CORR": "Corr($close, Log($volume+1), {d})",
    "CORD": "Corr($close/Ref($close,1), Log($volume/Ref($volume, 1)+1), {d})",
    "CNTP": RISES,
    "CNTN": FALLS,
    "CNTD": f"{RISES}-{FALLS}",
    "VMA": "Mean($volume, {d})/($volume+1e-12)",
    "VSTD": "Std($volume, {d})/($volume+1e-12)",
    "WVMA": f"Std({MOVE}, {{d}})/(Mean({MOVE}, {{d}})+1e-12)",
}


def gains(field: str, prefix: str) -> dict[str, str]:
    """Return the share of gains, the share of losses and their difference, among all that the field moved."""
    up = f"Sum(Greater({field}-Ref({field}, 1), 0), {{d}})"
    down = f"Sum(Greater(Ref({field}, 1)-{field}, 0), {{d}})"
    moved = f"(Sum(Abs({field}-Ref({field}, 1)), {{d}})+1e-12)"
    shares = {"SUMP": up, "SUMN": down, "SUMD": f"({up}-{down})"}
    return {f"{prefix}{name}": f"{share}/{moved}" for name, share in shares.items()}


def formulas() -> Iterator[tuple[str, str]]:
    """Yield each name with its formula."""
    yield from BAR.items()
    yield from ((f"{field.upper()}0", f"${field}/$close") for field in ("open", "high", "low", "vwap"))
    for name, formula in (ROLLING | gains("$close", "") | gains("$volume", "V")).items():
        yield from ((f"{name}{d}", formula.replace("{d}", str(d))) for d in WINDOWS)


ALPHA158 = dict(formulas())
