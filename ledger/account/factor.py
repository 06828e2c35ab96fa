"""Why a factor was accepted or rejected: its hypothesis, its trial, each step of the gate, people, library, alarms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .rows import RecordReader, RecordRow
from .sentences import Quoted, Telling, list_numbers

MAX_MODELS_NAMED = 5
COMPARED_NUMBERS = {
    "support": ("days", "least", "share of days with values {days}, at least {least} asked"),
    "originality": ("ratio", "most", "similarity {ratio}, limit {most}"),
    "redundancy": ("rank_correlation", "most", "rank correlation {rank_correlation}, limit {most}"),
    "incremental": ("t", "least", "t {t}, at least {least} asked"),
    "statistics": ("p_value", "level", "p-value {p_value}, threshold {level}"),
    "costs": ("search", "selection", "Sharpe ratio after costs {search} on search and {selection} on selection days"),
}  # fmt: skip  # a table
"""Of each step with an actual value and a limit: their names, and the words for them."""
DECIDED = {
    "approve": "approved",
    "reject": "rejected",
    "ask": "asked for a change of",
    "undo": "took back the decision on",
}


def tell_factor(telling: Telling, factor: str) -> None:
    """Say what the record has on a factor, run by run."""
    reader = telling.reader
    verdicts = [row for row in reader.rows("verdicts") if row.columns["factor_id"] == factor]
    added = [row for row in reader.rows("library") if row.columns["factor_id"] == factor]
    for verdict in verdicts:
        _tell_verdict(telling, verdict)
    judged = {row.run for row in verdicts}
    for row in added:
        home = str((row.body.get("terms") or {}).get("combination", ""))
        if home:
            _tell_combination(telling, row, home)
            judged.add(str(row.body.get("run", "")))
    tried = [row for row in reader.rows("attempts") if row.body.get("factor_id") == factor and row.run not in judged]
    for row in tried:
        _tell_attempt(telling, row)
    cases = [row for row in reader.events("case") if row.key == factor]
    for row in cases:
        telling.say(
            "Factor {factor} passed the gate in run {run} on {day} and was put before a person.", [row],
            factor=factor, run=row.run, day=row.at[:10],
        )  # fmt: skip  # a call as a sentence
    for run in dict.fromkeys(row.run for row in (*verdicts, *tried, *cases)):
        tell_reviews(telling, factor, run)
    if not judged and not tried and added:
        telling.say("No run of this workspace judged factor {factor}.", added, factor=factor)
    _tell_library(telling, factor, added)
    _tell_alarms(telling, factor, verdicts)
    tell_exposures(telling, factor)


def _tell_verdict(telling: Telling, verdict: RecordRow) -> None:
    """Say a verdict, from the hypothesis to the last step."""
    reader, factor, run = telling.reader, str(verdict.columns["factor_id"]), verdict.run
    word = str(verdict.body.get("verdict", ""))
    telling.say(
        "Factor {factor} got the verdict {verdict} in run {run} on {day}.", [verdict], (factor, word),
        factor=factor, verdict=word, run=run, day=verdict.at[:10],
    )  # fmt: skip  # a call as a sentence
    tell_origin(telling, factor, run)
    trial = _find_trial(reader, verdict)
    if trial is not None:
        columns = trial.columns
        telling.say(
            "It was trial {trial} on the selection days {first} to {last} of the data {dataset}.", [trial, verdict],
            trial=columns["number"], first=columns["first_day"], last=columns["last_day"], dataset=columns["dataset"],
        )  # fmt: skip  # a call as a sentence
        if columns["prior"]:
            telling.say("Before it {prior} trials elsewhere were declared.", [trial], prior=columns["prior"])
    outcome = next((row for row in reader.rows("outcomes") if trial and row.number == trial.number), None)
    if outcome is not None and "level" in outcome.body:
        telling.say(
            "Its p-value was {p_value}; the threshold was {level}, with earlier discoveries: {discoveries}.", [outcome],
            p_value=outcome.body.get("p_value"), level=outcome.body["level"],
            discoveries=outcome.body.get("discoveries_before", 0),
        )  # fmt: skip  # a call as a sentence
    for reason in verdict.body.get("reasons") or ():
        _tell_step(telling, verdict, reason)


def _find_trial(reader: RecordReader, verdict: RecordRow) -> RecordRow | None:
    number, subject = (verdict.body.get("metrics") or {}).get("trial"), verdict.columns["factor_id"]
    wanted = [
        row for row in reader.rows("trials") if (row.columns["subject"], row.columns["number"]) == (subject, number)
    ]
    return wanted[-1] if wanted else None


def _tell_step(telling: Telling, verdict: RecordRow, reason: Mapping[str, Any]) -> None:
    """Say one step of the gate with the actual value and its limit."""
    step, passed = str(reason.get("step", "")), bool(reason.get("passed"))
    numbers = dict(list_numbers(reason.get("numbers") or {}))
    actual, limit, words = COMPARED_NUMBERS.get(step, ("", "", ""))
    done, kept = ("passed", ()) if passed else ("failed", (step.replace("_", " "), "failed"))
    values: dict[str, Any] = {"step": step.replace("_", " "), "done": done}
    if actual in numbers and limit in numbers:
        values |= {actual: numbers[actual], limit: numbers[limit]}
        telling.say(f"The step {{step}} {{done}}: {words}.", [verdict], kept, **values)
    else:
        values["message"] = Quoted(str(reason.get("message", "")))
        telling.say("The step {step} {done}: {message}.", [verdict], kept, **values)


def _tell_combination(telling: Telling, row: RecordRow, home: str) -> None:
    """Say that a factor is a member, and the verdict on its combination."""
    factor, terms = str(row.columns["factor_id"]), row.body.get("terms") or {}
    telling.say(
        "Factor {factor} is a member of the combination {combination}, which was judged as one trial.", [row],
        factor=factor, combination=home,
    )  # fmt: skip  # a call as a sentence
    proven = "is proven" if terms.get("proven_alone") else "is not proven"
    telling.say(
        "By closed testing inside that trial the member {proven} alone.", [row], (proven, "alone"), proven=proven
    )
    tell_origin(telling, factor, str(row.body.get("run", "")))
    for verdict in telling.reader.rows("verdicts"):
        if verdict.columns["factor_id"] == home and verdict.run == row.body.get("run"):
            _tell_verdict(telling, verdict)
            tell_reviews(telling, home, verdict.run)


def _tell_attempt(telling: Telling, row: RecordRow) -> None:
    """Say how far a proposal came that was never judged."""
    factor, stage = str(row.body.get("factor_id")), str(row.body.get("stage", ""))
    values = {"factor": factor, "run": row.run, "day": row.at[:10]}
    if stage == "scored":
        telling.say(
            "Factor {factor} was scored on search days in run {run} on {day} and not tested on selection days.", [row],
            (factor, "not tested"), **values,
        )  # fmt: skip  # a call as a sentence
    else:
        telling.say(
            "Factor {factor} was refused in run {run} on {day} at the step {stage}: {reason}.", [row],
            (factor, "refused", stage), stage=stage, reason=Quoted(str(row.body.get("reason", ""))), **values,
        )  # fmt: skip  # a call as a sentence
    tell_origin(telling, factor, row.run)


# Who wrote it.


def tell_origin(telling: Telling, factor: str, run: str) -> None:
    """Say the formula, the hypothesis, and which model wrote each."""
    reader = telling.reader
    members = next((row for row in reader.events("set") if row.run == run and row.key == factor), None)
    if members is not None:
        telling.say("It combines the factors {members}.", [members], members=[str(name) for name in members.body])
        for name in members.body:
            tell_origin(telling, str(name), run)
        return
    own = [row for row in reader.rows("attempts") if row.run == run and row.body.get("factor_id") == factor]
    attempt = next((row for row in own if row.body.get("stage") == "scored"), own[-1] if own else None)
    if attempt is None:
        return
    text, hypothesis = str(attempt.body.get("text", "")), str(attempt.body.get("hypothesis", ""))
    telling.say("The formula of {factor} is {formula}.", [attempt], factor=factor, formula=Quoted(text))
    claim = next((row for row in reader.events("claim") if row.run == run and row.key == hypothesis), None)
    if claim is None:
        telling.say("The record has no hypothesis for {factor}: it is data-mined.", [attempt], factor=factor)
    else:
        statement = str(claim.body.get("statement", ""))
        telling.say(
            "Its hypothesis {hypothesis} with the mechanism {mechanism} says: {statement}.", [claim],
            hypothesis=hypothesis, mechanism=str(claim.body.get("mechanism", "")), statement=Quoted(statement),
        )  # fmt: skip  # a call as a sentence
        _tell_author(telling, run, f"the hypothesis {hypothesis}", "idea", statement)
    _tell_author(telling, run, f"the formula of {factor}", "factor", text)


def _tell_author(telling: Telling, run: str, what: str, role: str, text: str) -> None:
    """Say which model wrote a text: that of the recorded call whose reply holds it."""
    reader = telling.reader
    calls = [row for row in reader.rows("calls") if row.run == run and row.body.get("role") == role]
    spelled = json.dumps(text, ensure_ascii=False)[1:-1]
    writer = next((row for row in calls if text and _holds(reader, row, text, spelled)), None)
    if writer is not None:
        name_model(telling, run, writer, what)
        return
    models = list(dict.fromkeys(str(row.body.get("model", "")) for row in calls))[:MAX_MODELS_NAMED]
    if models:
        telling.say(
            "The record does not tie {what} to one reply; the models that answered in the role {role} are {models}.",
            calls[:1], what=what, role=role, models=models,
        )  # fmt: skip  # a call as a sentence
    else:
        telling.say("No model call of the run is recorded for {what}.", [], what=what)


def _holds(reader: RecordReader, call: RecordRow, text: str, spelled: str) -> bool:
    body = reader.read_object(str(call.body.get("reply", "")))
    reply = str(body.get("text", "")) if isinstance(body, Mapping) else ""
    return text in reply or spelled in reply


def name_model(telling: Telling, run: str, call: RecordRow, what: str) -> None:
    """Say which model wrote something, who provides it and where it ran, as the settings of the run have it."""
    name = str(call.body.get("model", ""))
    models = (telling.reader.settings(run).get("models") or {}).get("models") or {}
    entry = models.get(name) or {}
    whole = str(entry.get("model") or name)
    provider, _, _ = whole.partition("/")
    rows = [call, *([telling.reader.runs[run]] if entry else [])]
    telling.say("The model {model} wrote {what}.", rows, model=whole, what=what)
    provider = str(call.body.get("provider") or (provider if entry and provider != whole else ""))
    if provider:
        telling.provider.append(provider)
        telling.say(
            "The provider of {model} is {provider}; where it ran is declared as {place}.", rows,
            model=whole, provider=provider, place=str(entry.get("place", "")) or None,
        )  # fmt: skip  # a call as a sentence
    if vendor := str(call.body.get("vendor") or entry.get("vendor") or ""):
        telling.vendor.append(vendor)
        telling.say("The vendor of {model} is {vendor}.", rows, model=whole, vendor=vendor)


# What people and the library did.


def tell_reviews(telling: Telling, factor: str, run: str) -> None:
    """Say every decision of a person on a factor, and whether the campaign asked for one."""
    reviews = [row for row in telling.reader.events("review") if row.run == run and row.key.partition("/")[0] == factor]
    for row in reviews:
        tell_review(telling, row)
    home = telling.reader.runs.get(run)
    if not reviews and home is not None and telling.reader.settings(run):
        asked = bool(telling.reader.settings(run).get("approve"))
        text = "asked for" if asked else "did not ask for"
        telling.say(
            "The campaign {run} {asked} a person's approval, and no review is recorded.", [home], run=run, asked=text
        )


def tell_review(telling: Telling, row: RecordRow) -> None:
    """Say one decision of a person."""
    body, factor = row.body, row.key.partition("/")[0]
    verb, by = DECIDED.get(str(body.get("decision")), str(body.get("decision"))), str(body.get("by", ""))
    telling.say(
        "{by} {decision} factor {factor} on {day}: {comment}.", [row], (by, verb),
        by=by, decision=verb, factor=factor, day=row.at[:10], comment=Quoted(str(body.get("comment", ""))),
    )  # fmt: skip  # a call as a sentence
    if body.get("decision") == "approve":
        telling.approver.append(by)


def _tell_library(telling: Telling, factor: str, added: list[RecordRow]) -> None:
    for row in added:
        telling.say(
            "Factor {factor} entered the library on {day} as {origin}.", [row],
            factor=factor, day=row.at[:10], origin=str(row.body.get("origin", "")).replace("_", " "),
        )  # fmt: skip  # a call as a sentence
    if not added:
        telling.say("The library does not hold factor {factor}.", (), factor=factor)
    for row in telling.reader.rows("standings"):
        if row.columns["factor_id"] == factor:
            tell_status(telling, row)
    for row in telling.reader.events("revalidation"):
        if row.key.partition("/")[0] == factor:
            by = str(row.body.get("by", ""))
            telling.approver.append(by)
            telling.say(
                "{by} looked at it again on {day} and it stays: {reason}.", [row], (by,),
                by=by, day=row.at[:10], reason=Quoted(str(row.body.get("reason", ""))),
            )  # fmt: skip  # a call as a sentence


def tell_status(telling: Telling, row: RecordRow) -> None:
    """Say one change of a factor's status in the library."""
    body, status = row.body, str(row.body.get("status", ""))
    how = "a person" if body.get("by") == "hand" else "the rule of the library's watch"
    telling.say(
        "From {day} on {how} sets the status of {factor} to {status}: {reason}.", [row], (status,),
        day=str(body.get("day", "")), how=how, factor=str(row.columns["factor_id"]), status=status,
        reason=Quoted(str(body.get("reason", ""))),
    )  # fmt: skip  # a call as a sentence


