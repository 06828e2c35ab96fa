"""Python factors: `def factor(panel): ...` read as an expression that only the sandbox may compute.

Reading runs nothing. It gives the code an id that does not hang on names, comments or spelling, says which columns it
reads, and draws its meaning as a tree of the language's own operators, so that a formula that was rewritten in pandas is
found to be the formula that it is. The tree is for comparing and for the price of its size; values never come from it.
"""

from __future__ import annotations

from .lint import Remark, lint_code
from .read import UNIVERSE_COLUMN, read_python
from .source import MAX_CODE_CHARS, is_python

__all__ = [
    "MAX_CODE_CHARS",
    "UNIVERSE_COLUMN",
    "Remark",
    "is_python",
    "lint_code",
    "read_python",
]
