"""A log as static files (C2SP tlog-tiles): hashes in tiles of 256, entries in bundles of 256.

A tile of level 0 holds the hashes of leaves, one of level L + 1 the roots of full tiles of level L. The last tile of a
level may be partial; its width is then a part of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .tree import HASH_SIZE, compute_root

TILE_WIDTH = 256
ENTRIES_LEVEL = "entries"


def name_tile(level: int | str, index: int, width: int) -> str:
    """Return the path of a tile below the folder of the log; such as `tile/0/x001/234.p/7`."""
    digits = f"{index:03d}"
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    parts = [digits[place : place + 3] for place in range(0, len(digits), 3)]
    path = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
    return f"tile/{level}/{path}" + (f".p/{width}" if width < TILE_WIDTH else "")


def build_tiles(leaves: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every tile of hashes."""
    level, hashes = 0, list(leaves)
    while hashes:
        rows = [hashes[place : place + TILE_WIDTH] for place in range(0, len(hashes), TILE_WIDTH)]
        for index, row in enumerate(rows):
            yield name_tile(level, index, len(row)), b"".join(row)
        hashes = [compute_root(row) for row in rows if len(row) == TILE_WIDTH]
        level += 1


def build_bundles(entries: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every bundle of entries, each entry after its length in two bytes."""
    for index, place in enumerate(range(0, len(entries), TILE_WIDTH)):
        row = entries[place : place + TILE_WIDTH]
        body = b"".join(len(entry).to_bytes(2, "big") + entry for entry in row)
        yield name_tile(ENTRIES_LEVEL, index, len(row)), body


def read_leaves(folder: Path, size: int) -> list[bytes]:
    """Return the hashes of the first leaves from the tiles of level 0.

    Raises
    ------
    OSError
        If a tile is missing; `ValueError` if one is not as long as it must be.
    """
    hashes: list[bytes] = []
    for index, place in enumerate(range(0, size, TILE_WIDTH)):
        width = min(TILE_WIDTH, size - place)
        name = name_tile(0, index, width)
        body = (folder / name).read_bytes()
        if len(body) != width * HASH_SIZE:
            raise ValueError(f"{name} holds {len(body)} bytes, not {width * HASH_SIZE}")
        hashes += [body[start : start + HASH_SIZE] for start in range(0, len(body), HASH_SIZE)]
    return hashes


def split_bundle(body: bytes) -> list[bytes]:
    """Return the entries of a bundle; `ValueError` if its lengths do not add up."""
    entries, place = [], 0
    while place < len(body):
        length = int.from_bytes(body[place : place + 2], "big")
        entry = body[place + 2 : place + 2 + length]
        if len(entry) != length or place + 2 > len(body):
            raise ValueError("an entry is cut short")
        entries.append(entry)
        place += 2 + length
    return entries
