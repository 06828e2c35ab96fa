"""What changed, what people overrode and what is exposed: lists from the record alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from ..changes import (
    CHANGE_EVENT,
    SERVED,
    find_served_changes,
    list_asked_models,
    name_served,
    read_served,
)
from ..digest import compute_digest
from ..log.reader import read_record
from .decision import MODE_EVENT, list_decisions, read_policy_of, show_amounts
from .factor import list_leak_alarms
from .rows import RecordReader, RecordRow

EXPOSURE_CHECKS = ("sector", "style", "unexposed")
MANUAL = "hand"
T = TypeVar("T")


def read_overview(workspace: Path, build: Callable[[RecordReader], T], until: date | None = None) -> T:
    """Return what a function builds from the record of a workspace up to a day; nothing is written.

    Raises
    ------
    WorkspaceError
        If there is no record, or it cannot be read.
    """
    return read_record(workspace, lambda run_query, objects: build(RecordReader(run_query, objects, until)))


def _entry(row: RecordRow, kind: str, subject: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "what": subject, "at": row.at, "run": row.run, "leaf": row.leaf, **more}


# Changes.


def list_changes(reader: RecordReader) -> list[dict[str, Any]]:
    """Return changes of policies, models (as set, and as served), prompts and routers, and of statuses, by leaf.

    Each has kind, what, before, after, at, run and leaf. The register of changes is taken for the kinds that it has.
    For the others digests are compared: a policy is compared with that of the decision before, of the same book or of
    the campaigns together; models, prompts and routers with those of the campaign before.
    """
    found = [*_list_versions(reader)]
    kinds = {one["kind"] for one in found}
    compared = (*_list_policy_changes(reader), *_list_run_changes(reader))
    found += [one for one in compared if one["kind"] not in kinds]
    found += _list_served(reader)
    for row in reader.rows("standings"):
        body, factor = row.body, str(row.columns["factor_id"])
        more = {"before": None, "after": body.get("status"), "by": body.get("by"), "why": body.get("reason", "")}
        found.append(_entry(row, "status", factor, **more))
    last: dict[str, Any] = {}
    for one in (one for one in found if one["kind"] == "status"):
        one["before"], last[one["what"]] = last.get(one["what"]), one["after"]
    return sorted(found, key=lambda one: (one["leaf"] is None, one["leaf"]))


def _list_versions(reader: RecordReader) -> Iterator[dict[str, Any]]:
    """Yield the rows of the register of changes, which compares whole versions, in a record that has one."""
    for row in reader.events(CHANGE_EVENT):
        body = row.body
        more = {name: body.get(name) or None for name in ("before", "after", "account")}
        yield _entry(row, str(body.get("kind")), str(body.get("name")), **more, why=str(body.get("diff", "")))


def _list_served(reader: RecordReader) -> Iterator[dict[str, Any]]:
    asked = {run: list_asked_models(row.body.get("config") or {}) for run, row in reader.runs.items()}
    rows = reader.rows("calls")
    calls = [(name_served(asked.get(row.run, {}), row.body), row.run, read_served(row.body)) for row in rows]
    for place, before in find_served_changes(calls):
        yield _entry(rows[place], SERVED, calls[place][0], before=before, after=calls[place][2])


def _list_policy_changes(reader: RecordReader) -> Iterator[dict[str, Any]]:
    last: dict[str, str] = {}
    for decision in list_decisions(reader):
        scope = decision.row.run if decision.row.key == decision.row.body.get("day") else "campaigns"
        digest = str(decision.body.get("policy", ""))
        if scope in last and last[scope] != digest:
            yield _entry(decision.row, "policy", scope, before=last[scope], after=digest, decision=decision.id)
        last[scope] = digest


def _list_run_changes(reader: RecordReader) -> Iterator[dict[str, Any]]:
    before: Mapping[str, Mapping[str, str]] = {}
    prompts: dict[str, dict[str, str]] = {}
    for call in reader.rows("calls"):
        use = f"{call.body.get('role')} {call.body.get('intent')}"
        prompts.setdefault(call.run, {})[use] = str(call.body.get("prompt"))
    for run, row in reader.runs.items():
        if settings := reader.settings(run):
            now = {**_digest_models(settings.get("models") or {}), "prompt": prompts.get(run, {})}
            yield from _compare_digests(row, before, now)
            before = now


def _digest_models(models: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the digest of each model's entry, and of each part of the router's settings."""
    entries, parts = models.get("models") or {}, ("routing", "roles", "budget", "health")
    return {
        "model": {name: compute_digest(entry) for name, entry in entries.items()},
        "router": {part: compute_digest(models[part]) for part in parts if part in models},
    }


