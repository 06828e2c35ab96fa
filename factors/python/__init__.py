"""Python factors: `def factor(panel): ...` read as an expression that only the sandbox may compute.

Reading runs no code. It gives the code an id that does not depend on names, comments or spelling, lists the columns
that it reads, and translates it into a tree of the language's operators, so that a formula rewritten in pandas is
recognised. The tree is used for comparison and the complexity limit; values are never computed from it.
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
