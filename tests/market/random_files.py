"""Files of the same prices, written at random in the ways in which people have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from alphaloom.market import Reading

FIELDS = ("open", "high", "low", "close", "volume")
LAYOUTS = ("tidy", "tidy", "tidy", "yahoo", "levels swapped", "joined names", "folder of fields", "folder of symbols")
NUMBERS = ("plain", "plain", "1,234.50", "1.234,50", "1234,50", "$1234.50", "1 234,50", "1'234.50")
DATES = (
    *("%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d 00:00:00", "%Y%m%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y"),
    *("%d-%b-%Y", "%b %d, %Y", "%d/%m/%y", "%Y-%m-%d 00:00:00-05:00", "%Y-%m-%dT05:00:00Z", "unix", "excel"),
)
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1")
NAMES = {
    "date": ("date", "Date", "DATE", "Datetime", "timestamp", "Datum"),
    "symbol": ("symbol", "Symbol", "Ticker", "ticker", "Name"),
    "open": ("open", "Open", "1. open", "Eröffnung"),
    "high": ("high", "High", "HIGH"),
    "low": ("low", "Low"),
    "close": ("close", "Close", "Schluss"),
    "volume": ("volume", "Volume", "Vol."),
}
KNOWN_NAMES = {
    "date",
    "datetime",
    "timestamp",
    "symbol",
    "ticker",
    "open",
    "1. open",
    "high",
    "low",
    "close",
    "volume",
    "vol.",
}
DAMAGE = ("no column", "other values", "words", "bad dates", "negative prices of nobody")
SYMBOL_SETS = (("AAA", "BBB", "CCC"), ("BRK.B", "Müller", "0005.HK"), ("000001", "300750", "600519"), ("a", "A", "A-B"))


@dataclass(frozen=True)
class RandomFile:
    """A file, the tidy frame that it holds, and the settings that say what the file does not."""

    path: Path
    truth: pd.DataFrame
    settings: dict[str, Any] = field(default_factory=dict)
    story: str = ""
    damaged: bool = False


def make_truth(draw: np.random.Generator) -> pd.DataFrame:
    """Return tidy prices of three symbols, of which some list late or vanish."""
    days = pd.bdate_range(pd.Timestamp("2013-01-01") + pd.Timedelta(days=int(draw.integers(0, 400))), periods=25)
    rows = []
    level = float(draw.choice([5.0, 80.0, 4000.0]))
    for symbol in SYMBOL_SETS[draw.integers(len(SYMBOL_SETS))]:
        close = np.round(level * np.exp(np.cumsum(draw.normal(0, 0.02, len(days)))), 2)
        part = pd.DataFrame({"date": days, "symbol": symbol, "open": np.round(close * 1.01, 2)})
        part["high"], part["low"], part["close"] = np.round(close * 1.03, 2), np.round(close * 0.97, 2), close
        part["volume"] = draw.integers(100, 9_000_000, len(days))
        rows.append(part.iloc[int(draw.integers(0, 4)) : len(days) - int(draw.integers(0, 4))])
    return pd.concat(rows).sort_values(["date", "symbol"], ignore_index=True)


def write_random_file(folder: Path, seed: int) -> RandomFile:
    """Write one file, or a folder of files."""
    draw = np.random.default_rng(seed)
    truth = make_truth(draw)
    pick = {
        name: str(draw.choice(choices))
        for name, choices in (("layout", LAYOUTS), ("number", NUMBERS), ("date", DATES), ("encoding", ENCODINGS))
    }
    parquet = bool(draw.random() < 0.2)
    settings: dict[str, Any] = {}
    frame = truth.assign(date=write_dates(truth["date"], pick["date"], settings))
    for name in FIELDS:
        frame[name] = write_numbers(frame[name], pick["number"], settings)
    if draw.random() < 0.1 and pick["layout"] == "tidy":
        frame = pd.concat([frame, frame.head(3)])
        settings["duplicates"] = "drop_equal"
    if draw.random() < 0.5:
        frame = frame.iloc[draw.permutation(len(frame))] if draw.random() < 0.5 else frame.iloc[::-1]
    damage = str(draw.choice(DAMAGE)) if pick["layout"] == "tidy" and draw.random() < 0.3 else ""
    if damage:
        frame = spoil(frame, damage)
    writer = Writer(folder, pick["encoding"], str(draw.choice([",", ";", "\t", "|"])), parquet)
    path = lay_out(frame, pick["layout"], writer, draw, settings)
    form = "parquet" if parquet else repr(writer.separator)
    story = f"seed {seed}: {pick}, {form}, {settings} {damage}"
    return RandomFile(path, truth, settings, story, bool(damage))


def spoil(frame: pd.DataFrame, damage: str) -> pd.DataFrame:
    """Return the frame with something in it that no setting can answer."""
    if damage == "no column":
        return frame.drop(columns="low")
    if damage == "other values":
        return pd.concat([frame, frame.head(2).assign(volume=["1", "2"])]).astype({"volume": str})
    if damage == "words":
        return frame.assign(close="see the notes of the desk for this price", high="n.v.")
    if damage == "bad dates":
        return frame.assign(date=["2013-02-30", *["soon"] * (len(frame) - 1)])
    return frame.astype({"open": str}).assign(open="-5", symbol="")


def write_dates(days: pd.Series[Any], form: str, settings: dict[str, Any]) -> Any:
    """Return the days as they are written, and keep what they do not say themselves."""
    if form == "unix":
        settings["dates"] = "unix"
        return days.dt.as_unit("s").astype("int64")
    if form == "excel":
        settings["dates"] = "excel"
        return (days - pd.Timestamp("1899-12-30")).dt.days
    if form in ("%d/%m/%Y", "%d.%m.%Y", "%d/%m/%y", "%m/%d/%Y"):
        settings["dates"] = "month_first" if form.startswith("%m") else "day_first"
    if form.endswith(("Z", "-05:00")):
        settings["time_zone"] = "America/New_York"
    return days.dt.strftime(form)


def write_numbers(values: pd.Series[Any], style: str, settings: dict[str, Any]) -> Any:
    """Return the numbers as they are written."""
    if style == "plain":
        return values
    settings["decimal"] = "comma" if style.endswith(",50") else "point"
    whole = values.dtype.kind == "i"
    texts = [f"{value:,.0f}" if whole else f"{value:,.2f}" for value in values]
    marks = {
        "1,234.50": ",.",
        "1.234,50": ".,",
        "1234,50": " ,",
        "$1234.50": " .",
        "1 234,50": "\u00a0,",
        "1'234.50": "'.",
    }
    table = str.maketrans(",.", marks[style])
    written = [text.translate(table) for text in texts]
    if style in ("1234,50", "$1234.50"):
        written = [text.replace(" ", "") for text in written]
    return [f"${text}" for text in written] if style.startswith("$") and not whole else written


@dataclass(frozen=True)
class Writer:
    """How files are written."""

    folder: Path
    encoding: str
    separator: str
    parquet: bool

    def write(self, frame: pd.DataFrame, name: str, *, index: bool) -> Path:
        """Write a frame."""
        if self.parquet:
            path = self.folder / f"{name}.parquet"
            frame.to_parquet(path, index=index)
            return path
        path = self.folder / f"{name}.csv"
        path.write_bytes(frame.to_csv(index=index, sep=self.separator).encode(self.encoding))
        return path


def lay_out(
    frame: pd.DataFrame, layout: str, writer: Writer, draw: np.random.Generator, settings: dict[str, Any]
) -> Path:
    """Write a frame in a layout."""
    if layout == "tidy":
        names = {name: str(draw.choice(NAMES[name])) for name in NAMES}
        columns = {name: given for name, given in names.items() if given.lower() not in KNOWN_NAMES}
        if columns:
            settings["columns"] = columns
        order = [list(frame.columns)[place] for place in draw.permutation(len(frame.columns))]
        return writer.write(frame[order].rename(columns=names), "prices", index=False)
    if layout == "folder of symbols":
        (writer.folder / "tables").mkdir()
        inner = Writer(writer.folder / "tables", writer.encoding, writer.separator, writer.parquet)
        for symbol, part in frame.groupby("symbol"):
            inner.write(part.drop(columns="symbol"), str(symbol), index=False)
        return inner.folder
    wide = frame.pivot(index="date", columns="symbol", values=list(FIELDS))
    if layout == "folder of fields":
        (writer.folder / "tables").mkdir()
        inner = Writer(writer.folder / "tables", writer.encoding, writer.separator, writer.parquet)
        for name in FIELDS:
            inner.write(frame.pivot(index="date", columns="symbol", values=name), name, index=True)
        return inner.folder
    if layout == "joined names":
        wide.columns = pd.Index([f"{pair[1]}_{pair[0]}" for pair in wide.columns.to_flat_index()])
        return writer.write(wide, "prices", index=True)
    wide = wide.rename(columns=str.capitalize, level=0).rename_axis(columns=["Price", "Ticker"], index="Date")
    return writer.write(wide.swaplevel(axis=1) if layout == "levels swapped" else wide, "prices", index=True)


def settle(file: RandomFile) -> Reading:
    """Return the settings that say all that the file does not."""
    return Reading.model_validate(file.settings)
