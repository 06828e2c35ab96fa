"""Labels that factors predict: the return from the next open to the open h days later, raw or residual."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...market import Panel
from ..windows import Window
from .exposures import Exposures, idiosyncratic_volatility, residualise_label

Frame = NDArray[np.float64]


def forward_returns(panel: Panel, horizon: int) -> Frame:
    """Return `open[t+1+h] / open[t+1] - 1` for each name of the universe on day t.

    Parameters
    ----------
    panel
        T days by N names; prices in currency, adjusted.
    horizon
        h, in days, at least 1.

    Returns
    -------
    Frame
        `[T, N]` simple returns, decimal. NaN where the name is not in the universe on t, has no open on t+1 (it could
        not be bought), or t+1+h lies beyond the panel. A name without an open on t+1+h (halted, or gone for good)
        ends at its last close.

    Notes
    -----
    A factor known at the close of t is traded at the open of t+1, so returns before that open do not count.
    """
    opens = panel.fields["open"]
    days = panel.days
    label = np.full(opens.shape, np.nan)
    if days <= horizon + 1:
        return label
    exit_price = np.where(np.isnan(opens), _carry_forward(panel.fields["close"]), opens)
    entry = opens[1 : days - horizon]
    label[: days - horizon - 1] = exit_price[1 + horizon :] / entry - 1.0
    label[~panel.universe] = np.nan
    return label


def _carry_forward(close: Frame) -> Frame:
    row = np.where(np.isnan(close), -1, np.arange(close.shape[0])[:, None])
    row = np.maximum.accumulate(row, axis=0)
    carried = np.take_along_axis(close, np.maximum(row, 0), axis=0)
    return np.where(row >= 0, carried, np.nan)


def next_open_returns(panel: Panel) -> Frame:
    """Return `open[t+2] / open[t+1] - 1` at t, `[T, N]`: the return of the first day of a sleeve formed at t."""
    return forward_returns(panel, 1)


def cut_label(label: Frame, window: Window, horizon: int) -> Frame:
    """Return a window's rows of a label.

    Parameters
    ----------
    label
        Forward returns ``[T, N]`` of the panel's days, decimal.
    window
        The rows to return.
    horizon
        Days of the label.

    Returns
    -------
    Frame
        A copy, ``[window.days, N]``; NaN on the last `horizon` + 1 days, whose label would end outside the window.
    """
    rows = window.cut(label).copy()
    rows[max(window.days - horizon - 1, 0) :] = np.nan
    return rows


def count_unlabelled(panel: Panel, window: Window, label: Frame, horizon: int) -> int:
    """Count the universe cells of a window that have no label, for want of an opening price."""
    rows = slice(window.start, max(window.stop - horizon - 1, window.start))
    return int(np.count_nonzero(panel.universe[rows] & np.isnan(label[rows])))


def build_label(raw: Frame, panel: Panel, exposures: Exposures, returns: str, label_scale: str) -> Frame:
    """Return the label: forward returns, raw or residual, as `evidence.returns` and `evidence.label_scale` say.

    Parameters
    ----------
    raw
        Forward returns ``[T, N]``, decimal, NaN missing.
    panel
        The same days; its daily returns give the idiosyncratic volatility.
    exposures
        Market, sector and size exposures of the same days.
    returns
        `raw` or `residual`.
    label_scale
        `own_risk` divides residuals by idiosyncratic volatility; `none` leaves them as returns.

    Returns
    -------
    Frame
        ``[T, N]``, NaN where `raw` is. Residual labels are of log returns, so that half the variance of a name is not
        read as a return.
    """
    if returns == "raw":
        return raw
    return residualise_label(
        np.log1p(raw), exposures, idiosyncratic_volatility(panel, exposures) if label_scale == "own_risk" else None
    )
