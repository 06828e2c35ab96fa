"""What a campaign may work on: the fields that formulas may read, and what hypotheses may not speak of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..evidence import Claim, EvidenceError
from ..factors import Expression
from ..factors.describe import find_mention
from ..market import Panel


@dataclass(frozen=True)
class SearchConstraints:
    """A person's limits on a search, held by rule: no agent can talk its way around them.

    Attributes
    ----------
    fields
        Columns that formulas may read; none named: all of the panel. Groupings such as sector are no columns.
    avoid
        Words or phrases that neither the mechanism's name nor the statement of a hypothesis may hold, compared by stems.
        What is said in other words passes: this reads words, not minds.
    seeds
        Texts of the person's own formulas. They are scored on search though they are known already, as parents of others;
        the gate takes none that is not original.
    told
        Whether other fields of the panel may be named to whoever works under it; else they are as unknown as any.
    """

    fields: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    seeds: frozenset[str] = frozenset()
    told: bool = True

    def names(self, fields: Iterable[str]) -> tuple[str, ...]:
        """Return those of a panel's fields that a formula may name: what it may not read is refused by name later."""
        return tuple(fields) if self.told else self._used(fields)

    def columns(self, panel: Panel) -> tuple[str, ...]:
        """Return the fields of a panel that may be used, sorted."""
        return self._used(panel.fields)

    def _used(self, fields: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(name for name in fields if not self.fields or name in self.fields))

    def fit(self, panel: Panel) -> SearchConstraints:
        """Return it unchanged if the panel has the fields that are named.

        Raises
        ------
        EvidenceError
            It lacks some; all of them are named.
        """
        strange = sorted({*self.fields} - {*panel.fields})
        if strange:
            raise EvidenceError(
                f"The panel has no field {', '.join(strange)}.", field="steer.fields", got=strange,
                allowed=sorted(panel.fields) if self.told else None, hint="Name fields of the panel, or none to allow them all.",
            )  # fmt: skip
        return self

    def objections(self, expression: Expression, claim: Claim, groups: Collection[str]) -> list[str]:
        """Return what a formula or its hypothesis may not, in words: fields first, then what is to be avoided."""
        found = self.strange(expression.fields, groups)
        entry = find_mention((claim.mechanism, claim.statement), self.avoid)
        if entry:
            found.append(
                f"the hypothesis is about {entry!r}, which this campaign avoids (steer.avoid): take another mechanism"
            )
        return found

    def strange(self, names: Collection[str], groups: Collection[str]) -> list[str]:
        """Return a sentence for each field that may not be used."""
        refused = sorted({*names} - {*self.fields} - {*groups}) if self.fields else []
        return [
            f"the field {name} may not be used here (steer.fields of the campaign, or the token): allowed are {_join_names(self.fields)}"
            for name in refused
        ]


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(sorted(names))
