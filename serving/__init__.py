"""Model servers: vLLM plans that fit a device, with arithmetic and expected speed; start and supervision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .architecture import (
        Architecture as Architecture,
        assume_int4 as assume_int4,
        find_model as find_model,
        list_models as list_models,
    )
    from .deployment_files import FILE_WRITERS as FILE_WRITERS, render_file as render_file
    from .devices import DEVICES as DEVICES, Device as Device, find_device as find_device
    from .errors import GatewayError as GatewayError, PortTaken as PortTaken, ServingError as ServingError
    from .installation import (
        BUILDS as BUILDS,
        ENVIRONMENT_FOLDER as ENVIRONMENT_FOLDER,
        SERVER_MODULE as SERVER_MODULE,
        VllmEnvironment as VllmEnvironment,
        choose_build as choose_build,
        find_environment as find_environment,
        install_vllm as install_vllm,
    )
    from .plan import (
        ServingPlan as ServingPlan,
        build_arguments as build_arguments,
        dump_plan as dump_plan,
        make_plan as make_plan,
        read_plan as read_plan,
    )
    from .request import (
        RecordedLengths as RecordedLengths,
        Request as Request,
        summarise_lengths as summarise_lengths,
    )
    from .supervision import ServerLaunch as ServerLaunch, supervise as supervise
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "architecture": "Architecture assume_int4 find_model list_models",
            "deployment_files": "FILE_WRITERS render_file",
            "devices": "DEVICES Device find_device",
            "errors": "GatewayError PortTaken ServingError",
            "installation": (
                "BUILDS ENVIRONMENT_FOLDER SERVER_MODULE VllmEnvironment choose_build find_environment install_vllm"
            ),
            "plan": "ServingPlan build_arguments dump_plan make_plan read_plan",
            "request": "RecordedLengths Request summarise_lengths",
            "supervision": "ServerLaunch supervise",
        },
    )
