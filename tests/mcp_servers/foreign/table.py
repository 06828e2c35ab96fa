"""What the conformance suite is expected to tell of each scenario that a revision of the protocol requires, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

NO_LOGGING = "no capability for log messages is declared: the record of calls and the operator's log are kept by us"
NO_NOTICES = "no subscription is promised: what is listed stays as it is"
NO_SESSION = "there is no session, so that there is none to fix or to steal: nothing to test"
NO_WAY_BACK = (
    "without a session a server cannot ask the client in the midst of a call; in the later era it answers with it"
)
NO_PROGRESS = (
    "an answer is one JSON object, and nothing comes before it: what takes long is a job, and get_job tells of it"
)
NO_TASKS = "the extension of tasks is not declared: what takes long is a job, and get_job tells of it"


class State(StrEnum):
    """What comes of a scenario: SHOULDs that are not kept count as missed, too."""

    KEPT = "kept"
    MISSED = "missed"
    SILENT = "silent"
    """The suite found nothing to test."""


@dataclass(frozen=True)
class Row:
    """One scenario: what comes of it, why it is not kept, and whether it can be run without fixtures."""

    state: State = State.KEPT
    why: str = ""
    real: bool = False


def kept(*names: str, real: bool = False) -> dict[str, Row]:
    return {name: Row(real=real) for name in names}


def missed(why: str, *names: str, real: bool = False) -> dict[str, Row]:
    return {name: Row(State.MISSED, why, real) for name in names}


def silent(why: str, *names: str, real: bool = False) -> dict[str, Row]:
    return {name: Row(State.SILENT, why, real) for name in names}


BOTH = {
    **kept(
        "completion-complete", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", real=True
    ),
    **kept(
        "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
        "tools-call-mixed-content", "tools-call-error", "resources-read-text", "resources-read-binary",
        "resources-templates-read", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource",
        "prompts-get-with-image", "json-schema-2020-12",
    ),
    **missed(NO_PROGRESS, "tools-call-with-progress"),
}  # fmt: skip  # a table

EXPECTED: Mapping[str, Mapping[str, Row]] = {
    "2025-11-25": {
        **BOTH,
        **kept("server-initialize", "ping", real=True),
        **missed(NO_LOGGING, "logging-set-level", real=True),
        **missed(NO_LOGGING, "tools-call-with-logging"),
        **missed(NO_NOTICES, "resources-subscribe", "resources-unsubscribe"),
        **missed(
            NO_WAY_BACK, "tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ),
        **missed(NO_SESSION, "server-sse-multiple-streams", real=True),
        **missed(NO_SESSION, "server-sse-polling"),
        **silent(NO_SESSION, "server-session-lifecycle", real=True),
    },
    "2026-07-28": {
        **BOTH,
        **kept(
            "server-stateless", "server-sse-multiple-streams", "sep-2164-resource-not-found", "caching",
            "http-header-validation", "input-required-result-unsupported-methods", real=True,
        ),
        **kept(
            "http-custom-header-server-validation", "input-required-result-basic-elicitation",
            "input-required-result-basic-sampling", "input-required-result-basic-list-roots",
            "input-required-result-request-state", "input-required-result-multiple-input-requests",
            "input-required-result-multi-round", "input-required-result-missing-input-response",
            "input-required-result-non-tool-request", "input-required-result-result-type",
            "input-required-result-tampered-state", "input-required-result-capability-check",
            "input-required-result-ignore-extra-params", "input-required-result-validate-input",
        ),
        **missed(
            NO_TASKS, "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
            "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope",
            "tasks-required-task-error", "tasks-mrtr-composition",
        ),
        **silent(NO_TASKS, "tasks-status-notifications"),
    },
}  # fmt: skip  # a table

COMPLETE = ("all", "factors")
"""The servers that have something to complete; others say that they do not."""
UNTESTABLE = frozenset({"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"})
"""Checks that need a fixture tool: the real servers cannot meet them, the fixture server must."""


def on_real(server: str, revision: str) -> dict[str, State]:
    """Return what must come of the scenarios that need no fixtures, of one of the real servers."""
    rows = {name: row.state for name, row in EXPECTED[revision].items() if row.real}
    return rows | ({} if server in COMPLETE else {"completion-complete": State.MISSED})
