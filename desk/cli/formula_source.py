"""Formulas and Python factors from arguments and files."""

from __future__ import annotations

from pathlib import Path

from ..errors import DeskError

PYTHON_SUFFIX = ".py"
MAX_CODE_BYTES = 1 << 20


def read_formula_source(text: str) -> str:
    """Return the code of a file whose name ends in `.py`, else the text itself.

    Raises
    ------
    DeskError
        There is no such file, or it is not text.
    """
    if "\n" in text or not text.endswith(PYTHON_SUFFIX):
        return text
    from ...ledger.files import open_given

    try:
        with open_given(Path(text)) as file:
            return file.read(MAX_CODE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DeskError(
            f"{text} cannot be read: {reason}",
            field="EXPR",
            got=text,
            hint="Name a file that defines factor(panel), or write a formula in quotes.",
            code="no_formula",
        ) from None
