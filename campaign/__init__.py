"""A campaign: its settings, search, close and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .book import BookData as BookData, BookStep as BookStep, read_step as read_step, step_book as step_book
    from .book_log import NOT_LOGGED as NOT_LOGGED
    from .book_profit import BookProfit as BookProfit, attribute_profit as attribute_profit
    from .book_record import (
        WORKSPACE as WORKSPACE,
        BookFlow as BookFlow,
        BookOrder as BookOrder,
        BookSettings as BookSettings,
        clear_books as clear_books,
        find_book as find_book,
        find_step_time as find_step_time,
        halt_books as halt_books,
        list_flows as list_flows,
        list_new_steps as list_new_steps,
        list_orders as list_orders,
        list_steps as list_steps,
        list_waiting_flows as list_waiting_flows,
        list_waiting_orders as list_waiting_orders,
        open_book as open_book,
        order_mode as order_mode,
        pay_book as pay_book,
        read_trading_mode as read_trading_mode,
        resume_books as resume_books,
    )
    from .campaign import (
        Campaign as Campaign,
        Clock as Clock,
        Settings as Settings,
        Show as Show,
    )
    from .paper import PaperBook as PaperBook
    from .progress import (
        CLOSED_BY_HAND as CLOSED_BY_HAND,
        Best as Best,
        Counts as Counts,
        Funnel as Funnel,
        ModelSpend as ModelSpend,
        Progress as Progress,
        ProgressMeter as ProgressMeter,
        read_last_progress as read_last_progress,
    )
    from .replay import GONE as GONE, replay_book as replay_book
    from .session.plan import PlanRequest as PlanRequest, SessionPlan as SessionPlan
    from .session.run import (
        SessionRun as SessionRun,
        SessionWatch as SessionWatch,
        execute_session as execute_session,
        preview_session as preview_session,
    )
    from .targets import (
        DECAYING_SHARE as DECAYING_SHARE,
        Targets as Targets,
        build_targets as build_targets,
        find_live_books as find_live_books,
        open_computing as open_computing,
    )
    from .trade import audit_evidence as audit_evidence
    from .traded_result import TradedResult as TradedResult
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "book": "BookData BookStep read_step step_book",
            "book_profit": "BookProfit attribute_profit",
            "book_log": "NOT_LOGGED",
            "book_record": (
                "BookFlow BookOrder BookSettings WORKSPACE clear_books find_book find_step_time halt_books list_flows "
                "list_new_steps list_orders list_steps list_waiting_flows list_waiting_orders open_book order_mode "
                "pay_book read_trading_mode resume_books"
            ),
            "campaign": "Campaign Clock Settings Show",
            "paper": "PaperBook",
            "progress": "Best CLOSED_BY_HAND Counts Funnel ModelSpend Progress ProgressMeter read_last_progress",
            "replay": "GONE replay_book",
            "session.plan": "PlanRequest SessionPlan",
            "session.run": "SessionRun SessionWatch execute_session preview_session",
            "targets": "DECAYING_SHARE Targets build_targets find_live_books open_computing",
            "trade": "audit_evidence",
            "traded_result": "TradedResult",
        },
    )
