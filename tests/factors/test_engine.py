"""The engine as a whole: batches, threads, the cache, the universe, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.factors.engine import warmup
from alphaloom.factors.engine.engine import Engine
from alphaloom.factors.errors import PanelLacksField, ParseError
from alphaloom.factors.language.expression import Expression
from alphaloom.factors.language.node import Node, call_node, field_node, number_node, walk
from alphaloom.factors.language.parse import parse
from alphaloom.factors.operators import OPERATORS
from alphaloom.factors.space.sampling import sample
from alphaloom.market import Panel

from . import panels, reference

FIELDS = ("close", "open", "volume", "returns")
BATCH = (
    "rank(ts_std(returns, 30)) * -1",
    "ts_corr(rank(close), rank(volume), 10)",
    "where(returns > 0, ts_mean(returns, 5), -ts_mean(returns, 5))",
    "group_demean(ts_zscore(close, 20), sector) + rank(ts_std(returns, 30))",
    "decay_linear(group_rank(delta(close, 3), sector), 8)",
    "zscore(ts_skew(returns, 25)) - winsorize(ts_residual(returns, 12) / ts_std(returns, 12), 2)",
    "ts_rank(volume, 60)",
    "signed_power(scale(demean(returns)), 0.5)",
)


def drawn(seed: int, count: int, size: int = 14) -> list[Expression]:
    rng = np.random.default_rng(seed)
    return [sample(rng, fields=FIELDS, max_size=size) for _ in range(count)]


def same_bytes(found: list[NDArray[np.float32]], expected: list[NDArray[np.float32]]) -> None:
    assert [values.tobytes() for values in found] == [values.tobytes() for values in expected]


def chained(node: Node) -> bool:
    return len(node.args) > 2 and bool(OPERATORS[node.op].many)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), flavour=st.sampled_from(panels.FLAVOURS))
def test_each_step_of_a_random_tree_agrees_with_the_reference(seed: int, flavour: str) -> None:
    panel = panels.draw(seed, 37, 6, flavour, all_members=True)
    for expression in drawn(seed, 2):
        nodes = [node for _, node in walk(expression.canonical) if not node.is_leaf and not chained(node)]
        engine = Engine(panel, threads=1)
        for node in nodes:
            args = [
                reference.leaf(arg, panel) if arg.is_leaf else engine.compute([arg])[0].astype(float)
                for arg in node.args
            ]
            expected = reference.apply(node, args, panel)
            scale = np.nanmax(np.abs(expected), initial=1.0)
            found = engine.compute([node])[0]
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * scale)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_a_random_tree_agrees_with_the_reference_whole(seed: int) -> None:
    panel = panels.draw(seed, 37, 6, "prices")
    for expression, found in zip(trees := drawn(seed, 3), Engine(panel).evaluate(trees), strict=True):
        expected = np.where(panel.universe, reference.evaluate(expression.canonical, panel), np.nan)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        close = np.isclose(
            found, expected, rtol=1e-3, atol=1e-4 * np.nanmax(np.abs(expected), initial=1.0), equal_nan=True
        )
        assert close.mean() > 0.98, expression.canonical_text  # a tie broken by the last digit may move a rank


def test_threads_cache_and_company_do_not_change_a_bit() -> None:
    panel = panels.draw(1, 120, 300, "outliers")
    batch = [*BATCH, *(expression.canonical_text for expression in drawn(5, 30))]
    plain = Engine(panel, threads=1, cache_bytes=0)
    alone = [plain.evaluate([text])[0] for text in batch]
    for engine in (
        Engine(panel, threads=2, cache_bytes=0),
        Engine(panel, threads=3),
        Engine(panel, cache_bytes=1 << 20),
    ):
        same_bytes(engine.evaluate(batch), alone)
        same_bytes(engine.evaluate(batch[::-1]), alone[::-1])


def test_equal_ids_give_equal_bytes() -> None:
    panel = panels.draw(2, 60, 9, "plain")
    one, other = parse("close * 2 + open - low"), parse("open - low + 2 * close")
    assert one.id == other.id
    same_bytes(Engine(panel).evaluate([one]), Engine(panel).evaluate([other]))


@pytest.mark.parametrize("seed", range(4))
def test_the_future_does_not_reach_the_past(seed: int) -> None:
    panel = panels.draw(seed, 90, 7, "prices")
    trees = [*drawn(seed, 12), *map(parse, BATCH)]
    seen = 50
    changed = {name: np.vstack([x[:seen], x[seen:] * 3 + 1]) for name, x in panel.fields.items()}
    other = Panel(panel.dates, panel.symbols, changed, panel.universe, panel.groups)
    before, after = Engine(panel).evaluate(trees), Engine(other).evaluate(trees)
    same_bytes([x[:seen] for x in after], [x[:seen] for x in before])
    same_bytes(Engine(panel.rows(0, seen)).evaluate(trees), [x[:seen] for x in before])


def test_an_outlier_leaves_no_trace_when_it_has_left_the_window() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 5.5e-4, (200, 3))
    x[60] = 1e6
    panel = panels.draw(0, 200, 3, "plain", all_members=True)
    panel = Panel(
        panel.dates, panel.symbols, {**panel.fields, "returns": x, "close": x[:, ::-1]}, panel.universe, panel.groups
    )
    for name in (
        "ts_mean",
        "ts_sum",
        "ts_std",
        "ts_var",
        "ts_zscore",
        "ts_skew",
        "ts_kurt",
        "ts_mad",
        "decay_linear",
        "ema",
    ):
        node = call_node(name, field_node("returns"), window=30)
        found, expected = Engine(panel).compute([node])[0][91:], reference.evaluate(node, panel)[91:]
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-9)
    for name in ("ts_corr", "ts_cov", "ts_beta"):
        node = call_node(name, field_node("returns"), field_node("close"), window=30)
        found, expected = Engine(panel).compute([node])[0][91:], reference.evaluate(node, panel)[91:]
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-12)


def test_a_constant_window_has_no_correlation_at_any_level() -> None:
    panel = panels.draw(0, 60, 4, "plain", all_members=True)
    for level in (1e-8, 1.0, 1e8):
        flat = np.full(panel.universe.shape, level * 1.1)
        other = Panel(panel.dates, panel.symbols, {**panel.fields, "open": flat}, panel.universe, panel.groups)
        values = Engine(other).evaluate(["ts_corr(returns, open, 10)", "ts_zscore(open, 10)", "ts_std(open, 10)"])
        assert np.isnan(values[0]).all()
        assert np.isnan(values[1]).all()
        assert (values[2][9:] == 0).all()


def test_cross_sections_see_only_the_universe() -> None:
    panel = panels.draw(3, 20, 8, "plain")
    outside = {name: np.where(panel.universe, x, 1e9) for name, x in panel.fields.items()}
    other = Panel(panel.dates, panel.symbols, outside, panel.universe, panel.groups)
    texts = ["rank(close)", "zscore(close)", "group_rank(close, sector)", "scale(close)", "winsorize(close, 1)"]
    same_bytes(Engine(panel).evaluate(texts), Engine(other).evaluate(texts))
    assert np.isnan(Engine(panel).evaluate(["close"])[0][~panel.universe]).all()


def test_rolling_operators_read_days_before_a_name_joined() -> None:
    panel = panels.draw(3, 30, 2, "plain", all_members=True)
    filled = {name: np.nan_to_num(x) for name, x in panel.fields.items()}
    late = Panel(panel.dates, panel.symbols, filled, np.arange(30)[:, None] >= [[20, 25]], panel.groups)
    values = Engine(late).evaluate(["ts_mean(close, 20)"])[0]
    assert np.isfinite(values[20, 0])
    assert np.isfinite(values[25, 1])
    assert np.isnan(values[:20]).all()


def test_results_are_the_callers_own() -> None:
    engine = Engine(panels.draw(4, 40, 5, "plain"))
    first = engine.evaluate(["ts_mean(close, 5)", "ts_mean(close, 5)", "close"])
    kept = [values.copy() for values in first]
    for each in first:
        each[:] = 7
    same_bytes(engine.evaluate(["ts_mean(close, 5)", "ts_mean(close, 5)", "close"]), kept)


def test_results_may_be_written_to_given_arrays() -> None:
    engine = Engine(panels.draw(4, 40, 5, "plain"))
    room = [np.full((40, 5), 7, np.float32) for _ in BATCH]
    found = engine.evaluate(BATCH, out=room)
    assert all(one is other for one, other in zip(found, room, strict=True))
    same_bytes(room, engine.evaluate(BATCH))


@pytest.mark.parametrize("wrong", [np.empty((40, 5)), np.empty((5, 40), np.float32).T, np.empty((4, 5), np.float32)])
def test_given_arrays_must_fit(wrong: NDArray[np.float32]) -> None:
    engine = Engine(panels.draw(4, 40, 5, "plain"))
    with pytest.raises(ValueError, match=r"out\[0\]` must be a writeable C-contiguous float32 array"):
        engine.evaluate(["close"], out=[wrong])
    with pytest.raises(ValueError, match="0 arrays for 1 expressions"):
        engine.evaluate(["close"], out=[])


@given(seed=st.integers(0, 99), together=st.integers(1, 7))
@settings(max_examples=10)
def test_a_stream_gives_the_same_as_a_batch(seed: int, together: int) -> None:
    engine, trees = Engine(panels.draw(seed, 40, 5, "plain"), cache_bytes=0), drawn(seed, 9)
    same_bytes(list(engine.stream(iter(trees), together=together)), engine.evaluate(trees))


def test_a_stream_reads_no_further_than_it_must() -> None:
    texts = iter(["close", "open", "ts_meen(close, 5)"])
    stream = Engine(panels.draw(0, 40, 5, "plain")).stream(texts, together=2)
    assert next(stream).shape == next(stream).shape == (40, 5)
    assert next(texts) == "ts_meen(close, 5)"
    stream = Engine(panels.draw(0, 40, 5, "plain")).stream(["ts_meen(close, 5)"])
    with pytest.raises(ParseError):
        next(stream)


@pytest.mark.parametrize(("days", "names"), [(1, 1), (1, 5), (4, 1), (0, 3), (3, 0)])
def test_tiny_panels_are_computed(days: int, names: int) -> None:
    panel = panels.draw(0, days, names, "plain")
    for found in Engine(panel).evaluate([*BATCH, "ts_mean(close, 3, min_periods=1)"]):
        assert found.shape == (days, names)


def test_a_number_is_a_factor_too() -> None:
    panel = panels.draw(0, 6, 3, "plain", all_members=True)
    found = Engine(panel).compute(
        [
            number_node(2.5),
            call_node("ts_sum", number_node(2.0), window=3),
            call_node("add", number_node(1), number_node(2)),
        ]
    )
    assert (found[0] == 2.5).all()
    assert (found[1][2:] == 6).all()
    assert (found[2] == 3).all()


def test_no_result_is_infinite() -> None:
    panel = panels.draw(0, 30, 5, "outliers")
    close, big = field_node("close"), number_node(1e30)
    trees = [
        call_node("exp", close),
        call_node("mul", close, call_node("mul", close, big)),
        call_node("ts_product", close, window=12),
    ]
    trees += [
        call_node("log", call_node("mul", close, number_node(0))),
        call_node("power", number_node(0), call_node("neg", call_node("abs", close))),
    ]
    trees += [call_node("div", close, number_node(0)), number_node(1e300)]
    for found in Engine(panel).compute(trees):
        assert not np.isinf(found).any()


def test_a_missing_column_is_named_before_any_work() -> None:
    panel = panels.draw(0, 5, 2, "plain")
    fields = {name: x for name, x in panel.fields.items() if name != "vwap"}
    engine = Engine(Panel(panel.dates, panel.symbols, fields, panel.universe))
    with pytest.raises(PanelLacksField) as caught:
        engine.evaluate(["rank(close)", "rank(vwap)"])
    assert "vwap" in str(caught.value)
    assert "derive: {vwap: typical}" in str(caught.value)
    assert "close" in str(caught.value)


def test_a_missing_grouping_is_named() -> None:
    panel = panels.draw(0, 5, 2, "plain")
    engine = Engine(Panel(panel.dates, panel.symbols, panel.fields, panel.universe))
    with pytest.raises(PanelLacksField, match="no grouping sector"):
        engine.evaluate(["group_rank(close, sector)"])


def test_a_bad_formula_is_refused_by_the_parser() -> None:
    with pytest.raises(ParseError):
        Engine(panels.draw(0, 5, 2, "plain")).evaluate(["ts_meen(close, 5)"])


def test_an_empty_batch_has_no_results() -> None:
    assert Engine(panels.draw(0, 5, 2, "plain")).evaluate([]) == []


def test_the_cache_stays_under_its_budget() -> None:
    panel = panels.draw(0, 50, 10, "plain")
    budget = 7 * 50 * 10 * 4
    engine = Engine(panel, cache_bytes=budget)
    for seed in range(4):
        engine.evaluate(drawn(seed, 10))
        assert engine.cached_bytes <= budget
    assert engine.cached_bytes > 0


def test_warming_up_tells_how_far_it_is_and_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "find_cache_folder", lambda: str(tmp_path))
    monkeypatch.setattr(warmup, "count_usable_cores", lambda: 1)
    lines: list[str] = []
    warmup.warm_up(lines.append)
    assert lines[0].startswith("compiled 1 of ")
    assert lines[-1] == f"compiled {len(lines)} of {len(lines)}"
    warmup.warm_up(lines.append)
    assert lines[-1] == f"compiled {len(lines)} of {len(lines)}"


def test_where_nothing_can_be_kept_warming_up_is_not_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "find_cache_folder", lambda: str(tmp_path / "nowhere"))
    monkeypatch.setattr(warmup, "count_usable_cores", lambda: 1)
    monkeypatch.setattr(warmup, "_steps", lambda: iter([lambda: None]))
    lines: list[str] = []
    warmup.warm_up(lines.append)
    warmup.warm_up(lines.append)
    assert lines == ["compiled 1 of 1"] * 2


@pytest.mark.parametrize(
    "text",
    [
        "power(cap / amount, 4)",
        "cap / amount * cap / amount * cap / amount * cap / amount",
        "close / amount / cap / amount / cap",
        "power(amount / ts_mean(amount, 3), 5)",
        "power(amount / 1000, 3) / power(cap, 3)",
    ],
)
def test_a_ratio_of_large_numbers_stays_in_range(text: str) -> None:
    """The canonical form has cap * cap * cap * cap above the line, which float32 cannot hold."""
    rng = np.random.default_rng(0)
    shape = (30, 40)
    fields = {name: 10 ** rng.uniform(low, low + 4, shape) for name, low in (("close", 0), ("amount", 7), ("cap", 9))}
    panel = panels.of(fields)
    expression = parse(text)
    engine = Engine(panel)
    written, canonical = engine.compute([expression.root])[0], engine.evaluate([expression])[0]
    assert np.isfinite(canonical[2:]).all()
    np.testing.assert_allclose(canonical, written, rtol=2e-6)


def test_a_negative_power_below_the_line_keeps_what_is_missing() -> None:
    panel = panels.of({"returns": np.array([[0.0, 2.0, -4.0]])})
    values = Engine(panel).evaluate(["1 / power(returns, -1)", "power(power(returns, -2), -1)"])
    np.testing.assert_array_equal(values, [[[np.nan, 2.0, -4.0]], [[np.nan, 4.0, 16.0]]])


@pytest.mark.parametrize("jump", [30, 100, 170, 300, 3000])
def test_a_level_that_jumps_costs_kurtosis_no_digits(jump: int) -> None:
    rng = np.random.default_rng(jump)
    values = rng.normal(size=(200, 8)) + np.where(np.arange(200) > 80, jump, 0)[:, None]
    values = values.astype(np.float32).astype(float)
    found = Engine(panels.of({"close": values})).evaluate(["ts_kurt(close, 20)"])[0]
    expected = pd.DataFrame(values).rolling(20).apply(lambda window: scipy.stats.kurtosis(window, bias=False), raw=True)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


def test_a_frame_has_the_values_under_days_and_symbols() -> None:
    panel = panels.draw(3, 40, 12, "plain")
    frame = Engine(panel).to_frame("ts_mean(close, 3)")
    (values,) = Engine(panel).evaluate(["ts_mean(close, 3)"])
    np.testing.assert_array_equal(frame.to_numpy(), values)
    assert (frame.index.name, frame.columns.name, list(frame.columns)) == ("date", "symbol", list(panel.symbols))
    assert (frame.index.to_numpy() == panel.dates).all()
    assert frame.stack().dropna().index.names == ["date", "symbol"]
