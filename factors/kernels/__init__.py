"""The kernels of the factor engine: machine code over arrays of days and names.

Every source that a kernel depends on is in this folder, because the cache of compiled kernels is keyed by it.
"""

from __future__ import annotations

from .table import KERNELS, Call

__all__ = ["KERNELS", "Call"]
