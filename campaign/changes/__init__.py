"""Change control: which version of model, prompt, router, policy and software was in use, and what may be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .bench import run_bench as run_bench
    from .bench_record import (
        BenchCheck as BenchCheck,
        BenchResult as BenchResult,
        list_benches as list_benches,
        refuse_unbenched as refuse_unbenched,
    )
    from .register import (
        record_versions as record_versions,
    )
    from .versions import (
        UsedVersion as UsedVersion,
        collect_versions as collect_versions,
        list_common_versions as list_common_versions,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "bench": "run_bench",
            "bench_record": "BenchCheck BenchResult list_benches refuse_unbenched",
            "register": "record_versions",
            "versions": "UsedVersion collect_versions list_common_versions",
        },
    )
