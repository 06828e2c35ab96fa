"""The command that writes the manifest of a campaign: what it was for, read, asked, and who decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...figures import DASH, count, money, number, p_value_text, plural
from ..console import print_object, print_plain
from ..options import AsJson, RunName, Workspace, refuse_existing
from ..run_lookup import locate_run, read_ledger

COLUMN_WIDTH = 12
MAX_SPLITS_SHOWN = 10
"""Factors whose days are printed; `--json` has all."""
SHORT_DIGEST = 16


def manifest(
    run: RunName,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the JSON into a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say from the record what a campaign was for, what it read, which models it asked, and who decided.

    With it: which days of the evidence a model can have read (exposed), and which not (clean), by the training cut-offs
    that the campaign file declares. The JSON holds no path, address or key; the same record gives the same bytes.
    """
    name, place = locate_run(run, workspace)
    from ....evaluation import find_campaign
    from ....evaluation.manifest import build_manifest

    record = read_ledger(place, lambda ledger: build_manifest(ledger, find_campaign(ledger, name)))
    if out:
        from ....ledger import write_json

        refuse_existing(out, force=force)
        write_json(out, record)
    if as_json:
        print_object(record)
        return
    for line in describe_manifest(record):
        print_plain(line)
    if out:
        print_plain(f"written to {out}")


