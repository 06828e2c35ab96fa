"""The seed of a run's screens: what no author of code can know, and the run keeps.

The days on which code is screened follow from it. It is drawn when the run begins, before any code is proposed, and
written into the ledger: a run that is resumed screens as before. It does not follow from the campaign's file, nor from
the run's id, since an author may know both and choose code that behaves on the days that will be tried.

A new run of the same file draws another. Its results are the same to the byte nevertheless, unless code looks ahead on
so few days that a screen may miss it: no figure of a factor hangs on the seed, only whether a screen lets it through,
and the gate's sweep, which tries every day, hangs on no seed at all.
"""

from __future__ import annotations

from ...ledger import Ledger

__all__ = ["note_screening_seed", "read_screening_seed"]

SEED_EVENT_KIND, SEED_EVENT_KEY = "screening", "seed"


def note_screening_seed(ledger: Ledger, run: str, seed: int) -> None:
    """Write the seed of a new run into the ledger; it is told to nobody who writes code."""
    ledger.record_event(run, SEED_EVENT_KIND, SEED_EVENT_KEY, seed)


def read_screening_seed(ledger: Ledger, run: str) -> int | None:
    """Return the seed of a run's screens; None outside a campaign, where each screen draws its own."""
    noted = ledger.event(run, SEED_EVENT_KIND, SEED_EVENT_KEY)
    return None if noted is None else int(noted.body)
