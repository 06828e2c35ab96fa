"""What a reader may rely on in every room: short functions, ordered public names, and no machine in the text."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from alphaloom.extras import install_hint

ROOT = Path(__file__).resolve().parents[2]
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
LONGEST, USUAL = 60, 35
LONGEST_FILE = 600
MOST_FILES = 15


def sources() -> list[Path]:
    return [*ROOT.glob("*.py"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))]


@cache
def read_tree(path: Path) -> ast.Module:
    """Return a parsed file, which several tests walk through."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each function's place and its lines."""
    for node in ast.walk(read_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


def committed() -> list[Path]:
    """Return the files of the repository; without git, those that a source distribution holds."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        hidden = [path for path in ROOT.rglob("*") if path.is_file() and not path.is_symlink()]
        return [path for path in hidden if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]
    names = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in names if path.is_file() and not path.is_symlink()]


def test_there_are_rooms() -> None:
    assert {
        "agents", "campaign", "desk", "evaluation", "evidence", "execution", "factors", "ledger", "library", "market",
        "mcp_servers", "news", "portfolio", "risk", "router", "sandbox", "search", "serving",
    } <= set(ROOMS)  # fmt: skip  # a table


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_the_names_that_it_lists(room: str) -> None:
    module = importlib.import_module(f"alphaloom.{room}")
    assert module.__doc__
    names = list(getattr(module, "__all__", []))
    assert [name for name in names if not hasattr(module, name)] == []


def test_no_function_is_long() -> None:
    found = [one for path in sources() for one in functions(path)]
    assert [place for place, lines in found if lines > LONGEST] == []
    lengths = sorted(lines for _, lines in found)
    assert lengths[len(lengths) * 95 // 100] < USUAL


def test_no_file_is_long() -> None:
    long = {
        str(path.relative_to(ROOT)): n for path in sources() if (n := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    assert long == {}


MACHINE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|work|mnt)/\w"  # somebody's folder
    r"|[A-Z]:\\\\?Users"
    r"|https?://[^\s\"'>)]*(?:pypi|simple/|artifactory|nexus|mirror|registry)"
)


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the public constants of a module with what is written behind them."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from assigned(target, node.value)


def assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the public constants of an assignment; a tuple assigned to a tuple is taken apart."""
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    together = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    values = value.elts if together and isinstance(value, ast.Tuple) else [value] * len(names)
    for name, part in zip(names, values, strict=True):
        if isinstance(name, ast.Name) and name.id.isupper() and not name.id.startswith("_"):
            yield name.id, ast.unparse(part)


TWICE = {
    "Campaign": "the wiring has one, and what a script imports is that one with a report",
    "Hypothesis": "its name is in the schema of a tool and in that of an agent's reply",
}
"""Class names that occur twice, and why."""
BY_MODULE = {"DIALECT", "PUBLIC_MODULES"}
"""Constants that every module of a kind has, read by that name."""


def test_a_class_name_means_one_thing() -> None:
    found: dict[str, set[Path]] = {}
    for path in sources():
        for node in ast.walk(read_tree(path)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).add(path.relative_to(ROOT))
    assert {name: places for name, places in found.items() if len(places) > 1 and name not in TWICE} == {}


def test_a_constant_has_one_value() -> None:
    found: dict[str, dict[str, Path]] = {}
    for path in sources():
        for name, value in constants(read_tree(path)):
            found.setdefault(name, {})[value] = path.relative_to(ROOT)
    assert {name: values for name, values in found.items() if len(values) > 1 and name not in BY_MODULE} == {}


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in sources())
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_no_file_names_a_machine_or_a_registry() -> None:
    """Tests may make folders up, but none is of the machine that they run on."""
    own = [str(folder) for folder in (ROOT, Path.home()) if len(folder.parts) > 2]
    found = []
    for path in committed():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith("tests/"):
            found += [f"{place}: {match[0]}" for match in MACHINE.finditer(text)]
        found += [f"{place}: {folder}" for folder in own if re.search(rf"(?<![\w.]){re.escape(folder)}\b", text)]
    assert found == []


def test_the_lock_has_hashes_and_no_address() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert not [line for line in lines if "://" in line or line.startswith(("-i", "--index", "--find", "-e", "-f"))]
    pinned = [line for line in lines if re.match(r"[a-z0-9]", line)]
    assert pinned
    assert all(re.match(r"[a-z0-9._-]+(\[[a-z0-9,._-]+\])?==\S+", line) for line in pinned)
    assert sum("--hash=sha256:" in line for line in lines) >= len(pinned)


def test_every_extra_is_installed_by_the_names_of_its_packages() -> None:
    """Alphaloom is on no package index, so `pip install 'alphaloom[ray]'` would fail, or fetch another's package."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, packages in extras.items():
        told = install_hint(extra)
        assert told.startswith("pip install '"), told
        assert told.endswith(f" (in the checkout: pip install '.[{extra}]')")
        for package in packages:
            assert f"'{re.split(r'[><=]', package)[0]}" in told


def test_nobody_is_told_to_install_alphaloom_from_an_index() -> None:
    texts = [
        path
        for path in committed()
        if path.suffix in {".py", ".md", ".yaml", ".toml", ".j2", ""}
        and path.parts[-1] not in {"CHANGELOG.md", "test_style.py"}
    ]
    assert [str(path) for path in texts if re.search(r"alphaloom\[", path.read_text(errors="replace"))] == []


EXCEPTION = re.compile(r"# (?:noqa\b|fmt: (?:skip|off)\b)")
REASONED = re.compile(r"# noqa: [A-Z]+\d+(?:, [A-Z]+\d+)* - \S|# fmt: skip  # \S")


def test_an_exception_from_a_rule_has_its_reason_beside_it() -> None:
    """`fmt: skip  # a table` and `noqa: S102 - the walls are up`: what follows the mark says why."""
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in committed()
        if path.suffix == ".py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if EXCEPTION.search(line) and not REASONED.search(line)
    ]
    assert places == []
