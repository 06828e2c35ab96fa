"""A campaign from a script: on the synthetic market, or on your own prices with `--panel`.

python examples/first_campaign.py
python examples/first_campaign.py --panel your.parquet --sectors sectors.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

from alphaloom import Campaign

HERE = Path(__file__).parent


def main() -> None:
    """Run a small campaign and print its results."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--panel", type=Path, help="tidy Parquet or CSV; the synthetic market by default")
    options.add_argument("--sectors", type=Path, help="Parquet or CSV with symbol and sector")
    options.add_argument("--workspace", type=Path, default=Path(".alphaloom/first"))
    arguments = options.parse_args()

    campaign = Campaign.from_yaml(
        HERE / "us_daily.yaml",
        panel=arguments.panel,
        sectors=arguments.sectors,
        workspace=arguments.workspace,
        overrides=["budget.evaluations=80"],
    )
    result = campaign.run()

    for word, entries in (("accepted", result.accepted), ("watched", result.watchlist)):
        for entry in entries:
            print(f"{word}: {entry['text']}\n    because {entry['reasons'][-1]['message']}")
    print(f"{len(result.rejected)} rejected, {len(result.untested)} not tested; {result.trials} trials")
    print(result.power["sentence"])
    print(f"report: {result.report}")


if __name__ == "__main__":
    main()