def _tell_alarms(telling: Telling, factor: str, verdicts: list[RecordRow]) -> None:
    for verdict, rank_ic, limit in list_leak_alarms(telling.reader, verdicts):
        telling.say(
            "Leak alarm: the RankIC of {factor} on selection days is {rank_ic}, and the threshold is {limit}.",
            [verdict, telling.reader.runs[verdict.run]], ("alarm",), factor=factor, rank_ic=rank_ic, limit=limit,
        )  # fmt: skip  # a call as a sentence
        done = [
            row for row in telling.reader.events("alarm-acknowledged") if (row.run, row.key) == (verdict.run, factor)
        ]
        for row in done:
            by = str(row.body.get("by", ""))
            telling.approver.append(by)
            telling.say(
                "{by} acknowledged the alarm on {day}: {reason}.", [row], (by, "acknowledged"),
                by=by, day=row.at[:10], reason=Quoted(str(row.body.get("reason", ""))),
            )  # fmt: skip  # a call as a sentence
        if not done:
            telling.say("Nobody has acknowledged the alarm.", [verdict], ("acknowledged",))


def list_leak_alarms(reader: RecordReader, verdicts: list[RecordRow]) -> Iterator[tuple[RecordRow, float, float]]:
    """Yield verdicts whose RankIC on selection days is above the run's leak threshold, with both numbers."""
    for verdict in verdicts:
        rank_ic = ((verdict.body.get("metrics") or {}).get("selection") or {}).get("rank_ic")
        limit = (reader.settings(verdict.run).get("evidence") or {}).get("leak_rank_ic")
        if isinstance(limit, float | int) and isinstance(rank_ic, float | int) and abs(rank_ic) > limit:
            yield verdict, float(rank_ic), float(limit)


def tell_exposures(telling: Telling, factor: str) -> None:
    """Say what each exposure audit of a factor found."""
    for row in telling.reader.events("exposure-audit"):
        if row.body.get("factor_id") != factor:
            continue
        findings = row.body.get("findings") or {}
        for attribute in row.body.get("attributes") or ():
            finding = findings.get(attribute)
            values = {"number": row.body.get("number"), "attribute": str(attribute), "factor": factor}
            if finding is None:
                telling.say("Exposure audit {number} could not test {factor} for {attribute}.", [row], **values)
                continue
            word = "is a proxy of" if finding.get("found") else "was not found to be a proxy of"
            telling.say(
                "Exposure audit {number}: {factor} {found} {attribute}, p-value {p_value}, threshold {level}; the "
                "smallest gap that it would have seen is {smallest_gap} standard deviations.", [row],
                (word, str(attribute)), found=word, p_value=finding.get("p_value"), level=finding.get("level"),
                smallest_gap=finding.get("smallest_gap"), **values,
            )  # fmt: skip  # a call as a sentence
