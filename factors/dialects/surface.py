"""Read the text of a dialect into syntax, by its own surface grammar.

Each dialect's `.lark` file imports the rules of ``grammar.lark`` and overrides those that it writes differently. Names of
rules come back with the prefix of the imported file, which is taken off here. Beside the shapes of our own language, a
grammar may use ``choice`` (condition, then, else) and ``days`` (a number with a letter after it: 20d).
"""

from __future__ import annotations

import functools
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.load_grammar import FromPackageLoader

from .. import language
from ..errors import ParseError
from ..language.reader import Branch, TreeReader, explain_syntax_error
from ..language.syntax import MAX_FORMULA_CHARS, MAX_FORMULA_DEPTH, Syntax, depth_error, refuse_deep_brackets
from .dialect import Dialect
from .rule import RewriteRule, read_rules


def read_surface(text: str, dialect: Dialect) -> Syntax:
    """Read a foreign formula; ParseError where its form is wrong."""
    if not text.strip():
        raise ParseError("the formula is empty", hint=f"Example: {dialect.example}")
    if len(text) > MAX_FORMULA_CHARS:
        raise ParseError(
            f"the formula has {len(text)} characters; {MAX_FORMULA_CHARS} are allowed", text=text, at=MAX_FORMULA_CHARS
        )
    refuse_deep_brackets(text)
    try:
        tree: Branch = _grammar(dialect.grammar).parse(text)
    except UnexpectedInput as unexpected:
        known = explain_syntax_error(unexpected, text)
        hint = f"{_form_hint(known.hint)}A formula of {dialect.title}: {dialect.example}"
        raise ParseError(known.message, at=known.at, text=text, hint=hint) from None
    for branch in tree.iter_subtrees():
        branch.data = str(branch.data).removeprefix("grammar__")
    return _SurfaceReader(text).read(tree.children[0], 1)


def _form_hint(hint: str) -> str:
    """Return what a hint says of brackets and commas; its examples are in our own language."""
    return f"{hint} " if any(words in hint for words in ("Take", "still open", "Write a plain")) else ""


@functools.cache
def _grammar(name: str) -> Lark:
    source = files(__package__).joinpath(name).read_text(encoding="utf-8")
    folder = FromPackageLoader(language.__name__, ("",))
    return Lark(source, parser="lalr", propagate_positions=True, maybe_placeholders=False, import_paths=[folder])


class _SurfaceReader(TreeReader):
    """Read the shapes that our own language lacks, and the rest as ours."""

    def read(self, branch: Branch | Token, level: int) -> Syntax:
        assert isinstance(branch, Tree)
        at, end = int(branch.meta.start_pos), int(branch.meta.end_pos)
        if level > MAX_FORMULA_DEPTH:
            raise depth_error(self.text, at)
        if branch.data == "days":
            return Syntax("number", str(branch.children[0]).rstrip("dD"), at, end)
        if branch.data == "choice":
            args = tuple(self.read(each, level + 1) for each in branch.children)
            return Syntax("call", "where", at, end, args, infix=True)
        return super().read(branch, level)


@functools.cache
def rules_of(name: str) -> tuple[RewriteRule, ...]:
    """Return the rules of a dialect, read once."""
    from .registry import find_dialect  # the registry imports dialects, which need nothing of this module

    dialect = find_dialect(name)
    return tuple(read_rules(dialect.rules, lambda text: read_surface(text, dialect)))
