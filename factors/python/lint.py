"""Advise the author of a factor's code: what will not work here, in which line, and what to write instead.

THIS IS NOT A SECURITY BOUNDARY. Names can be built at run time and objects lead to one another, so no static check
stops malicious code, and none here tries to. Such code is contained by the kernel (`sandbox.native`); the causality
test shows that it does not read the future (`sandbox.causality`). Code goes through both whether it was linted or not.
Linting takes a millisecond and answers in words, where the sandbox answers with an error number.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

ENTRY = "factor"
ALLOWED_MODULES = frozenset(
    [
        "__future__",
        "bisect",
        "cmath",
        "collections",
        "dataclasses",
        "datetime",
        "enum",
        "functools",
        "heapq",
        "itertools",
        "math",
        "numbers",
        "numpy",
        "operator",
        "pandas",
        "statistics",
        "typing",
        "warnings",
    ]
)
REFUSED_BUILTINS = frozenset(
    [
        "__import__",
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "exit",
        "getattr",
        "globals",
        "help",
        "input",
        "locals",
        "open",
        "quit",
        "setattr",
        "vars",
    ]
)
ALLOWED_DUNDERS = frozenset({"__doc__", "__init__", "__name__", "__post_init__"})
FRAMES = frozenset(
    ["ag_frame", "cr_frame", "f_back", "f_builtins", "f_globals", "f_locals", "gi_frame", "tb_frame", "tb_next"]
)
FILE_METHODS = frozenset(
    [
        "to_clipboard",
        "to_csv",
        "to_excel",
        "to_feather",
        "to_gbq",
        "to_hdf",
        "to_html",
        "to_json",
        "to_latex",
        "to_orc",
        "to_parquet",
        "to_pickle",
        "to_sql",
        "to_stata",
        "to_xml",
        "tofile",
    ]
)
FILE_FUNCTIONS = frozenset(
    [
        "numpy.DataSource",
        "numpy.ctypeslib",
        "numpy.f2py",
        "numpy.fromfile",
        "numpy.fromregex",
        "numpy.genfromtxt",
        "numpy.lib.format",
        "numpy.lib.npyio",
        "numpy.load",
        "numpy.loadtxt",
        "numpy.memmap",
        "numpy.save",
        "numpy.savetxt",
        "numpy.savez",
        "numpy.savez_compressed",
        "pandas.ExcelFile",
        "pandas.ExcelWriter",
        "pandas.HDFStore",
        "pandas.eval",
        "pandas.io",
    ]
)
CLOCKS = frozenset({"now", "today", "utcnow"})
GENERATORS = frozenset({"Generator", "PCG64", "Philox", "RandomState", "SeedSequence", "default_rng", "seed"})
SEEDED_NAMES = frozenset({"RandomState", "SeedSequence", "default_rng", "seed"})
FUTURE_FILLS = frozenset({"backfill", "bfill", "forward", "nearest"})

SHORT_MODULE_NAMES = {"np": "numpy", "pd": "pandas"}


@dataclass(frozen=True, slots=True)
class Remark:
    """One problem of the code, with a correction.

    Attributes
    ----------
    line : int
        From 1; 0 for the code as a whole.
    rule : str
        syntax, entry, import, name, attribute, file, clock, chance, future or column.
    message, hint : str
        The problem, and what to write instead.
    """

    line: int
    rule: str
    message: str
    hint: str

    def record(self) -> dict[str, Any]:
        """Return the remark as plain JSON."""
        return {"line": self.line, "rule": self.rule, "message": self.message, "hint": self.hint}


def lint_code(code: str, fields: Collection[str] | None = None) -> tuple[Remark, ...]:
    """Return the problems of a factor's code, by line; empty if none is found.

    Parameters
    ----------
    code : str
        Source that should define `factor(panel)`.
    fields : collection of str, optional
        The panel's columns, for reports of misspelt ones; None for no such reports.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        return (Remark(error.lineno or 0, "syntax", f"not Python: {error.msg}", "Mend this line."),)
    except ValueError as error:  # a NUL before Python 3.11.4; half of a surrogate pair
        return (Remark(0, "syntax", f"not Python: {error}", "Mend this line."),)
    except (RecursionError, MemoryError) as error:
        return (Remark(0, "syntax", f"cannot be read: {type(error).__name__}", "Write it shorter and plainer."),)
    spelling = Spelling(tree)
    remarks = {*_check_entry(tree), *_check_nodes(tree, spelling)}
    if fields is not None:
        remarks |= {*_check_columns(tree, fields)}
    return tuple(sorted(remarks, key=lambda remark: (remark.line, remark.rule, remark.message)))


