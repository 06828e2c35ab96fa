"""The known formulas most similar to one, as plain facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ..figures import any_value, plural

if TYPE_CHECKING:
    from ...evidence.originality import InvertedIndex
    from ...factors import Expression
    from ...factors.similarity import Likeness
    from ...ledger import Ledger, LibraryRow


Facts = dict[str, Any]


class ReadableNames(TypedDict):
    """The columns and groupings that a formula may read, as `parse` takes them."""

    fields: frozenset[str]
    groups: frozenset[str]


def list_standard_names() -> ReadableNames:
    """Return the standard columns and groupings."""
    from ...factors.language import STANDARD_FIELDS, STANDARD_GROUPS

    return {"fields": frozenset(STANDARD_FIELDS), "groups": frozenset(STANDARD_GROUPS)}


def find_nearest_formulas(mine: Expression, top: int, indexes: Sequence[InvertedIndex]) -> list[Likeness]:
    """Return the published formulas and those of some indexes that share most with one."""
    from ...evidence.originality import Catalogue, read_published

    return Catalogue((read_published(), *indexes)).nearest(mine, top)


def index_library(ledger: Ledger, names: ReadableNames) -> Sequence[InvertedIndex]:
    """Return the index of a workspace's library; formulas that this version cannot read are left out."""
    from ...evidence.originality import KnownLibrary
    from ...factors import parse

    def read(row: LibraryRow) -> Expression:
        fields = {*names["fields"], *row.sheet.get("fields", ())}
        return parse(row.text, fields=fields, groups=names["groups"], refuse_units=False)

    return KnownLibrary(ledger.workspace, read, ledger.library.rows()).shelves


def describe_likeness(mine: Expression, likeness: Likeness) -> Facts:
    """Return the row of a similar formula."""
    match = likeness.known
    return {
        "id": match.name,
        "text": match.text,
        "ratio": round(likeness.ratio, 4),
        "shared": likeness.shared,
        "why": "; ".join(_list_reasons(mine, likeness)),
        "where": match.where,
    }


def _list_reasons(mine: Expression, likeness: Likeness) -> Iterator[str]:
    """Yield in words how much is shared, and which numbers are close."""
    from ...factors.similarity import draw_outline

    part, own, match_size = likeness.part, draw_outline(mine.core).size, likeness.known.size
    assert part is not None
    if mine.shown == likeness.known.text:
        yield "the same formula"
    elif part.size == own == match_size:
        yield "the same, but for its sign, its options, and last steps that keep the order of names"
    elif part.size == own:
        yield f"yours stands whole in it: {own} of its {plural(match_size, 'node')}"
    elif part.size == match_size:
        yield f"it stands whole in yours: {match_size} of your {plural(own, 'node')}"
    else:
        yield f"{plural(part.size, 'node')} in common, of {own} of yours and {match_size} of its own"
    near = [
        f"{any_value(other_value)} for {any_value(mine_value)}"
        for mine_value, other_value in dict.fromkeys(zip(part.numbers, likeness.theirs, strict=True))
        if mine_value != other_value
    ]
    if near:
        yield f"numbers are near: {', '.join(near)}"
