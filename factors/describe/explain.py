"""Explain in plain words what a formula computes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from ..language.expression import Expression
from ..language.node import Node, walk
from ..language.parse import parse
from ..operators import OPERATORS, fill_parameters
from .render import render, render_number, render_parameter

FIELD_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "open": "the open",
        "high": "the day's high",
        "low": "the day's low",
        "close": "the close",
        "close_raw": "the unadjusted close",
        "vwap": "the volume-weighted price",
        "amount": "money traded",
        "cap": "market value",
    }
)
MAX_EQUIVALENT_CHARS = 200
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "bool": "a condition",
        "number": "a plain number",
        "python": "not known, being code",
        "rank": "a rank",
        "ratio": "a ratio",
        "return": "a return",
    }
)


def explain(expression: Expression | str) -> str:
    """Explain a formula in one or two sentences: its steps, its unit, and the number of days that it needs.

    Parameters
    ----------
    expression : Expression or str
        The formula; a string is parsed first and may raise `ParseError`.

    Returns
    -------
    str
        For example "The cross-sectional rank of the 30-day standard deviation of returns, times -1. It is a rank and
        needs 31 days."
    """
    formula = parse(expression) if isinstance(expression, str) else expression
    if formula.code:
        return _explain_code(formula)
    words = describe_tree(formula.root)
    days = "today only" if formula.warmup == 0 else f"{formula.warmup + 1} days"
    words = re.sub(r"\b1 days\b", "1 day", words)
    return f"{words[0].upper()}{words[1:]}. It is {describe_unit(formula.unit)} and needs {days}."


def _explain_code(expression: Expression) -> str:
    """Return a sentence with the columns that code reads, and its equivalent in the language if that is short."""
    text = render(expression.root)
    amounts = f" It amounts to {text}." if "py." not in text and len(text) <= MAX_EQUIVALENT_CHARS else ""
    return f"Python code that reads {', '.join(sorted(expression.fields))}.{amounts}"


def describe_unit(unit: str) -> str:
    """Return the name of a unit as it follows "It is": a ratio, in units of price."""
    return UNITS.get(unit, f"in units of {unit}")


def describe_tree(node: Node) -> str:
    """Return a tree in words, without capital letter and full stop; an outermost factor comes last."""
    if node.op == "neg" and not node.args[0].is_leaf:
        return f"{describe_tree(node.args[0])}, times -1"
    if node.op == "mul" and len(node.args) == 2:
        numbers = [arg for arg in node.args if arg.op == "number"]
        others = [arg for arg in node.args if arg.op != "number"]
        if len(numbers) == 1 and not others[0].is_leaf:
            return f"{describe_tree(others[0])}, times {_describe(numbers[0])}"
    return _describe(node)


def _describe(node: Node) -> str:
    if node.op == "number":
        return render_number(node.value or 0.0)
    if node.is_leaf:
        return FIELD_WORDS.get(node.name, node.name)
    operator = OPERATORS[node.op]
    if len(node.args) > len(operator.nodes) and (operator.infix or operator.mirror):
        return _describe_chain(node)
    values = {name: render_number(value) for name, value in fill_parameters(node).items()}
    for place, argument in enumerate(operator.nodes):
        many = place + 1 == len(operator.nodes) and operator.takes_many
        ends = operator.words.endswith(f"{{{argument.name}}}")
        args = node.args[place:] if many else node.args[place : place + 1]
        values[argument.name] = " and ".join(_describe_argument(arg, last=ends) for arg in args)
    return operator.words.format(**values) + _describe_keywords(node)


def _describe_argument(node: Node, last: bool = False) -> str:
    """Return the words of an argument, in parentheses where they would run into the words around them."""
    words = _describe(node)
    if node.is_leaf:
        return words
    runs_on = OPERATORS[node.op].words.startswith("{") or OPERATORS[node.op].infix
    return f"({words})" if runs_on or not last else words


def _describe_chain(node: Node) -> str:
    """Return the words of a long sum, product, maximum, minimum or chain of conditions."""
    if node.op in ("max", "min"):
        kind = "largest" if node.op == "max" else "smallest"
        return f"the {kind} of {', '.join(_describe_argument(arg) for arg in node.args)}"
    if node.op != "add":
        joint = {"mul": " times ", "and": " and ", "or": " or "}[node.op]
        return joint.join(_describe_argument(arg) for arg in node.args)
    words = _describe_argument(node.args[0])
    for arg in node.args[1:]:
        words += f" minus {_describe_argument(arg.args[0])}" if arg.op == "neg" else f" plus {_describe_argument(arg)}"
    return words


def _describe_keywords(node: Node) -> str:
    """Return the keywords that are not at their default, in parentheses."""
    arguments = {argument.name: argument for argument in OPERATORS[node.op].arguments if argument.keyword}
    keywords = [
        f"{name} {render_parameter(arguments[name], value)}"
        for name, value in node.params
        if name in arguments and name != "to"
    ]
    return f" ({', '.join(keywords)})" if keywords else ""


def list_operators(node: Node) -> tuple[str, ...]:
    """Return the names of the operators of a tree, sorted, each once."""
    return tuple(sorted({step.op for _, step in walk(node) if not step.is_leaf}))
