"""The tree against the definition of RFC 6962, for every size below 100."""

from __future__ import annotations

import hashlib

import pytest

from alphaloom.ledger.log import tree

LEAVES = [tree.hash_leaf(bytes([number])) for number in range(100)]


def slow_root(leaves: list[bytes]) -> bytes:
    """Return the root as section 2.1 of the RFC defines it."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = max(1 << power for power in range(8) if 1 << power < len(leaves))
    return hashlib.sha256(b"\x01" + slow_root(leaves[:split]) + slow_root(leaves[split:])).digest()


ROOTS = [slow_root(LEAVES[:size]) for size in range(100)]


def test_every_root_is_that_of_the_definition() -> None:
    assert [tree.compute_root(LEAVES[:size]) for size in range(100)] == ROOTS


@pytest.mark.parametrize("size", range(100))
def test_every_inclusion_proof_leads_to_the_root_and_from_no_other_leaf(size: int) -> None:
    for index in range(size):
        proof = tree.prove_inclusion(LEAVES[:size], index)
        assert tree.compute_root_from_inclusion(LEAVES[index], index, size, proof) == ROOTS[size]
        assert tree.compute_root_from_inclusion(LEAVES[index - 1], index, size, proof) != ROOTS[size] or size == 1
        assert tree.compute_root_from_inclusion(LEAVES[index], index, size, [*proof, LEAVES[0]]) is None
        if proof:
            assert tree.compute_root_from_inclusion(LEAVES[index], index, size, proof[:-1]) is None


@pytest.mark.parametrize("size", range(100))
def test_every_consistency_proof_holds_for_its_two_roots_alone(size: int) -> None:
    for old in range(size + 1):
        proof = tree.prove_consistency(LEAVES[:size], old)
        assert tree.check_consistency(old, ROOTS[old], size, ROOTS[size], proof)
        assert old == 0 or not tree.check_consistency(old, LEAVES[0][::-1], size, ROOTS[size], proof)
        assert old == 0 or not tree.check_consistency(old, ROOTS[old], size, LEAVES[0][::-1], proof)
        assert not tree.check_consistency(old, ROOTS[old], size, ROOTS[size], [*proof, LEAVES[0]])
        assert not proof or not tree.check_consistency(old, ROOTS[old], size, ROOTS[size], proof[:-1])


def test_no_proof_is_made_for_what_is_not_there() -> None:
    with pytest.raises(IndexError, match="no leaf 3"):
        tree.prove_inclusion(LEAVES[:3], 3)
    with pytest.raises(ValueError, match="does not continue"):
        tree.prove_consistency(LEAVES[:3], 4)
    assert tree.compute_root_from_inclusion(LEAVES[0], 3, 3, []) is None
    assert not tree.check_consistency(4, ROOTS[4], 3, ROOTS[3], [])
    with pytest.raises(ValueError, match="no frontier"):
        tree.Frontier(3, LEAVES[:1])
