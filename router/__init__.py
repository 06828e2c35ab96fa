"""Which model answers what, at what price; every call typed, capped, recorded and validated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .calls.completions import Completion as Completion, InProcessModel as InProcessModel
    from .calls.task import Message as Message, Reply as Reply, Task as Task
    from .config import (
        ModelBudget as ModelBudget,
        ModelSettings as ModelSettings,
        RouterConfig as RouterConfig,
        Tier as Tier,
        TierChoice as TierChoice,
        drop_removed_settings as drop_removed_settings,
    )
    from .errors import (
        AccessRefused as AccessRefused,
        AlphaloomError as AlphaloomError,
        BudgetEnded as BudgetEnded,
        Confidential as Confidential,
        ConfidentialWaits as ConfidentialWaits,
        ModelFailed as ModelFailed,
        NoModel as NoModel,
        ReplyRefused as ReplyRefused,
        RequestRefused as RequestRefused,
        RouterError as RouterError,
        SecretFound as SecretFound,
        SummaryRefused as SummaryRefused,
    )
    from .router import Router as Router
    from .spend import sum_calls as sum_calls
    from .versions import (
        describe_model as describe_model,
        describe_router as describe_router,
        mask_keys as mask_keys,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "calls.completions": "Completion InProcessModel",
            "calls.task": "Message Reply Task",
            "config": "ModelBudget ModelSettings RouterConfig Tier TierChoice drop_removed_settings",
            "errors": "AccessRefused AlphaloomError BudgetEnded Confidential ConfidentialWaits ModelFailed NoModel "
            "ReplyRefused RequestRefused RouterError SecretFound SummaryRefused",
            "router": "Router",
            "spend": "sum_calls",
            "versions": "describe_model describe_router mask_keys",
        },
    )