def _check_entry(tree: ast.Module) -> Iterator[Remark]:
    """Check that there is a `factor(panel)` that returns a value."""
    hint = "Write: def factor(panel): ... return a DataFrame of dates x symbols."
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == ENTRY
    ]
    assigned = any(
        isinstance(target, ast.Name) and target.id == ENTRY
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    )
    if not functions:
        if not assigned:
            yield Remark(0, "entry", "there is no function factor(panel)", hint)
        return
    function = functions[-1]
    parameters = function.args
    if len(parameters.posonlyargs) + len(parameters.args) - len(parameters.defaults) > 1 or not (
        parameters.posonlyargs + parameters.args
    ):
        yield Remark(function.lineno, "entry", "factor takes one argument, the panel", hint)
    if isinstance(function, ast.AsyncFunctionDef):
        yield Remark(function.lineno, "entry", "factor cannot be async", hint)
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function)):
        yield Remark(function.lineno, "entry", "factor returns nothing", hint)


def _check_nodes(tree: ast.Module, spelling: Spelling) -> Iterator[Remark]:
    """Check every import, name, attribute and call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _check_import(node)
        elif isinstance(node, ast.Name):
            yield from _check_name(node, spelling)
        elif isinstance(node, ast.Attribute):
            yield from _check_attribute(node, spelling)
        elif isinstance(node, ast.Call):
            yield from _check_call(node, spelling)


def _check_import(node: ast.Import | ast.ImportFrom) -> Iterator[Remark]:
    modules = [node.module or "."] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    for name in modules:
        if name.partition(".")[0] not in ALLOWED_MODULES or (isinstance(node, ast.ImportFrom) and node.level):
            message = f"{name} cannot be imported"
            yield Remark(
                node.lineno, "import", message, "Use numpy (np), pandas (pd) and math; np and pd are there already."
            )
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield from _check_dotted_name(f"{node.module}.{alias.name}", alias.name, node.lineno)


def _check_name(node: ast.Name, spelling: Spelling) -> Iterator[Remark]:
    name = node.id
    private = name.startswith("__") and name.endswith("__") and name not in ALLOWED_DUNDERS
    if (name in REFUSED_BUILTINS and name not in spelling.stored) or private:
        yield Remark(
            node.lineno, "name", f"{name} is not for factors", "Say what you mean with numpy and pandas directly."
        )


def _check_attribute(node: ast.Attribute, spelling: Spelling) -> Iterator[Remark]:
    attr = node.attr
    if (attr.startswith("__") and attr not in ALLOWED_DUNDERS) or attr in FRAMES or attr == "ctypes":
        yield Remark(
            node.lineno, "attribute", f".{attr} is not for factors", "Use what numpy and pandas offer by name."
        )
    yield from _check_dotted_name(spelling.of(node), attr, node.lineno)


def _check_dotted_name(path: str, last: str, line: int) -> Iterator[Remark]:
    """Check a name of numpy or pandas, however it was imported."""
    is_library = path.partition(".")[0] in {"numpy", "pandas"}
    if path in FILE_FUNCTIONS or last in FILE_METHODS or (is_library and last.startswith("read_")):
        yield Remark(line, "file", f"{last} reads or writes files", "A factor has the panel and nothing else.")
    if last in CLOCKS:
        yield Remark(line, "clock", f"{last} reads the clock", "Use the dates of the panel: panel['close'].index.")


def _check_call(node: ast.Call, spelling: Spelling) -> Iterator[Remark]:
    if not isinstance(node.func, ast.Attribute | ast.Name):
        return
    path = spelling.of(node.func)
    last = path.rpartition(".")[2]
    yield from _check_clock(node, last)
    yield from _check_randomness(node, path, last, spelling)
    if isinstance(node.func, ast.Attribute):
        yield from _check_text_code(node, path, last)
        yield from _check_future(node, path, last)


def _check_clock(node: ast.Call, last: str) -> Iterator[Remark]:
    if last in {"Timestamp", "to_datetime", "datetime64", "DatetimeIndex"}:
        words = {read_constant(argument) for argument in node.args}
        if words & {"now", "today"}:
            yield Remark(node.lineno, "clock", f"{last} of today reads the clock", "Use the dates of the panel.")


def _check_randomness(node: ast.Call, path: str, last: str, spelling: Spelling) -> Iterator[Remark]:
    hint = "Give a seed: np.random.default_rng(0)."
    bare = not node.args and not node.keywords
    empty = bare or (len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value is None)
    if path.startswith("numpy.random."):
        if last in SEEDED_NAMES and empty:
            yield Remark(node.lineno, "chance", f"{last} without a seed differs at every call", hint)
        if last not in GENERATORS and not spelling.seeds:
            yield Remark(node.lineno, "chance", f"np.random.{last} has no seed", hint)
    elif (
        last == "sample"
        and "." in path
        and bare is False
        and find_keyword(node, "random_state") is None
        and _is_frame_sample(node)
    ):
        yield Remark(node.lineno, "chance", "sample has no seed", "Give random_state=0.")


def _is_frame_sample(node: ast.Call) -> bool:
    """Recognise a frame's `sample` by its keywords."""
    return any(word.arg in {"n", "frac", "replace", "weights", "axis"} for word in node.keywords)


