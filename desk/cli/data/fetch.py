"""The command that makes a panel of tickers."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import DeskError
from ...figures import plural
from ..console import print_object, print_plain
from ..options import AsJson, refuse_existing

if TYPE_CHECKING:
    from ....market import FetchedPrices, PriceSource

SURVIVORS = (
    "These are tickers of today: names that vanished are missing, so small and weak names look better than they were."
)
CAMPAIGN = """\
# {source}, fetched on {day}, tickers since {since}.
# {licence}
# {survivors}
market:
  panel: prices.parquet            # adjusted for splits and dividends; close_raw is the quoted close
  actions: actions.parquet
  volumes: {volumes}                  # {meaning}
"""
VOLUMES = {"quoted": "as traded that day, like close_raw; the prices are adjusted"}


def fetch(
    tickers: Annotated[
        list[str], typer.Argument(metavar="TICKERS...", help="As the vendor spells them, such as AAPL BRK-B 0005.HK.")
    ],
    since: Annotated[str, typer.Option("--since", metavar="DAY", help="First day: 2010 or 2010-01-04.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where prices, actions and a campaign file are written.")
    ] = Path("prices"),
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch prices, quoted closes, splits and dividends of tickers, and write a panel with its campaign file."""
    names = [name for text in tickers for name in re.split(r"[,\s]+", text) if name]
    begin = parse_since(since)
    targets = {name: out / name for name in ("prices.parquet", "actions.parquet", "campaign.yaml")}
    for target in targets.values():
        refuse_existing(target, force=force)
    from ....market import make_quotes

    source = choose_source()
    today = datetime.now(UTC).date()
    fetched = make_quotes(source.download(names, begin), today)
    write_files(targets, fetched, source, begin, today)
    _print_outcome(targets, fetched, source, as_json=as_json)


def parse_since(text: str) -> date:
    """Return the day of `2010`, `2010-06` or `2010-06-30`."""
    match = re.fullmatch(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", text.strip())
    try:
        if match:
            return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        pass
    raise DeskError("this is no day", field="--since", got=text, allowed="2010 or 2010-01-04", code="bad_day")


def choose_source() -> PriceSource:
    """Return the vendor; tests put one without a network in its place."""
    from ....market import YahooSource

    return YahooSource()


def write_files(
    targets: dict[str, Path], fetched: FetchedPrices, source: PriceSource, since: date, today: date
) -> None:
    """Write prices and actions, with their source in the files' metadata, and a campaign file beside them."""
    import pyarrow.parquet as pa_parquet

    for target in targets.values():
        target.parent.mkdir(parents=True, exist_ok=True)
    origin = {"source": source.name, "licence": source.licence, "fetched": today.isoformat()}
    origin["volumes"] = fetched.volumes
    for name, table in (("prices.parquet", fetched.prices), ("actions.parquet", fetched.actions)):
        pa_parquet.write_table(table.replace_schema_metadata(origin), targets[name])
    facts = {"source": source.name, "day": today, "since": since, "licence": source.licence, "survivors": SURVIVORS}
    body = CAMPAIGN.format(**facts, volumes=fetched.volumes, meaning=VOLUMES[fetched.volumes])
    targets["campaign.yaml"].write_text(body, encoding="utf-8")


def _print_outcome(targets: dict[str, Path], fetched: FetchedPrices, source: PriceSource, *, as_json: bool) -> None:
    """Print what was written, what is missing, and what the data cannot say."""
    import pyarrow.compute as pc

    days = pc.min_max(fetched.prices["date"])
    splits = int(pc.sum(pc.not_equal(fetched.actions["split"], 1.0)).as_py() or 0)
    dividends = int(pc.sum(pc.greater(fetched.actions["dividend"], 0.0)).as_py() or 0)
    if as_json:
        print_object(
            {
                "files": {name: str(path) for name, path in targets.items()},
                "symbols": list(fetched.symbols),
                "absent": list(fetched.absent),
                "first_day": str(days["min"].as_py()),
                "last_day": str(days["max"].as_py()),
                "rows": fetched.prices.num_rows,
                "cut": [str(day) for day in fetched.cut],
                "volumes": fetched.volumes,
                "splits": splits,
                "dividends": dividends,
                "source": source.name,
                "licence": source.licence,
            }
        )
        return
    span = f"{plural(len(fetched.symbols), 'symbol')}, {days['min'].as_py()} to {days['max'].as_py()}"
    print_plain(f"{span}: {plural(splits, 'split')}, {plural(dividends, 'dividend')}, from {source.name}")
    if fetched.absent:
        print_plain(f"without any price: {', '.join(fetched.absent)}")
    for day in fetched.cut:
        print_plain(f"left out: {day}, whose session may not be over; it comes once the day has ended in UTC")
    print_plain(f"volumes: {VOLUMES[fetched.volumes]} (market.volumes: {fetched.volumes})")
    print_plain(f"licence: {source.licence}")
    print_plain(f"survivorship: {SURVIVORS}")
    print_plain(f"written: {', '.join(str(path) for path in targets.values())}")
    print_plain(f"next: alphaloom data look {targets['prices.parquet']}")
