"""Python factors: `def factor(panel): ...` read as an expression that only the sandbox may compute.

Reading runs nothing. It gives the code an id that does not depend on names, comments or spelling, lists the columns that it
reads, and draws its meaning as a tree of the language's own operators, so that a formula that was rewritten in pandas is
recognised. The tree serves comparison and the price of complexity; values never come from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .lint import Remark as Remark, lint_code as lint_code
    from .read import UNIVERSE_COLUMN as UNIVERSE_COLUMN, read_python as read_python
    from .source import MAX_CODE_CHARS as MAX_CODE_CHARS, is_python as is_python
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "lint": "Remark lint_code",
            "read": "UNIVERSE_COLUMN read_python",
            "source": "MAX_CODE_CHARS is_python",
        },
    )