def describe_manifest(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the manifest in lines for a person."""
    software = record["software"]
    version = f"Alphaloom {software['version']}" if software["version"] else "version not recorded"
    commit = f", commit {software['commit'][:12]}" if software["commit"] else ""
    yield f"manifest of {record['run']} ({record['status']}; {version}{commit})"
    yield from _describe_objectives(record)
    yield from _describe_data(record["data"])
    for model in record["models"]:
        yield from _describe_model(model)
    prompts = [f"{row['page'] or 'joined pages'} {row['digest'][:SHORT_DIGEST]}" for row in record["prompts"]]
    yield _line("prompts", ", ".join(prompts) or "none was sent")
    yield from _describe_people(record)
    for decision in record["risk"]:
        yield _line("risk gate", f"decision for {decision['day']}, policy {decision['policy'][:SHORT_DIGEST]}")
    yield from _describe_days(record["exposure"])
    artefacts = [f"{name} {digest[:SHORT_DIGEST]}" for name, digest in record["artefacts"].items()]
    yield _line("artefacts", ", ".join(artefacts) or "none yet")


def _line(label: str, text: str) -> str:
    """Return a label and a text on one line: a text of a model may hold line breaks."""
    return f"{label:<{COLUMN_WIDTH}} {' '.join(text.split())}"


def _describe_objectives(record: Mapping[str, Any]) -> Iterator[str]:
    aims, outcome = record["objectives"], record["outcome"]
    yield _line("goal", aims["goal"] or "none given")
    for name in ("focus", "avoid", "fields"):
        if aims[name]:
            yield _line(name, ", ".join(aims[name]))
    yield _line("optimised", aims["optimised"])
    rules = aims["judged_by"]
    yield _line(
        "judged by",
        f"{rules['returns']} returns over {plural(rules['horizon_days'] or 0, 'day')}, test on {rules['test']}, "
        f"level {rules['level']}, {rules['costs']['bps_per_side'] if rules['costs'] else DASH} basis points a side",
    )
    for name in ("search", "selection", "sealed"):
        days = (aims["windows"] or {}).get(name)
        if days:
            yield _line(name, f"{days['first']} to {days['last']}, {count(days['days'])} days")
    yield _line("tests", _describe_tests(record["tests"]))
    if outcome:
        yield _line(
            "outcome",
            f"{count(len(outcome['accepted']))} accepted, {count(len(outcome['watchlist']))} watched, of "
            f"{count(outcome['evaluations'])} scored",
        )


def _describe_tests(tests: Sequence[Mapping[str, Any]]) -> str:
    if not tests:
        return "none was spent"
    passed = [test for test in tests if test["passed"]]
    shown = ", ".join(f"{test['subject']} p {p_value_text(test['p_value'])}" for test in passed)
    return f"{plural(len(tests), 'test')} on selection days, {count(len(passed))} significant" + (
        f": {shown}" if shown else ""
    )


def _describe_data(data: Mapping[str, Any]) -> Iterator[str]:
    span = f"{data['first_day'] or DASH} to {data['last_day'] or DASH}"
    yield _line(
        "data",
        f"{data['name']}, {count(data['days'])} days, {count(data['symbols'])} symbols, {span}, "
        f"digest {str(data['digest'])[:SHORT_DIGEST]}",
    )
    yield _line("licence", data["licence"])
    if data["files"]:
        yield _line("files", ", ".join(f"{name}: {file}" for name, file in data["files"].items()))
    brought = [
        (data["seed_formulas"], "formula", "formulas"),
        (data["own_hypotheses"], "hypothesis", "hypotheses"),
        (len(data["documents"]), "document", "documents"),
    ]
    parts = [plural(amount, one, many) for amount, one, many in brought if amount]
    parts += [f"the agent {data['own_agent']}"] if data["own_agent"] else []
    if parts:
        yield _line("brought", ", ".join(parts))


def _describe_model(model: Mapping[str, Any]) -> Iterator[str]:
    used = f"{plural(model['calls'], 'call')}, {money(model['usd'])}"
    if not model["language_model"]:
        yield _line("model", f"{model['name']}: the offline researcher, a set of rules and no language model; {used}")
        return
    served = ", ".join(model["served_as"]) or "version not named by the server"
    vendor = model["vendor"] or "vendor not declared"
    yield _line("model", f"{model['name']}: {model['model'] or 'not in the file'} by {vendor}, served as {served}")
    cutoff = model["cutoff"] or "not declared"
    where = f"{model['place'] or DASH}, {model['endpoint']}"
    deployer = ", ".join(model["deployer"] or ["not declared"])
    yield _line(
        "", f"training cut-off {cutoff} (a claim); {where}; deployer {deployer}; {_describe_prices(model)}; {used}"
    )


def _describe_prices(model: Mapping[str, Any]) -> str:
    prices = model["prices"]
    if prices["input_cost_per_mtok"] is None:
        return "no price declared"
    return f"${prices['input_cost_per_mtok']:g} in, ${prices['output_cost_per_mtok']:g} out per million tokens"


def _describe_people(record: Mapping[str, Any]) -> Iterator[str]:
    people = record["people"]
    starts = [f"{start['by']} ({start['at'][:16]})" for start in people["started"]]
    yield _line("started by", ", ".join(starts) or "nobody by name: on the command line")
    for vote in people["approved"]:
        yield _line(
            f"{vote['decision']}", f"{vote['id']} by {vote['by']} ({vote['at'][:16]}): {vote['comment'] or DASH}"
        )
    for decision in people["seal"]["decisions"]:
        verb = "agreed" if decision["agrees"] else "refused"
        yield _line("seal", f"{decision['by']} {verb} ({decision['at'][:16]}): {decision['reason']}")
    opened = people["seal"]["opened"]
    yield _line("seal", f"opened, no. {opened['number']}: {opened['reason']}" if opened else "not opened")
    for deed in people["others"]:
        yield _line("person", f"{deed['by']} {deed['did']}: {deed['reason'] or DASH}")


def _describe_days(exposure: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield which days a model can have read: of the run, and of the factors whose authors or figures differ."""
    if exposure is None:
        yield _line("days", "which a model can have read is said once the run has results")
        return
    yield from _describe_split("days", exposure["run"])
    if exposure["combination"]:
        yield from _describe_split("combination", exposure["combination"])
    factors = list(exposure["factors"].items())
    for name, split in factors[:MAX_SPLITS_SHOWN]:
        yield from _describe_split(name[:COLUMN_WIDTH], split)
    if len(factors) > MAX_SPLITS_SHOWN:
        yield _line("", f"and {count(len(factors) - MAX_SPLITS_SHOWN)} factors more; --json has all")


def _describe_split(label: str, split: Mapping[str, Any]) -> Iterator[str]:
    yield _line(label, split["why"])
    yield _line("", "; ".join(f"{name} {_describe_window(window)}" for name, window in split["windows"].items()))


def _describe_window(window: Mapping[str, Any]) -> str:
    if window["exposed"] is None:
        return "partly exposed, count not recorded"
    parts = [f"{count(window[kind])} {kind}" for kind in ("exposed", "clean", "unknown") if window[kind]]
    figures = window["rank_ic"]
    if {"exposed", "clean"} <= {*figures}:
        both = (f"{number(figures[kind]['rank_ic'], 4, sign=True)}" for kind in ("exposed", "clean"))
        return f"{' and '.join(parts)} (RankIC {' and '.join(both)})"
    return " and ".join(parts)
