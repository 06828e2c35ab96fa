"""Build the decoding grammar of a campaign: its columns, groupings and windows, every operator, typed by units."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from ..errors import FactorError
from ..language.node import walk
from ..language.parse import parse
from ..language.types import find_unit
from ..operators import OPERATORS
from ..space.sampling import SAMPLED_WINDOWS
from .level import Column, GrammarLevels
from .production import Vocabulary, list_productions
from .unit_class import classify_unit
from .weight import LevelRoom, weigh_tree

Notation = Literal["ebnf", "lark"]
FORMS: tuple[Notation, ...] = ("ebnf", "lark")
DEPTH = 6
MAX_GRAMMAR_DEPTH = 12


def decoding_grammar(
    fields: Collection[str],
    groups: Collection[str] = (),
    windows: Collection[int] = SAMPLED_WINDOWS,
    *,
    depth: int = DEPTH,
    form: Notation = "ebnf",
    operators: Collection[str] | None = None,
) -> str:
    """Return the grammar of the formulas that a model may write.

    Every sentence parses, agrees in its units, reads no later day, reads at least one column, stays below the limits
    of size, and uses only the given names. Numbers are from a short list; keywords keep their defaults.

    Parameters
    ----------
    fields : collection of str
        Columns, at least one.
    groups : collection of str
        Groupings; if empty, no operator by group is in the grammar.
    windows : collection of int
        Windows in rows.
    depth : int
        Levels of the formulas, 1 for a bare column. Beyond 6 the rows of llguidance's parser may exceed its limit of
        2,000 items; xgrammar has none.
    form : str
        ``ebnf`` (``root ::= ...``: xgrammar and so vLLM, llama.cpp) or ``lark`` (``start: ...``: lark, llguidance).
    operators : collection of str, optional
        Names of the operators; by default all that the columns, groupings and windows allow.

    Returns
    -------
    str
        The grammar: equal for equal sets of fields, groups, windows and operators, whatever their order.

    Raises
    ------
    FactorError
        If there is no column, an operator is unknown, or a number or the form is out of its bounds.
    ParseError
        If a column cannot be parsed.
    """
    _check_arguments(fields, windows, depth, form, operators)
    columns = [_build_column(name, frozenset(fields)) for name in sorted(set(fields))]
    vocabulary = Vocabulary(
        tuple(column.name for column in columns), tuple(sorted(set(groups))), tuple(sorted(set(windows)))
    )
    chosen = [operator for name, operator in OPERATORS.items() if operators is None or name in operators]
    listed = [production for operator in chosen for production in list_productions(operator, vocabulary)]
    rules = GrammarLevels(columns, listed, LevelRoom(depth)).grammar()
    return rules.ebnf() if form == "ebnf" else rules.lark()


def _build_column(name: str, fields: frozenset[str]) -> Column:
    """Return a column with its class; a name such as ``adv20`` reads another column."""
    root = parse(name, fields=fields).root
    reads = frozenset(node.name for _, node in walk(root) if node.op == "field")
    return Column(name, classify_unit(find_unit(root)), reads, weigh_tree(root, {}))


def _check_arguments(
    fields: Collection[str], windows: Collection[int], depth: int, form: str, operators: Collection[str] | None
) -> None:
    if isinstance(fields, str):
        raise FactorError(f"fields is the text {fields!r}, not a list of columns", hint="Example: fields=('close',)")
    if not fields:
        raise FactorError("fields is empty: a formula reads at least one column", hint="Example: fields=('close',)")
    if wrong := [window for window in windows if window != int(window) or window < 1]:
        raise FactorError(f"windows has {wrong[0]}: a window is a whole number of rows, at least 1")
    if not 1 <= depth <= MAX_GRAMMAR_DEPTH:
        raise FactorError(f"depth is {depth}: it lies between 1 and {MAX_GRAMMAR_DEPTH}")
    if form not in FORMS:
        raise FactorError(f"form is {form!r}: it is one of {', '.join(FORMS)}")
    if unknown := sorted(set(operators or ()) - set(OPERATORS)):
        raise FactorError(f"operators has {unknown[0]}, which there is not", hint="`factors.OPERATORS` lists them.")
