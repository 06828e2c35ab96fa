"""Credibility of a source before its text is read: a weight from 0 to 1.

The weight stated by the person who adds a file comes first, then that of the record, then the table below by source,
then the kind. The name in a feed is a claim of the feed, so add unknown feeds with a weight of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

ItemKind: TypeAlias = Literal["news", "filing", "post"]
ITEM_KINDS: tuple[ItemKind, ...] = ("news", "filing", "post")
MIN_CREDIBLE_WEIGHT = 0.5
"""From this weight on a source can begin a story; below it, many voices at once are suspect (`crowd`)."""
WEIGHT_BY_KIND: Mapping[ItemKind, float] = {"filing": 0.9, "news": 0.5, "post": 0.2}
"""A filing is signed and punishable, an article has an editor, a post has neither."""
WEIGHT_BY_SOURCE: Mapping[str, float] = {
    "edgar": 0.9,
    "sec": 0.9,
    "federal reserve": 0.9,
    "associated press": 0.9,
    "bloomberg": 0.9,
    "dow jones": 0.9,
    "reuters": 0.9,
    "financial times": 0.85,
    "wall street journal": 0.85,
    "business wire": 0.7,
    "globenewswire": 0.7,
    "pr newswire": 0.7,
    "benzinga": 0.55,
    "seeking alpha": 0.45,
    "reddit": 0.15,
    "stocktwits": 0.15,
    "twitter": 0.2,
}
"""Regulators, agencies that correct errors, the press, wires that issuers pay for, columns, platforms."""


def weigh_source(source: str, kind: ItemKind, weights: Mapping[str, float], stated: float | None = None) -> float:
    """Return the weight of a source.

    Parameters
    ----------
    source : str
        Its name; of `platform/author` the whole name is looked for first, then the platform.
    kind : ItemKind
        Kind of the item.
    weights : Mapping[str, float]
        Weights given by a person, by source in lower case; `*` is for all others.
    stated : float, optional
        The weight that the record itself states.

    Returns
    -------
    float
        From 0 to 1.
    """
    name = source.casefold()
    keys = (name, name.partition("/")[0])
    personal = [weights[key] for key in (*keys, "*") if key in weights]
    if personal or stated is not None:
        return personal[0] if personal else float(stated or 0.0)
    return next((WEIGHT_BY_SOURCE[key] for key in keys if key in WEIGHT_BY_SOURCE), WEIGHT_BY_KIND[kind])