def _check_text_code(node: ast.Call, path: str, last: str) -> Iterator[Remark]:
    if last not in {"eval", "query"} or path.startswith("numpy."):
        return
    text = read_constant(node.args[0]) if node.args else read_constant(find_keyword(node, "expr"))
    if not isinstance(text, str) or "@" in text or "__" in text:
        yield Remark(node.lineno, "name", f"{last} runs text as code", "Write the condition with pandas operators.")


def _check_future(node: ast.Call, path: str, last: str) -> Iterator[Remark]:
    """Find calls that certainly read later rows; calls across names (axis=1) do not."""
    if read_constant(find_keyword(node, "axis")) in {1, "columns"}:
        return
    backwards = {read_constant(find_keyword(node, word)) for word in ("method", "direction", "limit_direction")}
    steps = node.args[0] if node.args else find_keyword(node, "periods")
    culprit = ""
    if last in {"shift", "pct_change", "diff"} and not path.startswith("numpy.") and is_negative(steps):
        culprit = f"{last}({ast.unparse(steps)})" if steps is not None else last
    elif last in {"bfill", "backfill"}:
        culprit = last
    elif last in {"fillna", "reindex", "merge_asof", "interpolate", "get_indexer", "asof"} and backwards & FUTURE_FILLS:
        culprit = f"{last}({', '.join(sorted(str(word) for word in backwards & FUTURE_FILLS))})"
    elif last == "interpolate" and not backwards & {"pad", "ffill"} and not path.startswith("numpy."):
        culprit = last
    elif last == "rolling" and read_constant(find_keyword(node, "center")) is True:
        culprit = "rolling(center=True)"
    if culprit:
        hint = (
            "Use rows up to the day only: shift(1), rolling(n), ffill(); shift what is older instead of what is newer."
        )
        yield Remark(node.lineno, "future", f"{culprit} reads later days", hint)


def _check_columns(tree: ast.Module, fields: Collection[str]) -> Iterator[Remark]:
    """Find columns that the panel lacks, unless the code tests for them."""
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == ENTRY and node.args.args
    ]
    for function in functions[-1:]:
        panel = function.args.args[0].arg
        reads = [
            node for node in ast.walk(function) if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
        ]
        mine = [node for node in reads if isinstance(node.value, ast.Name) and node.value.id == panel]
        assigned = {read_constant(node.slice) for node in mine if isinstance(node.ctx, ast.Store)}
        compared = {read_constant(node.left) for node in ast.walk(function) if isinstance(node, ast.Compare)}
        for node in mine:
            name = read_constant(node.slice)
            if isinstance(name, str) and name not in {*fields} | assigned | compared:
                near = difflib.get_close_matches(name, list(fields), n=1)
                guess = f"Did you mean {near[0]}?" if near else f"It has {', '.join(sorted(fields))}."
                yield Remark(node.lineno, "column", f"the panel has no column {name}", guess)


class Spelling:
    """Resolves the names of some code: aliases of modules and of their members, and its own names.

    Attributes
    ----------
    stored : frozenset of str
        Names that are assigned, defined or taken as an argument.
    seeds : bool
        Whether numpy's global generator is seeded somewhere.
    """

    def __init__(self, tree: ast.AST) -> None:
        self._names = dict(SHORT_MODULE_NAMES)
        self.stored = frozenset(_iter_stored(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._names |= {alias.asname: alias.name for alias in node.names if alias.asname}
            elif isinstance(node, ast.ImportFrom):
                self._names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
                self._follow_alias(node)
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        self.seeds = any(self.of(call.func) == "numpy.random.seed" and call.args for call in calls)

    def _follow_alias(self, node: ast.Assign) -> None:
        """Follow `load = np.load`."""
        path = self.of(node.value)
        if path.partition(".")[0] in {"numpy", "pandas"}:
            self._names |= {target.id: path for target in node.targets if isinstance(target, ast.Name)}

    def of(self, node: ast.AST) -> str:
        """Return the dotted name that an expression stands for; `?` where it cannot be resolved."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.of(node.value)}.{node.attr}"
        return "?"


def _iter_stored(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def read_constant(node: ast.AST | None) -> object:
    """Return the value of a constant, None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None


def find_keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument of a call for a keyword, None where it is left out."""
    return next((word.value for word in call.keywords if word.arg == name), None)


def is_negative(node: ast.AST | None) -> bool:
    """Return whether an expression is written as a negative number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = read_constant(node.operand)
        return isinstance(value, int | float) and value > 0
    return False
