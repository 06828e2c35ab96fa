"""Write a formula as somebody would write it in pandas: the slow and obvious translation that the reader is held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from alphaloom.factors import Node
from alphaloom.factors.language.definitions import expand_tree
from alphaloom.factors.operators import fill_parameters

ROLLING = {
    "ts_mean": "mean()", "ts_sum": "sum()", "ts_std": "std()", "ts_var": "var()", "ts_min": "min()", "ts_max": "max()",
    "ts_median": "median()", "ts_skew": "skew()", "ts_kurt": "kurt()", "ts_rank": "rank(pct=True)",
    "ts_argmax": "apply(np.argmax, raw=True)", "ts_argmin": "apply(np.argmin, raw=True)",
    "ts_product": "apply(np.prod, raw=True)", "ts_count": "sum()",
}  # fmt: skip  # a table
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
         "ne": "!=", "and": "&", "or": "|"}  # fmt: skip  # a table
NUMPY = {"log": "np.log", "exp": "np.exp", "sqrt": "np.sqrt", "sign": "np.sign", "tanh": "np.tanh", "abs": "np.abs",
         "max": "np.maximum", "min": "np.minimum", "floor": "np.floor", "ceil": "np.ceil",
         "arctan": "np.arctan"}  # fmt: skip  # a table


class Unwritten(Exception):
    """No plain pandas for an operator."""


def factor_of(root: Node) -> str:
    """Return the code of a factor that computes a formula, a variable for each step."""
    lines: list[str] = []
    names: dict[Node, str] = {}

    def told(node: Node) -> str:
        if node.op == "number":
            return repr(node.value)
        if node not in names:
            text = f'panel["{node.name}"]' if node.op == "field" else _step(node, [told(arg) for arg in node.args])
            names[node] = f"x{len(names)}"
            lines.append(f"    {names[node]} = {text}")
        return names[node]

    last = told(expand_tree(root))
    return "\n".join(["def factor(panel):", *lines, f"    return {last}"])


def _step(node: Node, args: list[str]) -> str:
    if not args:
        raise Unwritten(node.op)
    x, window = args[0], node.window
    if node.op in ROLLING:
        return f"{x}.rolling({window}).{ROLLING[node.op]}"
    if node.op in INFIX:
        return f" {INFIX[node.op]} ".join(args)
    if node.op in NUMPY:
        text = args[0]
        for other in args[1:]:
            text = f"{text}, {other}"
        return f"{NUMPY[node.op]}({text})"
    if node.op in WRITTEN:
        return WRITTEN[node.op](node, args)
    raise Unwritten(node.op)


def _decay(node: Node, args: list[str]) -> str:
    n = node.window
    return f"{args[0]}.rolling({n}).apply(lambda a: np.dot(a, np.arange(1, {n} + 1)) / {n * (n + 1) // 2}, raw=True)"


WRITTEN: Mapping[str, Callable[[Node, list[str]], str]] = {
    "neg": lambda node, args: f"-{args[0]}",
    "not": lambda node, args: f"~{args[0]}",
    "power": lambda node, args: f"{args[0]} ** {args[1]}",
    "signed_power": lambda node, args: f"np.sign({args[0]}) * np.abs({args[0]}) ** {args[1]}",
    "rank": lambda node, args: f"{args[0]}.rank(axis=1, pct=True)",
    "demean": lambda node, args: f"{args[0]}.sub({args[0]}.mean(axis=1), axis=0)",
    "scale": lambda node, args: f"{args[0]}.div({args[0]}.abs().sum(axis=1), axis=0)",
    "zscore": lambda node, args: f"{args[0]}.sub({args[0]}.mean(axis=1), axis=0).div({args[0]}.std(axis=1), axis=0)",
    "delay": lambda node, args: f"{args[0]}.shift({node.window})",
    "delta": lambda node, args: f"{args[0]}.diff({node.window})",
    "ts_returns": lambda node, args: f"{args[0]}.pct_change({node.window})",
    "ts_corr": lambda node, args: f"{args[0]}.rolling({node.window}).corr({args[1]})",
    "ts_cov": lambda node, args: f"{args[0]}.rolling({node.window}).cov({args[1]})",
    "ts_quantile": lambda node, args: f"{args[0]}.rolling({node.window}).quantile({fill_parameters(node)['q']})",
    "ts_zscore": lambda node, args: (
        f"({args[0]} - {args[0]}.rolling({node.window}).mean()) / {args[0]}.rolling({node.window}).std()"
    ),
    "decay_linear": _decay,
    "ema": lambda node, args: f"{args[0]}.ewm(span={fill_parameters(node)['span']}).mean()",
    "where": lambda node, args: f"{args[1]}.where({args[0]}, {args[2]})",
    "is_missing": lambda node, args: f"{args[0]}.isna()",
}
