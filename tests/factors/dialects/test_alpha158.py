"""All of Alpha158: each formula imports, types, evaluates, and has the values that Qlib's own semantics give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from alphaloom.evidence.originality.published import formulas
from alphaloom.factors import Engine, parse
from alphaloom.factors.dialects import write_foreign

from .qlib_bars import Columns, bars, panel_of
from .qlib_meaning import Meaning

ALPHA158 = formulas("alpha158")
TOLERANCE = 2e-6
"""Relative, and absolute for values below 1: each step is stored as float32, whose digits end at 6e-8."""
ROUGH = {"CORR": 2e-5, "CORD": 2e-5}
"""A correlation is as uncertain as the rounded logarithms of volume over their spread in the window."""

Found = Mapping[str, NDArray[np.float32]]


@pytest.fixture(scope="module")
def columns() -> Columns:
    return bars(0, 100, 8)


@pytest.fixture(scope="module")
def meaning(columns: Columns) -> Meaning:
    return Meaning(columns)


@pytest.fixture(scope="module")
def found(columns: Columns) -> Found:
    batch = [parse(text, dialect="qlib") for text in ALPHA158.values()]
    return dict(zip(ALPHA158, Engine(panel_of(columns)).evaluate(batch), strict=True))


def gap_inside(columns: Columns, name: str) -> NDArray[np.bool_]:
    """Tell where Qlib takes a gap of the window for the highest or lowest value: the places in it are not kept."""
    if name.rstrip("0123456789") not in ("IMAX", "IMIN", "IMXD"):
        return np.zeros(columns["close"].shape, bool)
    window = int(name[4:])
    missing = pd.DataFrame(np.isnan(columns["high"])).astype(float)
    return np.asarray(missing.rolling(window, min_periods=1).max() > 0)


def test_there_are_158() -> None:
    assert len(ALPHA158) == 158
    assert len({parse(text, dialect="qlib").id for text in ALPHA158.values()}) == 158


@pytest.mark.parametrize("name", ALPHA158)
def test_a_formula_means_what_it_means_in_qlib(name: str, columns: Columns, meaning: Meaning, found: Found) -> None:
    """Infinities of Qlib are missing here, and so are they told; everything else agrees cell by cell, gaps included."""
    expected = meaning(ALPHA158[name])
    expected = np.where(np.isfinite(expected) & ~gap_inside(columns, name), expected, np.nan)
    got = np.where(gap_inside(columns, name), np.nan, found[name])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    limit = ROUGH.get(name.rstrip("0123456789"), TOLERANCE)
    np.testing.assert_allclose(got, expected, rtol=limit, atol=limit)
    assert np.isfinite(got).sum() > 100


@pytest.mark.parametrize("name", ALPHA158)
def test_a_formula_goes_back_to_qlib(name: str, columns: Columns, meaning: Meaning) -> None:
    known = parse(ALPHA158[name], dialect="qlib")
    back = write_foreign(known.root, "qlib").text
    assert parse(back, dialect="qlib").id == known.id
    if back != ALPHA158[name]:
        np.testing.assert_allclose(meaning(back), meaning(ALPHA158[name]), rtol=1e-12)
