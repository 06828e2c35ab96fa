"""A small market of frames with what real ones have: gaps, a late listing, names that vanish, days without trade."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np

from alphaloom.sandbox import Frames

FOLDER = Path(__file__).parent
ONE_DAY = 25


@cache
def frames(days: int = 180, names: int = 12, seed: int = 7) -> Frames:
    """Return prices with fat tails, a common factor, two further columns, and holes."""
    rng = np.random.default_rng(seed)
    moves = 0.015 * rng.standard_t(4, (days, names)) + 0.01 * rng.standard_normal((days, 1))
    close = 50.0 * np.exp(np.cumsum(np.clip(moves, -0.3, 0.3), axis=0))
    opened = close * np.exp(0.005 * rng.standard_normal(close.shape))
    reach = np.exp(0.006 * np.abs(rng.standard_normal((2, days, names))))
    high, low = np.maximum(opened, close) * reach[0], np.minimum(opened, close) / reach[1]
    volume = np.round(np.exp(12.0 + 0.5 * rng.standard_normal(close.shape)))
    fields = {"open": opened, "high": high, "low": low, "close": close, "volume": volume}
    fields |= {"vwap": (high + low + close) / 3.0, "mood": rng.standard_normal(close.shape)}
    gone = np.zeros(close.shape, dtype=np.bool_)
    gone[: days // 3, 1] = gone[2 * days // 3 :, 2] = gone[days // 2, 4] = True
    gone[rng.random(close.shape) < 0.002] = True
    fields = {name: np.where(gone, np.nan, values) for name, values in fields.items()}
    fields["volume"][days // 4, 6] = 0.0
    fields["returns"] = np.full(close.shape, np.nan)
    fields["returns"][1:] = fields["close"][1:] / fields["close"][:-1] - 1.0
    dates = np.busday_offset("2019-01-01", np.arange(days), roll="forward")
    return Frames(fields, dates, tuple(f"N{number:02d}" for number in range(names)))


def code(path: Path, panel: Frames) -> str:
    """Return a snippet; what stands in capitals is what the snippet knows of the panel that it was written for."""
    seen = hashlib.sha256(panel.fields["close"].tobytes()).hexdigest()
    text = path.read_text(encoding="utf-8").replace("TRUE_HASH", repr(seen))
    return text.replace("ONE_DATE", repr(str(panel.dates[ONE_DAY]))).replace("LAST_DATE", repr(str(panel.dates[-1])))


def snippets(folder: str) -> list[Path]:
    """Return the snippets of a folder, sorted."""
    return sorted((FOLDER / folder).glob("*.py"))
