"""What may be shown of a panel: the search window, the names that were members in it, and levels as they were known at its end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evaluation import Evaluator
from ...market import (
    NOT_POINT_IN_TIME,
    SHARE_COUNT_FIELDS,
    UNKNOWN_GROUP,
    Panel,
    adjusted_fields,
    hides_volumes,
    reset_volume_levels,
)
from ..errors import BadArguments, UnknownField
from ..served import ServedCaller

__all__ = ["VisiblePanel"]

MAX_LABELS_SHOWN = 100


@dataclass(frozen=True)
class VisiblePanel:
    """The search window of a caller's panel."""

    served: ServedCaller

    @property
    def evaluator(self) -> Evaluator:
        """The caller's run."""
        return self.served.evaluator

    @cached_property
    def panel(self) -> Panel:
        """The rows of the search window, as factors read them."""
        window = self.evaluator.windows.search
        return reset_volume_levels(self.evaluator.engine.panel.rows(window.start, window.stop))

    @cached_property
    def names(self) -> list[int]:
        """The columns of the names that are members on a day of it; later ones are not known yet."""
        return [int(place) for place in np.flatnonzero(self.panel.universe.any(axis=0))]

    @property
    def symbols(self) -> list[str]:
        """Their symbols."""
        return [self.panel.symbols[place] for place in self.names]

    @property
    def days(self) -> list[str]:
        """Its trading days."""
        return [str(day) for day in self.panel.dates]

    @property
    def adjustment(self) -> str:
        """How prices are adjusted for splits and dividends: anew until a day, none, or not point in time."""
        stamps = self.evaluator.panel.stamps
        told = [note for note in stamps if note == NOT_POINT_IN_TIME or note.startswith("prices: ")]
        if told:
            return told[0].removeprefix("adjustment: ")
        return NOT_POINT_IN_TIME.removeprefix("adjustment: ") if self.panel.back_adjusted else "none"

    def field(self, text: str) -> str:
        """Return the field that a text names; the parser refuses an unknown name, and says which is nearest.

        Raises
        ------
        FactorError
            No formula either.
        UnknownField
            A formula, or a field that this caller may not read.
        """
        root = self.evaluator.read(text).root
        allowed = self.evaluator.mandate.columns(self.evaluator.panel)
        if root.op == "field" and root.name in allowed:
            return root.name
        said = "This field may not be read here." if root.op == "field" else "Only fields can be shown, not formulas."
        hint = "" if root.op == "field" else "Score a formula with score_factor of the evaluation server."
        raise UnknownField(said, field="field", got=text[:100], allowed=sorted(allowed), hint=hint)

    def columns(self, symbols: list[str]) -> list[int]:
        """Return the columns of symbols, all of them where none is given.

        Raises
        ------
        BadArguments
            A symbol is not there.
        """
        if not symbols:
            return self.names
        places = dict(zip(self.symbols, self.names, strict=True))
        if strange := [symbol for symbol in symbols if symbol not in places]:
            raise BadArguments(
                "There is no such name in the search window.", field="symbols", got=strange[0][:80],
                allowed=self.symbols[:20], hint="describe_universe counts the names; preview_panel and get_history list them.",
            )  # fmt: skip
        return [places[symbol] for symbol in dict.fromkeys(symbols)]

    def values(
        self, name: str, first: int, stop: int, columns: list[int]
    ) -> tuple[NDArray[np.float64], dict[str, str]]:
        """Return a field's values ``[stop - first, names]`` as factors read them, and what to say of their level.

        Adjusted backwards, the level of a price is the quoted one times every later split and dividend. Here prices are
        adjusted forwards, and the level of volumes that may be in shares of a later day is hidden.
        """
        return self.panel.fields[name][first:stop, columns], self._describe_scale(name)

    def _describe_scale(self, name: str) -> dict[str, str]:
        """Return what to say of a field whose level is not the file's; what is judged lies in the search window."""
        if name in SHARE_COUNT_FIELDS and hides_volumes(self.panel):
            return {
                "scaled": "each name from 1,000,000 on its first day; `market.volumes: quoted` shows volumes as they are"
            }
        if name.startswith("adj"):
            return {"scaled": "each name from 1 on its first day"}
        if self.panel.back_adjusted and name in adjusted_fields(self.panel):
            begins = "the quoted close" if "close_raw" in self.panel.fields else "100"
            return {"scaled": f"adjusted forwards: each name from {begins} on its first day"}
        return {}

    def labels(self, word: str = "") -> list[dict[str, Any]]:
        """Return the groupings with the labels that a name of the search window bears; a word is in one of theirs."""
        panel, told = self.evaluator.panel, list[dict[str, Any]]()
        for name in sorted(panel.groups):
            borne = sorted({int(code) for code in panel.groups[name][self.names]} - {UNKNOWN_GROUP})
            labels = [panel.group_labels[name][code] for code in borne]
            if word in " ".join([name, *labels]).lower():
                told.append({"name": name, "count": len(labels), "labels": labels[:MAX_LABELS_SHOWN]})
        return told
