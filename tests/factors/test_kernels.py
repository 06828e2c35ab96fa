"""Every operator against its slow reference, on panels with gaps, ties, constants and outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.factors.engine.engine import Engine
from alphaloom.factors.language.canonical import SCALING
from alphaloom.factors.language.node import Node, call_node, field_node, group_node, number_node
from alphaloom.factors.operators import OPERATORS
from alphaloom.market import Panel

from . import panels, reference

Batches: TypeAlias = Mapping[str, Mapping[str, NDArray[np.float32]]]
WINDOWED = [name for name, operator in OPERATORS.items() if any(a.name == "window" for a in operator.numbers)]
COLUMNS = ("close", "volume", "open")
GIVEN = {
    "window": 5.0, "q": 0.3, "n": 4.0, "low": -0.5, "high": 0.75, "lag": 2.0, "fast": 2.0, "slow": 4.0, "signal": 3.0,
    "k": 1.5, "share": 0.2, "value": 0.25, "limit": 1.5,
}  # fmt: skip  # a table
"""What stands for a number that must be given."""
KEYWORDS = {"min_periods": (1, 3, 5), "ddof": (0, 1), "span": (1, 2.5, 9), "to": (0.5, 2)}
"""What stands for a keyword; of choices, every word."""
ROUGH = ("ts_skew", "ts_kurt", "ts_residual", "ts_cov", "ts_beta", "ts_slope", "ts_rsquare", "demean", "group_demean")


def step(name: str, **numbers: float) -> Node:
    """Make a node of an operator over columns, with the numbers that it must have."""
    operator = OPERATORS[name]
    columns = iter(COLUMNS)
    kinds = [argument.kind for argument in operator.nodes]
    args = [group_node("sector") if kind == "group" else field_node(next(columns)) for kind in kinds]
    given = GIVEN | numbers
    known = [argument.name for argument in operator.numbers]
    return call_node(name, *args, params={key: given[key] for key in known if key in given})


def computed(node: Node, panel: Panel, threads: int = 1) -> NDArray[np.float32]:
    """Compute one tree as it is."""
    return Engine(panel, threads=threads).compute([node])[0]


def agree(found: NDArray[np.float32], expected: NDArray[np.float64], floor: float, about: str = "") -> None:
    """Hold two panels to the same gaps and to float32 precision."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), about)
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=floor, err_msg=about)


def inside(values: NDArray[np.float64], panel: Panel) -> NDArray[np.float64]:
    return np.where(panel.universe, values, np.nan)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_a_kernel_and_a_reference_or_a_definition(name: str) -> None:
    operator = OPERATORS[name]
    assert bool(operator.compute) == bool(operator.reference) != bool(operator.definition)


def batched(names: Sequence[str]) -> Batches:
    """Compute operators on a panel of each flavour, those of one panel together."""
    nodes = [step(name) for name in names]
    found = {flavour: Engine(panels.draw(3, 43, 5, flavour), threads=1).compute(nodes) for flavour in panels.FLAVOURS}
    return {flavour: dict(zip(names, values, strict=True)) for flavour, values in found.items()}


@pytest.fixture(scope="module")
def batches() -> Batches:
    return batched(sorted(OPERATORS))


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operator_agrees_with_its_reference(
    name: str, batches: Mapping[str, Mapping[str, NDArray[np.float32]]]
) -> None:
    for flavour, found in batches.items():
        panel = panels.draw(3, 43, 5, flavour)
        expected = inside(reference.evaluate(step(name), panel), panel)
        scale = np.nanmax(np.abs(expected), initial=1.0) if name in ROUGH else 1.0
        agree(found[name], expected, 1e-6 * scale, flavour)


@given(
    name=st.sampled_from(sorted(WINDOWED)),
    flavour=st.sampled_from(panels.FLAVOURS),
    size=st.tuples(st.sampled_from([1, 2, 7, 31]), st.sampled_from([1, 3, 18])),
    window=st.sampled_from([1, 2, 3, 7, 40]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_rolling_operator_agrees_on_any_panel_and_window(
    name: str, flavour: str, size: tuple[int, int], window: int, share: float, seed: int
) -> None:
    panel = panels.draw(seed, *size, flavour)
    node = step(name, window=window, min_periods=max(1, round(share * window)))
    expected = inside(reference.evaluate(node, panel), panel)
    scale = np.nanmax(np.abs(expected), initial=1.0) if name in ROUGH else 1.0
    agree(computed(node, panel), expected, 1e-6 * scale)


def allowed(name: str) -> st.SearchStrategy[dict[str, float]]:
    """Draw a value for each keyword of an operator."""
    found: dict[str, st.SearchStrategy[float]] = {}
    for argument in OPERATORS[name].numbers:
        if argument.choices:
            found[argument.name] = st.integers(0, len(argument.choices) - 1).map(float)
        elif argument.keyword:
            found[argument.name] = st.sampled_from(KEYWORDS[argument.name])
    return st.fixed_dictionaries(found)


@given(data=st.data(), flavour=st.sampled_from(panels.FLAVOURS), seed=st.integers(0, 99))
def test_every_keyword_means_what_the_reference_says(data: st.DataObject, flavour: str, seed: int) -> None:
    name = data.draw(st.sampled_from([name for name in OPERATORS if any(a.keyword for a in OPERATORS[name].numbers)]))
    node = step(name, **data.draw(allowed(name)))
    panel = panels.draw(seed, 23, 7, flavour)
    expected = inside(reference.evaluate(node, panel), panel)
    scale = np.nanmax(np.abs(expected), initial=1.0) if name in ROUGH else 1.0
    agree(computed(node, panel), expected, 1e-6 * scale)


def released(node: Node, place: int, factor: int) -> tuple[float, Node]:
    """Return what an operator with a factor in one place is said to be: a factor, and an operator."""
    operator = OPERATORS[node.op]
    outside, held = SCALING[operator.scaling[place]](Fraction(factor))
    op = node.op
    if held < 0 and operator.mirror:
        op, held = operator.mirror, Fraction(1)
        outside = -outside if operator.scaling[place] == "mirror" else outside
    args = [call_node("neg", arg) if at == place and held < 0 else arg for at, arg in enumerate(node.args)]
    return float(outside), Node(op, tuple(args), node.params)


@pytest.mark.parametrize("factor", [4, -4])
@pytest.mark.parametrize("name", [name for name in OPERATORS if OPERATORS[name].scaling])
def test_a_constant_factor_does_what_the_operator_says(name: str, factor: int) -> None:
    panel, node = panels.draw(8, 30, 9, "plain"), step(name)
    for place in range(min(len(OPERATORS[name].scaling), len(node.args))):
        args = [call_node("mul", number_node(factor), arg) if at == place else arg for at, arg in enumerate(node.args)]
        outside, body = released(node, place, factor)
        found, expected = computed(node.with_args(*args), panel), outside * computed(body, panel)
        agree(found, expected.astype(float), 1e-5 * np.nanmax(np.abs(expected), initial=0.0))


@pytest.mark.parametrize("name", OPERATORS)
def test_no_operator_reads_a_later_day(name: str) -> None:
    panel, seen = panels.draw(9, 40, 6, "prices"), 30
    later = {key: np.vstack([x[:seen], 2 * x[seen:][::-1] + 1]) for key, x in panel.fields.items()}
    other = Panel(panel.dates, panel.symbols, later, panel.universe, panel.groups)
    assert computed(step(name), panel)[:seen].tobytes() == computed(step(name), other)[:seen].tobytes()
