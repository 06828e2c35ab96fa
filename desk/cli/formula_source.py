"""Formulas and Python factors from arguments and files, and their one-line summaries."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import DeskError

__all__ = ["read_formula_source", "summarise_formula"]

DOCSTRING_PATTERN = re.compile(
    r'def factor\(.*?\)[^\n]*:\s*(?:[rbuRBU]?"""|\'\'\')\s*(.+?)\s*(?:"""|\'\'\'|\n)', re.DOTALL
)
PYTHON_SUFFIX = ".py"
MAX_CODE_BYTES = 1 << 20


def read_formula_source(given: str) -> str:
    """Return the code of a file whose name ends in `.py`, else the text itself.

    Raises
    ------
    DeskError
        There is no such file, or it is not text.
    """
    if "\n" in given or not given.endswith(PYTHON_SUFFIX):
        return given
    from ...ledger.files import open_given

    try:
        with open_given(Path(given)) as file:
            return file.read(MAX_CODE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DeskError(
            f"{given} cannot be read: {said}", field="EXPR", got=given,
            hint="Name a file that defines factor(panel), or write a formula in quotes.", code="no_formula",
        ) from None  # fmt: skip


def summarise_formula(text: str) -> str:
    """Return a formula as it is; of code, its docstring's first line or its length."""
    if "\n" not in text:
        return text
    said = DOCSTRING_PATTERN.search(text)
    lines = len(text.strip().splitlines())
    return f"Python, {lines} lines" + (f": {said[1]}" if said else "")
