"""Makes new hostile code out of what is known: spliced, renamed, wrapped, with other numbers and random calls.

Everything is drawn from one seed, so that the code of a number can be made again.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .numbers import NUMBERS
from .snippet import Snippet

__all__ = ["LEFT_OUT", "fuzzed"]

LEFT_OUT = ("behaves_when_tested", "fork_bombs", "hangs", "time_and_randomness")
"""Classes that are no material: they ask for a proof, take their whole time, or multiply."""
WALL = "1.0"
HARMLESS_TO_THE_MACHINE = ("kexec_load", "reboot")
"""Calls that are never drawn: should the jail fail, nothing would be learned that is worth them."""
WRAPPINGS = [
    section.partition("\n")[2]
    for section in Path(__file__).with_name("wrappings.txt").read_text(encoding="utf-8").split("\n=== ")[1:]
]
_ODD = (-1, 0, 1, 2, 3, 4, 5, 7, 8, 63, 255, 4096, 2**16, 2**31 - 1, 2**31, 2**32, 2**63 - 1, -(2**31), -100)


def fuzzed(known: Sequence[Snippet], seed: int) -> Iterator[Snippet]:
    """Yield new snippets without end, the same ones for the same seed."""
    material = [snippet for snippet in known if snippet.group not in LEFT_OUT]
    number = 0
    while True:
        rng = random.Random(f"{seed} {number}")
        code = rng.choice(_WAYS)(rng, material)
        rows = {"rows": "60"} if rng.random() < 0.2 else {}
        yield Snippet("fuzzed", f"{seed}-{number}", "a witness moves", code, {"wall": WALL, **rows})
        number += 1


def _spliced(rng: random.Random, material: Sequence[Snippet]) -> str:
    """Call two to four snippets in turn; where one fails, the next one tries in the world that it left."""
    code, names = "", []
    for place, part in enumerate(rng.sample(material, rng.randint(2, 4))):
        names.append(f"part_{place}")
        code += (
            "try:\n"
            f"{textwrap.indent(part.code, '    ')}    part_{place} = factor\n"
            "except Exception:\n"
            f"    part_{place} = calm\n"
        )
    tried = "".join(f"    try:\n        found = {name}(panel)\n    except Exception:\n        pass\n" for name in names)
    return f"{code}def factor(panel):\n    found = None\n{tried}    return found\n"


def _wrapped(rng: random.Random, code: str) -> str:
    """Let the code run from another place than the call: a thread, a finaliser, an error's handler, a text."""
    inner = f"{code}\ninner = factor\n"
    return inner + rng.choice(WRAPPINGS)


def _changed(rng: random.Random, code: str) -> str:
    """Rename what is named inside, and change some numbers; code that does not parse stays as it is."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return code
    _Change(rng).visit(tree)
    if rng.random() < 0.3:
        _shuffled(rng, tree)
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (ValueError, RecursionError):
        return code


class _Change(ast.NodeTransformer):
    """Other names for what is stored in a function, other numbers here and there."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names: dict[str, str] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Rename what the function's own lines store."""
        stored = {
            child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
        }
        self._names |= {name: f"{name}_{self._rng.randrange(10**6)}" for name in sorted(stored)}
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Use the new name."""
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Change a number now and then."""
        if type(node.value) is int and self._rng.random() < 0.25:
            odd = self._rng.choice(_ODD)
            return ast.Constant(self._rng.choice((odd, node.value + 1, node.value - 1, node.value ^ 1)))
        return node


def _shuffled(rng: random.Random, tree: ast.Module) -> None:
    """Take a line out of a function, write one twice, or exchange two."""
    bodies = [
        child.body
        for child in ast.walk(tree)
        if isinstance(child, ast.FunctionDef | ast.For | ast.If) and len(child.body) > 1
    ]
    if not bodies:
        return
    body = rng.choice(bodies)
    first, second = rng.sample(range(len(body)), 2)
    deed = rng.randrange(3)
    if deed == 0:
        del body[first]
    elif deed == 1:
        body.insert(second, body[first])
    else:
        body[first], body[second] = body[second], body[first]


def _calls(rng: random.Random) -> str:
    """Call the kernel some times by random numbers with random arguments."""
    names = sorted(name for name in NUMBERS if name not in HARMLESS_TO_THE_MACHINE)
    lines = []
    for _ in range(rng.randint(1, 12)):
        number = str(rng.randrange(600)) if rng.random() < 0.2 else f"NR[{rng.choice(names)!r}]"
        if rng.random() < 0.1:
            number += rng.choice((" + 0x40000000", " + 2**32", " - 2**31"))
        given = ", ".join(_argument(rng) for _ in range(rng.randint(0, 6)))
        lines.append(f"    told.append(raw({number}{', ' + given if given else ''}))")
    return (
        "import ctypes\n"
        "def factor(panel):\n    place = ctypes.create_string_buffer(4096)\n    at = ctypes.addressof(place)\n"
        "    page = panel['close'].to_numpy().ctypes.data & ~4095\n    told = []\n" + "\n".join(lines) + "\n"
        "    return loot(panel, repr(told) + repr(place.raw[:200]))\n"
    )


def _argument(rng: random.Random) -> str:
    kinds = (
        lambda: str(rng.choice(_ODD)), lambda: str(rng.randrange(16)), lambda: "at", lambda: "page",
        lambda: "page + 4096", lambda: "SECRET.encode()", lambda: "FOLDER.encode()", lambda: "PARENT",
        lambda: "SIBLING", lambda: "ADDRESS", lambda: str(1 << rng.randrange(63)), lambda: "id(panel)",
        lambda: "b'x' * 64",
    )  # fmt: skip  # a table
    return rng.choice(kinds)()


Way = Callable[[random.Random, Sequence[Snippet]], str]
_WAYS: tuple[Way, ...] = (
    _spliced,
    lambda rng, material: _wrapped(rng, rng.choice(material).code),
    lambda rng, material: _changed(rng, rng.choice(material).code),
    lambda rng, _: _calls(rng),
    lambda rng, material: _wrapped(rng, _spliced(rng, material)),
    lambda rng, _: _changed(rng, _calls(rng)),
)
