"""The tree of an expression as frozen nodes, with paths to walk and edit it; the standard fields of a panel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

STANDARD_FIELDS: tuple[str, ...] = (
    "open", "high", "low", "close", "close_raw", "vwap", "volume", "returns", "amount", "cap",
)  # fmt: skip  # a table
STANDARD_GROUPS: tuple[str, ...] = ("sector", "industry")

Path = tuple[int, ...]

LEAVES = frozenset({"field", "number", "group"})


@dataclass(frozen=True, slots=True)
class Node:
    """One step of an expression: an operator with its arguments, or a leaf.

    Attributes
    ----------
    op : str
        Name of the operator, or ``field``, ``number``, ``group`` for a leaf.
    args : tuple of Node
        The panel and group arguments in the order of the operator's signature. In a canonical tree ``add``, ``mul``,
        ``and``, ``or``, ``max`` and ``min`` may have more than two.
    params : tuple of (str, float)
        Numbers of the operator (``window``, ``min_periods``, ``ddof``, ...), in the order of its signature; a keyword
        equal to its default is left out.
    value : float or None
        The number, for ``number``.
    name : str
        The column or grouping, for ``field`` and ``group``.
    """

    op: str
    args: tuple[Node, ...] = ()
    params: tuple[tuple[str, float], ...] = ()
    value: float | None = None
    name: str = ""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash once: engines and indices look nodes up often, and children have stored hashes."""
        object.__setattr__(self, "_hash", hash((self.op, self.args, self.params, self.value, self.name)))

    def __hash__(self) -> int:
        """Return the stored hash."""
        return self._hash

    def __reduce__(self) -> tuple[type[Node], tuple[object, ...]]:
        """Rebuild on unpickling, since hashes of strings differ between processes."""
        return Node, (self.op, self.args, self.params, self.value, self.name)

    @property
    def is_leaf(self) -> bool:
        """Return whether the node is a field, a number or a group."""
        return self.op in LEAVES

    @property
    def size(self) -> int:
        """Count the nodes of the tree: operators, fields, numbers and groups; windows are not counted."""
        return 1 + sum(arg.size for arg in self.args)

    @property
    def depth(self) -> int:
        """Count the levels of the tree, 1 for a leaf."""
        return 1 + max((arg.depth for arg in self.args), default=0)

    @property
    def window(self) -> int:
        """Return the window in rows, 0 where the operator has none."""
        return int(self.param("window", 0.0))

    def param(self, name: str, default: float) -> float:
        """Return the number with a name, or the default."""
        return dict(self.params).get(name, default)

    def with_params(self, **changes: float) -> Node:
        """Return the node with some numbers changed; new ones are added at the end."""
        params = dict(self.params) | {name: float(value) for name, value in changes.items()}
        return Node(self.op, self.args, tuple(params.items()), self.value, self.name)

    def with_args(self, *args: Node) -> Node:
        """Return the node with other arguments."""
        return Node(self.op, args, self.params, self.value, self.name)


def field_node(name: str) -> Node:
    """Make the leaf that reads a column."""
    return Node("field", name=name)


def number_node(value: float) -> Node:
    """Make the leaf of a number; -0.0 becomes 0.0."""
    return Node("number", value=float(value) + 0.0)


def group_node(name: str) -> Node:
    """Make the leaf that names a grouping."""
    return Node("group", name=name)


def call_node(op: str, *args: Node, params: Mapping[str, float] | None = None, **numbers: float) -> Node:
    """Make an operator node from its arguments and its numbers: ``call_node("ts_mean", x, window=20)``."""
    merged = {**(params or {}), **numbers}
    return Node(op, args, tuple((name, float(value)) for name, value in merged.items()))


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield every node with its path from the root, parents before children.

    A path is the positions of the arguments on the way down: ``()`` is the root, ``(1, 0)`` the first argument of
    the second argument.
    """
    yield path, node
    for position, arg in enumerate(node.args):
        yield from walk(arg, (*path, position))


def replace_node(node: Node, path: Path, new: Node) -> Node:
    """Return the tree with the node at a path replaced; the rest is shared, not copied."""
    if not path:
        return new
    head, rest = path[0], path[1:]
    args = list(node.args)
    args[head] = replace_node(args[head], rest, new)
    return node.with_args(*args)