def _compare_digests(
    row: RecordRow, before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield what differs from the campaign before; a prompt that a run did not use is no change."""
    names = [(kind, name) for kind, digests in now.items() for name in sorted({*before.get(kind, digests), *digests})]
    for kind, name in names:
        earlier, later = before.get(kind, now[kind]).get(name), now[kind].get(name)
        if earlier != later and (later or kind != "prompt"):
            yield _entry(row, kind, name, before=earlier, after=later)


# Overrides.


def list_overrides(reader: RecordReader) -> list[dict[str, Any]]:
    """Return what people allowed, opened, stopped or put in by hand, each with who and why, by leaf.

    Exceptions are those of policies whose text is on record, at the first decision that had them.
    """
    found = [*_list_exceptions(reader), *_list_alarms(reader), *_list_openings(reader)]
    for row in reader.events(MODE_EVENT):
        body = row.body
        who = [str(name) for name in (body.get("by"), body.get("second")) if name]
        found.append(_entry(row, "trading", row.run, mode=body.get("mode"), who=who, why=body.get("reason", "")))
    for row in reader.rows("standings"):
        if row.body.get("by") == MANUAL:
            more = {"status": row.body.get("status"), "who": [], "why": row.body.get("reason", "")}
            found.append(_entry(row, "library", str(row.columns["factor_id"]), **more))
    return sorted(found, key=lambda one: (one["leaf"] is None, one["leaf"]))


def _list_exceptions(reader: RecordReader) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for decision in list_decisions(reader):
        for one in read_policy_of(reader, decision).get("exceptions") or ():
            if (digest := compute_digest(one)) not in seen:
                seen.add(digest)
                more = {"rule": one.get("rule"), "attribute": one.get("attribute", ""), "until": one.get("until")}
                more |= {"who": [one.get("owner")], "why": one.get("reason", ""), "decision": decision.id}
                yield _entry(decision.row, "exception", str(one.get("evidence")), **more)


def _list_alarms(reader: RecordReader) -> Iterator[dict[str, Any]]:
    done = {(row.run, row.key) for row in reader.events("alarm-acknowledged")}
    for row in reader.events("alarm-acknowledged"):
        body = row.body
        more = {
            "rank_ic": body.get("rank_ic"),
            "limit": body.get("limit"),
            "who": [body.get("by")],
            "why": body.get("reason", ""),
        }
        yield _entry(row, "alarm", row.key, **more)
    for verdict, rank_ic, limit in list_leak_alarms(reader, reader.rows("verdicts")):
        factor = str(verdict.columns["factor_id"])
        listed = (reader.settings(verdict.run).get("evidence") or {}).get("acknowledged") or ()
        if factor in listed and (verdict.run, factor) not in done:
            more = {"rank_ic": rank_ic, "limit": limit, "who": [], "why": "the campaign file acknowledges it"}
            yield _entry(verdict, "alarm", factor, **more)


def _list_openings(reader: RecordReader) -> Iterator[dict[str, Any]]:
    agreed = {row.run: row for row in reader.events("seal-decision") if row.body.get("agrees")}
    for row in reader.rows("openings"):
        columns, by = row.columns, agreed.get(row.run)
        more = {"number": columns["number"], "first": columns["first_day"], "last": columns["last_day"]}
        more |= {"who": [by.body.get("by")] if by else [], "why": columns["reason"]}
        yield _entry(row, "opening", str(columns["dataset"]), **more)


# Exposures.


def report_exposures(reader: RecordReader) -> dict[str, list[dict[str, Any]]]:
    """Return the audits of factors, and the exposures to sectors and styles that decisions of the gate have.

    Keys: `audits`, one entry for each attribute of each audit; `checks`, the rules sector, style and unexposed of each
    decision: the whole book's, and of each signal that they refused. Exposures are in bp of equity.
    """
    audits = []
    for row in reader.events("exposure-audit"):
        body = row.body
        for attribute in body.get("attributes") or ():
            finding = (body.get("findings") or {}).get(attribute)
            more = {"number": body.get("number"), "day": body.get("day"), "attribute": attribute, "finding": finding}
            audits.append(_entry(row, "audit", str(body.get("factor_id")), **more))
    checks = []
    for decision in list_decisions(reader):
        for check in decision.body.get("book") or ():
            if check.get("rule") in EXPOSURE_CHECKS:
                checks.append(_describe_check(decision.row, decision.id, str(check["rule"]), check, "whole book"))
        for ruling in decision.body.get("rulings") or ():
            checks += _list_refused(decision.row, decision.id, decision.body, ruling)
    return {"audits": audits, "checks": checks}


def _describe_check(row: RecordRow, decision: str, rule: str, check: Mapping[str, Any], what: str) -> dict[str, Any]:
    actual, limit = show_amounts(rule, check.get("actual"), check.get("limit"))
    more = {"rule": rule, "actual": actual, "limit": None if limit == "none" else limit, "passed": check.get("passed")}
    return _entry(row, "check", what, decision=decision, about=check.get("about", ""), **more)


def _list_refused(
    row: RecordRow, decision: str, body: Mapping[str, Any], ruling: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    limits = (body.get("limits") or [[], []])[1 if ruling.get("reduces") else 0]
    for rule, actual, limit in zip(body.get("rules") or (), ruling.get("values") or (), limits, strict=False):
        if rule in EXPOSURE_CHECKS and rule in (ruling.get("refusals") or ()):
            about = (ruling.get("about") or {}).get(rule, "")
            check = {"actual": actual, "limit": limit, "passed": False, "about": about}
            yield _describe_check(row, decision, rule, check, str(ruling.get("asset", "")))
