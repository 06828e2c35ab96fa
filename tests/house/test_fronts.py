"""Between rooms, names come from the front of a room or of one of its folders, and a front holds what it says."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from .test_style import read_tree

ROOT = Path(__file__).resolve().parents[2]
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "bench")
FRONTS = sorted(
    path for room in ROOMS for path in (ROOT / room).rglob("__init__.py") if "lazy_names" in path.read_text()
)


def around(path: Path, tree: ast.AST) -> Iterator[str]:
    """Yield the imports of a file of the package that reach into another room past its fronts."""
    folder = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not 1 < node.level <= len(folder) + 1:
            continue
        place = (*folder[: len(folder) + 1 - node.level], *(node.module or "").split("."))
        if place[0] in {"", folder[0], "lazy", "extras"}:
            continue
        front = ROOT.joinpath(*place)
        files = [name.name for name in node.names if (front / f"{name.name}.py").is_file()]
        if files or not (front / "__init__.py").is_file():
            yield f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"


def listed(path: Path) -> dict[str, str]:
    """Return the names that a front shows to a type checker, with the module of each."""
    branch = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If))
    return {
        name.name: str(node.module) for node in branch.body if isinstance(node, ast.ImportFrom) for name in node.names
    }


def test_no_room_reaches_past_the_fronts_of_another() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert [one for path in files for one in around(path, read_tree(path))] == []


@pytest.mark.parametrize(
    "line", ["from ..evidence.gate.acceptance_gate import Gate", "from ..ledger import digest", "from .. import market"]
)
def test_a_planted_violation_is_found(line: str) -> None:
    plain = "from ..evidence.gate import Gate\nfrom .errors import Refused\nfrom ..lazy import lazy_names\n"
    found = list(around(ROOT / "risk/_planted.py", ast.parse(plain + line)))
    assert found == ([] if line == "from .. import market" else [f"risk/_planted.py:4 {line}"])


@pytest.mark.parametrize("path", FRONTS, ids=lambda path: ".".join(path.relative_to(ROOT).parts[:-1]))
def test_a_front_holds_what_it_lists(path: Path) -> None:
    front = importlib.import_module(".".join(("alphaloom", *path.relative_to(ROOT).parts[:-1])))
    names = listed(path)
    assert sorted(names) == front.__all__
    for name, module in names.items():
        value = getattr(front, name)
        assert hasattr(
            importlib.import_module(f"{front.__name__}.{module}"), name
        )  # a kernel is another once it is compiled
        assert not isinstance(value, ModuleType), f"{name} is a module of the same folder"
    with pytest.raises(AttributeError):
        front.nothing_of_this_name  # noqa: B018 - the look-up is the test
