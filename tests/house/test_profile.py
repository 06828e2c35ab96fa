"""Properties draw the same examples on every run, whatever else was imported before."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st


def drawn() -> list[int]:
    """Return the examples of one property."""
    found: list[int] = []

    @given(st.integers())
    def once(number: int) -> None:
        found.append(number)

    once()
    return found


def test_a_property_draws_the_same_examples_alone_and_after_other_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = drawn()
    (tmp_path / "company.py").write_text(f"numbers = {list(range(10**15, 10**15 + 200))}\n")
    spec = importlib.util.spec_from_file_location("company", tmp_path / "company.py")
    assert spec is not None
    monkeypatch.setitem(sys.modules, "company", importlib.util.module_from_spec(spec))
    assert drawn() == alone


def test_the_usual_profile_knows_no_chance_and_no_clock() -> None:
    usual, fuzz = settings.get_profile("dev"), settings.get_profile("fuzz")
    assert (usual.derandomize, usual.database, usual.deadline) == (True, None, None)
    assert (fuzz.derandomize, fuzz.database, fuzz.deadline) == (False, None, None)
    assert fuzz.max_examples > usual.max_examples
