"""What documents cost a campaign in tokens, in about a minute: python -m bench.documents [FOLDER].

The same small campaign with the offline researcher, without documents and with them, twice in one workspace; beside it
what it would be to send all of them each time. Tokens are four characters each. Without a folder the made documents of
`bench.context` are told.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from alphaloom import Campaign
from alphaloom.campaign import Settings
from alphaloom.ledger import AlphaloomError, Ledger, read_settings
from alphaloom.router.context.chunks import count_tokens

from .context import SEED, scattered

SMALL = [
    "market.synthetic.days=420", "market.synthetic.names=60", "evidence.windows.min_selection_days=60",
    "evidence.windows.min_sealed_days=60", "agents.rounds=4", "agents.hypotheses=3", "agents.candidates=2",
    "agents.steps=0", "budget.evaluations=24", "budget.trials=0",
    "steer.goal=which firms lowered dividends because cash was short",
]  # fmt: skip  # a table


def asked(workspace: Path, *more: str) -> dict[str, list[int]]:
    """Run a campaign and return the tokens that were sent, a number for each call, by role."""
    Campaign(read_settings(None, Settings, [*SMALL, *more]), workspace).run()
    with Ledger.open(workspace, clock=lambda: datetime.now(UTC)) as ledger:
        calls = ledger.calls.of(ledger.runs.all()[-1].id)
    roles = sorted({call.role for call in calls})
    return {role: [call.tokens_in for call in calls if call.role == role and call.attempts] for role in roles}


def table(folder: Path, scratch: Path) -> Iterator[str]:
    """Yield the lines of the table."""
    total = sum(count_tokens(path.read_text()) for path in folder.iterdir())
    named = [f"context.documents=[{folder}]", "context.summaries=model"]
    plain = asked(scratch / "plain")
    runs = {
        "without": plain,
        "passages": asked(scratch / "told", *named),
        "passages, again": asked(scratch / "told", *named, "seed=8"),
    }
    rounds = len(plain["idea"])
    yield f"{len(list(folder.iterdir()))} documents, {total:,} tokens, {rounds} rounds"
    yield "| campaign | to the Idea agent | calls to summarise | tokens for that |"
    yield "|---|---|---|---|"
    for name, sent in runs.items():
        summaries = sent.get("report", [])
        yield f"| {name} | {sum(sent['idea']):,} | {len(summaries)} | {sum(summaries):,} |"
    yield f"| all of them each round | {sum(plain['idea']) + rounds * total:,} | 0 | 0 |"


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch) / "documents"
        if len(sys.argv) == 1:
            folder.mkdir()
            for number, text in enumerate(scattered(SEED)[0]):
                (folder / f"{number}.txt").write_text(text)
        try:
            for line in table(folder, Path(scratch)):
                print(line, flush=True)
        except AlphaloomError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
