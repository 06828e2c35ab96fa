"""A Python copy of a formula is the formula: what pandas spells out is drawn as the operators that it is."""

from __future__ import annotations

import pytest

from alphaloom.evidence.originality.catalogue import Catalogue
from alphaloom.evidence.originality.published import published_expressions, read_published
from alphaloom.factors import parse, render

from .pandas_of import Unwritten, factor_of

HEAD = "def factor(panel):\n"


def body(text: str) -> str:
    return render(parse(HEAD + "\n".join(f"    {line}" for line in text.strip().splitlines())).root)


@pytest.mark.parametrize(
    ("code", "formula"),
    [
        ('return panel["close"].shift(1)', "delay(close, 1)"),
        ('return panel["close"].shift(periods=2)', "delay(close, 2)"),
        ('return panel.get("close").diff().abs()', "abs(delta(close, 1))"),
        ('return np.log(panel["volume"]).rolling(5, min_periods=2).std()', "ts_std(log(volume), 5)"),
        ('x = panel["close"]\nx -= x.shift(3)\nreturn x', "close - delay(close, 3)"),
        ('return panel["close"].ewm(span=12).mean()', "ema(close, 12)"),
        ('return panel["close"].ewm(alpha=0.1, adjust=False).mean()', "ema(close, 19)"),
        ('return panel["close"].values[:, None] if False else panel["low"]', "low"),
        ('return panel["close"].T.rank().T', "rank(close)"),
        ('return panel["close"].rank(axis="columns", ascending=False)', "-rank(close)"),
        ('return panel["close"].apply(lambda row: row.rank(pct=True), axis=1)', "rank(close)"),
        ('return panel["close"].apply(lambda name: name.rolling(4).max())', "ts_max(close, 4)"),
        ('return panel["close"].rolling(9).apply(lambda a: a[-1] / a[0])', "close / delay(close, 8)"),
        ('return panel["close"].rolling(9).apply(lambda a: pd.Series(a).rank(pct=True).iloc[-1])', "ts_rank(close, 9)"),
        (
            'w = np.arange(1, 7)\nreturn panel["low"].rolling(6).apply(lambda a: (a * w).sum())',
            "21 * decay_linear(low, 6)",
        ),
        ('return panel["close"].where(panel["close"] > 3, panel["low"])', "where(3 < close, close, low)"),
        ('return panel["close"].mask(panel["close"] > 3, 0)', "where(3 < close, 0, close)"),
        ('return np.where(panel["close"] > 3, 1, -1)', "where(3 < close, 1, -1)"),
        ('return panel["close"].replace([np.inf, -np.inf], np.nan).to_numpy()', "close"),
        ('return pd.DataFrame(np.asarray(panel["open"]), index=None)', "open"),
        ('return sum(panel["close"].rolling(n).mean() for n in (2, 4))', "ts_mean(close, 2) + ts_mean(close, 4)"),
        (
            'def f(x, n=3):\n    return x.rolling(n).sum()\nreturn f(panel["volume"], n=5) - f(panel["volume"])',
            "ts_sum(volume, 5) - ts_sum(volume, 3)",
        ),
        ('x = panel["close"]\nif x.shape:\n    y = x * 2\nelse:\n    y = x * 2\nreturn y', "2 * close"),
        ('return panel["close"].clip(1, 2)', "min(max(close, 1), 2)"),
        ('return panel["returns"].rolling(10).corr(panel["volume"])', "ts_corr(returns, volume, 10)"),
    ],
)
def test_idioms_are_operators(code: str, formula: str) -> None:
    assert body(code) == formula


def test_what_has_no_operator_is_a_step_of_its_own() -> None:
    found = body('x = panel["close"]\nfor t in range(1, len(x)):\n    x.iloc[t] = x.iloc[t - 1] * 0.9\nreturn x')
    assert found.startswith("py.loop(")
    assert body('return np.linalg.svd(panel["close"])[0]') == "py.item(py.svd(close), 0)"
    assert body('return panel["close"].shift(-1)') == "py.lead(close, 1)"
    assert body('return panel["close"].rank()') == "py.rank_all(close)"
    assert body('return panel["close"].rolling(5, center=True).mean()').startswith("py.")


def test_published_formulas_in_pandas_are_found_to_be_what_they_are() -> None:
    catalogue, written = Catalogue((read_published(),)), 0
    for name, expression, _ in published_expressions():
        try:
            code = factor_of(expression.root)
        except Unwritten:
            continue
        written += 1
        [like] = catalogue.nearest(parse(code, fields=expression.fields), 1)
        assert like.ratio == 1.0, (name, code, like.known.text)
    assert written > 200


def test_a_loop_is_alike_where_its_numbers_are_near() -> None:
    text = """
def factor(panel):
    close = panel["close"].to_numpy()
    state, out = np.zeros(close.shape[1]), np.zeros(close.shape)
    for t in range(1, len(close)):
        state = np.where(close[t] > close[t - 1], state * {0} + 1, state * 0.5)
        out[t] = state
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
"""
    one, near, far = (parse(text.format(weight)) for weight in (0.9, 0.8, 0.09))
    known = Catalogue.of([("one", one, "here")])
    assert known.nearest(near)[0].ratio == 1.0
    assert known.nearest(far)[0].ratio < 1.0
    assert one.id != near.id
