"""The Merkle tree of RFC 6962: root, proofs that a leaf is in it, and proofs that one tree continues another.

Hashes are SHA-256 and 32 bytes long. A leaf is hashed after a byte 0x00, a pair of nodes after a byte 0x01, so that no
leaf can be passed off as a node. The root of an empty tree is the hash of nothing.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence

HASH_SIZE = 32


def hash_leaf(entry: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\x00" + entry).digest()


def hash_pair(left: bytes, right: bytes) -> bytes:
    """Return the hash of two nodes."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """The full subtrees of a tree, largest first: enough to append a leaf and to compute the root.

    Attributes
    ----------
    size : int
        Number of leaves.
    nodes : list of bytes
        Hashes of the subtrees; one for each bit that is set in `size`.
    """

    def __init__(self, size: int = 0, nodes: Sequence[bytes] = ()) -> None:
        if len(nodes) != size.bit_count() or any(len(node) != HASH_SIZE for node in nodes):
            raise ValueError(f"{len(nodes)} hashes are no frontier of a tree of {size} leaves")
        self.size = size
        self.nodes = list(nodes)

    def push(self, leaf: bytes) -> None:
        """Append the hash of a leaf."""
        self.nodes.append(leaf)
        full = self.size
        while full & 1:
            right = self.nodes.pop()
            self.nodes[-1] = hash_pair(self.nodes[-1], right)
            full >>= 1
        self.size += 1

    def root(self) -> bytes:
        """Return the root."""
        if not self.nodes:
            return hashlib.sha256().digest()
        root = self.nodes[-1]
        for node in reversed(self.nodes[:-1]):
            root = hash_pair(node, root)
        return root


def encode_nodes(frontier: Frontier) -> str:
    """Return the subtrees of a tree as text."""
    return b64encode(b"".join(frontier.nodes)).decode()


def compute_root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over the hashes of leaves."""
    frontier = Frontier()
    for leaf in leaves:
        frontier.push(leaf)
    return frontier.root()


def prove_inclusion(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from a leaf to the root, the sibling of the leaf first.

    Raises
    ------
    IndexError
        If the tree has no such leaf.
    """
    if not 0 <= index < len(leaves):
        raise IndexError(f"a tree of {len(leaves)} leaves has no leaf {index}")
    proof, start, stop = [], 0, len(leaves)
    while stop - start > 1:
        middle = start + _split(stop - start)
        if index < middle:
            proof.append(compute_root(leaves[middle:stop]))
            stop = middle
        else:
            proof.append(compute_root(leaves[start:middle]))
            start = middle
    return proof[::-1]


def compute_root_from_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root to which a proof leads from a leaf; None if a proof in a tree of this size has another length."""
    if not 0 <= index < size:
        return None
    steps, node, last = list(proof), leaf, size - 1
    while last > 0:
        if index & 1 or index < last:
            if not steps:
                return None
            sibling = steps.pop(0)
            node = hash_pair(sibling, node) if index & 1 else hash_pair(node, sibling)
        index, last = index >> 1, last >> 1
    return None if steps else node


def prove_consistency(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Return the hashes that show that the tree of the first `old` leaves is the beginning of this tree.

    Raises
    ------
    ValueError
        If there are fewer leaves.
    """
    if not 0 <= old <= len(leaves):
        raise ValueError(f"a tree of {len(leaves)} leaves does not continue one of {old}")
    proof: list[bytes] = []
    start, stop, known = 0, len(leaves), True  # `known`: the verifier has the root of this subtree already
    while 0 < old < stop:
        middle = start + _split(stop - start)
        if old <= middle:
            proof.append(compute_root(leaves[middle:stop]))
            stop = middle
        else:
            proof.append(compute_root(leaves[start:middle]))
            start, known = middle, False
    if not known:
        proof.append(compute_root(leaves[start:stop]))
    return proof[::-1]


def check_consistency(old: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that the tree with `root` continues the tree with `old_root`."""
    if old > size:
        return False
    if old in (0, size):
        return not proof and (old == 0 or old_root == root)
    steps = list(proof)
    index, last = old - 1, size - 1
    while index & 1:  # the old tree is full up to here: its root is where the proof begins
        index, last = index >> 1, last >> 1
    if index and not steps:
        return False
    mine = theirs = steps.pop(0) if index else old_root
    while last > 0:
        if index & 1 or index < last:
            if not steps:
                return False
            sibling = steps.pop(0)
            if index & 1:
                mine, theirs = hash_pair(sibling, mine), hash_pair(sibling, theirs)
            else:
                theirs = hash_pair(theirs, sibling)
        index, last = index >> 1, last >> 1
    return not steps and mine == old_root and theirs == root


def _split(size: int) -> int:
    """Return the largest power of two that is smaller than a size."""
    return 1 << ((size - 1).bit_length() - 1)
