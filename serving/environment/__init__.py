"""An environment of its own for vLLM, beside this program's locked packages: made, resumed and found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .discovery import (
        ENVIRONMENT_FOLDER as ENVIRONMENT_FOLDER,
        SERVER_MODULE as SERVER_MODULE,
        VllmEnvironment as VllmEnvironment,
        find_environment as find_environment,
    )
    from .installation import BUILDS as BUILDS, choose_build as choose_build, install_vllm as install_vllm
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "discovery": "ENVIRONMENT_FOLDER SERVER_MODULE VllmEnvironment find_environment",
            "installation": "BUILDS choose_build install_vllm",
        },
    )
