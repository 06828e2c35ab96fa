"""Run generated Python: contained by the kernel, and proven causal.

The boundary is the kernel's (Landlock, seccomp, namespaces, limits); no decision here relies on an analysis of the
code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .causality.proof import draw_seed as draw_seed, prove as prove
    from .causality.proof_record import CausalProof as CausalProof
    from .cluster import Cluster as Cluster, Crew as Crew
    from .errors import (
        BadInput as BadInput,
        BadResult as BadResult,
        Busy as Busy,
        Crashed as Crashed,
        NotCausal as NotCausal,
        NotDeterministic as NotDeterministic,
        OutOfMemory as OutOfMemory,
        Refused as Refused,
        SandboxError as SandboxError,
        SandboxUnavailable as SandboxUnavailable,
        TimedOut as TimedOut,
    )
    from .jail.frames import Frames as Frames
    from .job import Job as Job, Limits as Limits, Outcome as Outcome, Runner as Runner
    from .native.capability import Status as Status, probe_sandbox as probe_sandbox
    from .sandbox import Sandbox as Sandbox
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "causality.proof": "draw_seed prove",
            "causality.proof_record": "CausalProof",
            "cluster": "Cluster Crew",
            "errors": (
                "BadInput BadResult Busy Crashed NotCausal NotDeterministic OutOfMemory Refused SandboxError "
                "SandboxUnavailable TimedOut"
            ),
            "jail.frames": "Frames",
            "job": "Job Limits Outcome Runner",
            "native.capability": "Status probe_sandbox",
            "sandbox": "Sandbox",
        },
    )
