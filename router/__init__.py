"""Which model answers what, at what price; every call typed, capped, recorded and validated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .calls.backend import load_litellm as load_litellm
    from .calls.task import Message as Message, Reply as Reply, Task as Task
    from .config import (
        ModelBudget as ModelBudget,
        ModelSettings as ModelSettings,
        RouterConfig as RouterConfig,
        Tier as Tier,
        TierChoice as TierChoice,
    )
    from .errors import (
        AccessRefused as AccessRefused,
        AlphaloomError as AlphaloomError,
        BadCall as BadCall,
        BudgetEnded as BudgetEnded,
        CallTooLarge as CallTooLarge,
        Confidential as Confidential,
        ConfidentialWaits as ConfidentialWaits,
        DeviceLacks as DeviceLacks,
        DoesNotFit as DoesNotFit,
        EndpointAway as EndpointAway,
        GatewayEnds as GatewayEnds,
        GatewayError as GatewayError,
        ModelFailed as ModelFailed,
        NoModel as NoModel,
        NoServer as NoServer,
        NotAdmitted as NotAdmitted,
        NotAllowed as NotAllowed,
        NotServed as NotServed,
        PlanUnreadable as PlanUnreadable,
        PortTaken as PortTaken,
        QueueFull as QueueFull,
        QuotaReached as QuotaReached,
        ReplyRefused as ReplyRefused,
        RequestRefused as RequestRefused,
        RouterError as RouterError,
        SecretFound as SecretFound,
        ServerFailed as ServerFailed,
        ServingError as ServingError,
        SummaryRefused as SummaryRefused,
        UnknownModel as UnknownModel,
    )
    from .router import Router as Router
    from .spend import Spend as Spend, bill as bill
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "calls.backend": "load_litellm",
            "calls.task": "Message Reply Task",
            "config": "ModelBudget ModelSettings RouterConfig Tier TierChoice",
            "errors": "AccessRefused AlphaloomError BadCall BudgetEnded CallTooLarge Confidential ConfidentialWaits DeviceLacks DoesNotFit EndpointAway GatewayEnds GatewayError ModelFailed NoModel NoServer NotAdmitted NotAllowed NotServed PlanUnreadable PortTaken QueueFull QuotaReached ReplyRefused RequestRefused RouterError SecretFound ServerFailed ServingError SummaryRefused UnknownModel",
            "router": "Router",
            "spend": "Spend bill",
        },
    )
