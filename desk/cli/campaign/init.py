"""The command that writes a first campaign file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..console import print_object, print_plain
from ..options import AsJson

__all__ = ["CAMPAIGN_TEMPLATE", "init"]

CAMPAIGN_TEMPLATE = Path(__file__).with_name("template.yaml")


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("campaign.yaml"), as_json: AsJson = False
) -> None:
    """Write a campaign file with a comment on every setting; a file that exists is left alone."""
    from ..errors import FileExists

    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(CAMPAIGN_TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError:
        raise FileExists(
            f"{file} exists and is left as it is", field="file", got=str(file), hint="choose another name"
        ) from None
    if as_json:
        print_object({"file": str(file.resolve())})
    else:
        print_plain(f"wrote {file}; run it with: alphaloom run {file} --panel PRICES.parquet")
