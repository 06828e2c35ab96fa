"""Read command lines whose arguments are formulas, which may begin with a minus sign."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

__all__ = ["FormulaCommand"]

OPTION_PATTERN = re.compile(r"--[a-z][a-z-]*(=.*)?")
"""What can only be meant as an option; ``--close + 1`` is a formula."""


class FormulaCommand(TyperCommand):
    """A command that takes ``-rank(high)`` as a formula, not as options -r, -a, ... and -h."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put what is no option behind ``--``, where nothing is taken for one."""
        options, formulas = self._apart(ctx, args)
        return super().parse_args(ctx, [*options, "--", *formulas])

    def _apart(self, ctx: Any, args: list[str]) -> tuple[list[str], list[str]]:
        """Return options with their values, and the rest."""
        takes = {name: not getattr(each, "is_flag", False) for each in self.get_params(ctx) for name in each.opts}
        takes |= dict.fromkeys(self.get_help_option_names(ctx), False)
        options: list[str] = []
        formulas: list[str] = []
        rest = iter(args)
        for arg in rest:
            if arg == "--":
                formulas += rest
            elif arg in takes and arg.startswith("-"):
                options += [arg, *([value] if takes[arg] and (value := next(rest, None)) is not None else [])]
            else:
                (options if OPTION_PATTERN.fullmatch(arg) else formulas).append(arg)
        return options, formulas
