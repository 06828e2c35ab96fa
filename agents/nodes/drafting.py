"""Drafts: formulas that a forecast judges before any is scored, and that an agent may change by what it says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ...factors.python import is_python
from ..protocols import Json, Toolbox

__all__ = ["MAX_DRAFTS", "Drafting"]

MAX_DRAFTS = 512
FORECAST = ("rank_ic", "known")
MIN_DRAFTS_HANDED_BACK = 16
"""Drafts that an agent is shown to change: those most worth scoring."""

AskRevision = Callable[[int, Sequence[Json]], Awaitable[list[Json]]]
"""Asks for further drafts: the number of the time, and the drafts to change with what is expected of each."""


@dataclass(frozen=True)
class Drafting:
    """Chooses among the drafts of one branch.

    Attributes
    ----------
    box
        Holds the tool ``evaluation.choose_drafts``.
    hypothesis
        As the evaluation server takes it.
    like
        The id of a scored factor that the drafts are to improve; empty for none.
    either
        Whether the hypothesis claims no direction: what promises the opposite one is then turned round.
    """

    box: Toolbox
    hypothesis: Json
    like: str
    either: bool

    async def redrafted(self, drafts: list[Json], count: int, times: int, ask: AskRevision) -> list[Json]:
        """Return the drafts after those most worth scoring were handed back so many times; changes of them have joined these.

        Of the others only Python code stays, of which nothing can be expected. Where fewer promise anything than may be
        scored, all stay and nobody is asked.
        """
        for number in range(1, times + 1):
            best = await self._best(drafts, max(count, MIN_DRAFTS_HANDED_BACK)) if len(drafts) > count else []
            if len(best) < count:
                break
            plain = [{name: value for name, value in each.items() if name not in FORECAST} for each in best]
            drafts = [*await ask(number, best), *plain, *filter(_is_code, drafts)][:MAX_DRAFTS]
        return drafts

    async def worthiest(self, drafts: list[Json], count: int) -> list[Json]:
        """Return as many drafts as may be scored: the first Python code, those that promise most, then the rest in order.

        Of code nothing can be expected before it runs. Where fewer promise anything than may be scored, places are left for
        what cannot be read or would be refused: it is worth a repair.
        """
        if len(drafts) <= count:
            return drafts
        told = await self._told(drafts, count)
        code = [place for place, draft in enumerate(drafts) if _is_code(draft)]
        turned = {row["place"]: {**drafts[row["place"]], "text": row["text"]} for row in told["turned"]}
        chosen = list(dict.fromkeys([*code[:1], *told["chosen"], *range(len(drafts))]))
        return [turned.get(place, drafts[place]) for place in chosen[:count]]

    async def _best(self, drafts: Sequence[Json], count: int) -> list[Json]:
        """Return the drafts that are most worth scoring, for what they promise or would tell, each with what is expected of it."""
        told = await self._told(drafts, count)
        rows = [(drafts[place], told["forecasts"][place] or {}) for place in told["chosen"]]
        return [{**draft, "rank_ic": said.get("beside"), "known": said.get("known")} for draft, said in rows]

    async def _told(self, drafts: Sequence[Json], count: int) -> Json:
        like = {"like": self.like} if self.like else {}
        texts = [draft["text"] for draft in drafts[:MAX_DRAFTS]]
        asked = {"texts": texts, "hypothesis": self.hypothesis, "count": min(count, 64), "either": self.either, **like}
        told: Json = await self.box.call("evaluation.choose_drafts", asked)
        return told


def _is_code(draft: Json) -> bool:
    return is_python(draft["text"])
