"""Constraints of a search: the fields that formulas may read, and the words that hypotheses must avoid."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..evidence import Claim, EvidenceError
from ..factors import Expression
from ..factors.describe import find_mention
from ..market import Panel


@dataclass(frozen=True)
class SearchConstraints:
    """A person's limits on a search, enforced by rule where factors are scored.

    Attributes
    ----------
    fields
        Columns that formulas may read; empty: all of the panel. Groupings such as sector are not columns.
    avoid
        Words or phrases that neither the mechanism nor the statement of a hypothesis may contain, compared by stems.
        The same idea in other words passes.
    seeds
        Texts of the person's own formulas. They are scored on search even if they are known, as parents of others; the
        gate accepts only original ones.
    told
        Whether error messages may name other fields of the panel; if not, these are treated as unknown.
    """

    fields: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    seeds: frozenset[str] = frozenset()
    told: bool = True

    def names(self, fields: Iterable[str]) -> tuple[str, ...]:
        """Return the fields that a formula may name; with `told` all: forbidden ones are refused by name later."""
        return tuple(fields) if self.told else self._select_allowed(fields)

    def columns(self, panel: Panel) -> tuple[str, ...]:
        """Return the fields of a panel that may be used, sorted."""
        return self._select_allowed(panel.fields)

    def _select_allowed(self, fields: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(name for name in fields if not self.fields or name in self.fields))

    def fit(self, panel: Panel) -> SearchConstraints:
        """Return the constraints unchanged if the panel has all their fields.

        Raises
        ------
        EvidenceError
            The panel lacks fields; the error names them all.
        """
        unknown = sorted({*self.fields} - {*panel.fields})
        if unknown:
            raise EvidenceError(
                f"The panel has no field {', '.join(unknown)}.",
                field="steer.fields",
                got=unknown,
                allowed=sorted(panel.fields) if self.told else None,
                hint="Name fields of the panel, or none to allow them all.",
            )
        return self

    def objections(self, expression: Expression, claim: Claim, groups: Collection[str]) -> list[str]:
        """Return a sentence for each violation by a formula or its hypothesis: fields first, then avoided words."""
        sentences = self.strange(expression.fields, groups)
        entry = find_mention((claim.mechanism, claim.statement), self.avoid)
        if entry:
            sentences.append(
                f"the hypothesis is about {entry!r}, which this campaign avoids (steer.avoid): take another mechanism"
            )
        return sentences

    def strange(self, names: Collection[str], groups: Collection[str]) -> list[str]:
        """Return a sentence for each field that may not be used."""
        refused = sorted({*names} - {*self.fields} - {*groups}) if self.fields else []
        rule = "steer.fields of the campaign, or the token"
        allowed = _join_names(self.fields)
        return [f"the field {name} may not be used here ({rule}): allowed are {allowed}" for name in refused]


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(sorted(names))
