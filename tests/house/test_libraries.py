"""A library belongs to the whole process: we set nothing of LiteLLM's and use none of its private names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from .test_style import ROOT, read_tree, sources

LIBRARIES = ("litellm", "openai", "httpx", "httpx2")
SETTERS = ("setattr", "delattr")


def read_name(node: ast.AST) -> str:
    """Return a dotted name as it is written; empty where the expression is none."""
    if isinstance(node, ast.Attribute) and (before := read_name(node.value)):
        return f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def find_loaded(node: ast.AST) -> str:
    """Return the library's module that an expression loads; empty where it loads none."""
    if not isinstance(node, ast.Call):
        return find_loaded(node.value) if isinstance(node, ast.Attribute) else ""
    if read_name(node.func).endswith("load_litellm"):
        return "litellm"
    loads = read_name(node.func).endswith(("import_module", "__import__"))
    named = node.args[0] if loads and node.args else None
    text = str(named.value) if isinstance(named, ast.Constant) else ""
    return text if text.partition(".")[0] in LIBRARIES else ""


def list_assignments(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each target of an assignment with its value, those of tuples one by one."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value


def bind_names(tree: ast.AST) -> set[str]:
    """Return the names of a file, such as `self.litellm`, that stand for a library or a part of it."""
    bound: dict[str, str] = {name: name for name in LIBRARIES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound |= {each.asname or each.name.partition(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            bound |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    for target, value in list_assignments(tree):
        part = find_loaded(value) or bound.get(read_name(value).partition(".")[0], "")
        if part and read_name(target):
            bound[read_name(target)] = part
    return {name for name, part in bound.items() if part.partition(".")[0] in LIBRARIES}


def find_changes(tree: ast.AST) -> Iterator[str]:
    """Yield each place of a file that sets something of a library's, or uses a private name of it."""
    bound = bind_names(tree)

    def is_theirs(node: ast.AST) -> bool:
        return any(f"{read_name(node)}.".startswith(f"{name}.") for name in bound) or bool(find_loaded(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and is_theirs(node.value):
            private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
            if private or not isinstance(node.ctx, ast.Load):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and read_name(node.func) in SETTERS and is_theirs(node.args[0]):
            yield f"{node.lineno}: {ast.unparse(node)}"
    yield from find_private_imports(tree)


def find_private_imports(tree: ast.AST) -> Iterator[str]:
    """Yield each import of a private module or name of a library."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Call):
            names = [find_loaded(node)]
        for name in names:
            library, *parts = name.split(".")
            if library in LIBRARIES and any(part.startswith("_") for part in parts):
                yield f"{getattr(node, 'lineno', 0)}: {name}"


def test_nothing_of_a_library_is_set_and_no_private_name_is_used() -> None:
    found = [f"{path.relative_to(ROOT)}:{change}" for path in sources() for change in find_changes(read_tree(path))]
    assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        "import litellm\nlitellm.drop_params = True",
        "import litellm as llm\nllm.callbacks += [print]",
        "from importlib import import_module\nlitellm: Any = import_module('litellm')\nlitellm.telemetry = False",
        "handlers = import_module('litellm.llms.custom_httpx.http_handler')\nhandlers.AsyncHTTPHandler.post = print",
        "kind = import_module('litellm.llms.openai.common_utils').BaseOpenAILLM\nkind._get_async_http_client = print",
        "setattr(load_litellm(), 'drop_params', True)",
        "load_litellm().drop_params = True",
        "litellm = load_litellm()\nlitellm.model_cost['x'] = {}",
        "litellm = load_litellm()\nlitellm.llms._private()",
        "self._litellm = load_litellm()\nself._litellm.custom_provider_map = []",
        "from litellm import _logging",
        "from litellm._logging import verbose_logger",
        "import litellm._logging",
        "a, b = import_module('json'), import_module('openai._base_client')",
    ],
)
def test_a_planted_change_is_found(planted: str) -> None:
    assert list(find_changes(ast.parse(planted)))


def test_what_is_only_read_or_called_is_no_change() -> None:
    fair = "litellm = load_litellm()\nclient = litellm.get_llm_provider('x')\nself.litellm = litellm\nmodel._own = 1"
    assert list(find_changes(ast.parse(fair))) == []
