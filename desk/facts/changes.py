"""The register of changes and the results of the bench, in words for the command line and for pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...campaign.changes import BenchResult
    from ...ledger import ChangeRow

DIGEST_CHARS: Final = 12
"""Characters of a digest that are shown."""
_WORDS: Final = {"beginning": "on record from here", "new": "new", "changed": "changed"}


@dataclass(frozen=True)
class ChangeLine:
    """One change as it is shown: when, what, by whom, in which run, the digests, and the lines of its diff.

    Of a model as it was served, `digests` are the versions as the server names them.
    """

    at: str
    label: str
    word: str
    account: str
    run: str
    digests: str
    diff: tuple[str, ...]


def describe_change(row: ChangeRow) -> ChangeLine:
    """Return a change in words, with keys masked and invisible characters made visible."""
    from ...factors.describe import replace_invisible
    from ...ledger import SERVED
    from ...router import mask_keys

    cut = None if row.kind == SERVED else DIGEST_CHARS
    before, after = (replace_invisible(mask_keys(text[:cut])) for text in (row.before, row.after))
    label, word = replace_invisible(mask_keys(f"{row.kind} {row.name}")), _WORDS[row.what]
    at = row.at[:16].replace("T", " ")
    diff = tuple(replace_invisible(line) for line in mask_keys(row.diff).splitlines())
    return ChangeLine(at, label, word, row.account, row.run, f"{before} to {after}" if before else after, diff)


def describe_bench(result: BenchResult) -> Iterator[str]:
    """Yield a line for each check of a bench, and one for the whole."""
    for check in result.checks:
        yield f"{'passed' if check.passed else 'FAILED'}: {check.name}: {check.found} (needed: {check.needed})"
    spent = f"{result.calls} model calls, ${result.usd:,.4f}"
    yield f"{'passed' if result.passed else 'FAILED'}: {len(result.versions)} versions of {result.campaign}, {spent}"
