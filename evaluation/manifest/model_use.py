"""The models of a campaign and the prompts that they were sent: declared facts, and what the record of calls has."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from ...ledger import Ledger, LedgerError, ModelCall, Run
from ..closing import Results
from .authors import RULES_PROVIDER

PRICE_SETTINGS = ("input_cost_per_mtok", "output_cost_per_mtok", "cached_input_cost_per_mtok")


def list_model_use(ledger: Ledger, run: Run) -> list[dict[str, Any]]:
    """Return a row for each model that the file declares or that answered, by name.

    `vendor` made the model, `provider` is through whom it was asked, `deployer` on whose behalf; None where that is not
    declared. Prices are US dollars per million tokens as declared; None: nothing for a model on machines of one's own,
    else the list price of the time, and `usd` is what was charged.
    """
    calls = ledger.calls.of(run.id)
    declared = ((run.config.get("settings") or {}).get("models") or {}).get("models") or {}
    names = sorted({*declared, *(call.model for call in calls)})
    return [
        _describe_model(name, declared.get(name) or {}, [call for call in calls if call.model == name], ledger)
        for name in names
    ]


def _describe_model(
    name: str, settings: Mapping[str, Any], calls: Sequence[ModelCall], ledger: Ledger
) -> dict[str, Any]:
    model = str(settings.get("model", ""))
    provider = next((call.provider for call in calls if call.provider), model.partition("/")[0])
    vendor = next((call.vendor for call in calls if call.vendor), str(settings.get("vendor") or ""))
    tenants = sorted({call.tenant for call in calls if call.tenant})
    is_rules = provider == RULES_PROVIDER
    return {
        "name": name,
        "model": model or None,
        "language_model": not is_rules,
        "vendor": "Alphaloom" if is_rules else vendor or None,
        "provider": provider or None,
        "deployer": tenants or None,
        "served_as": [] if is_rules else sorted({served for call in calls if (served := _read_served(call, ledger))}),
        "cutoff": settings.get("cutoff"),
        "tier": settings.get("tier"),
        "place": settings.get("place"),
        "region": settings.get("region") or None,
        "endpoint": "this process" if is_rules else _classify_endpoint(settings.get("api_base")),
        "attested": bool(settings.get("attestation")),
        "prices": {price: settings.get(price) for price in PRICE_SETTINGS},
        "calls": len(calls),
        "taken_from_the_record": sum(not call.attempts for call in calls),
        "by_role": {role: sum(call.role == role for call in calls) for role in sorted({call.role for call in calls})},
        "tokens_in": sum(call.tokens_in for call in calls),
        "tokens_out": sum(call.tokens_out for call in calls),
        "usd": math.fsum(call.cost_usd for call in calls),
    }


def _classify_endpoint(address: str | None) -> str:
    """Return what kind of address a model was asked at, without the address."""
    if not address:
        return "the provider's own address"
    host = urlsplit(address).hostname or ""
    try:
        parsed = ip_address(host)
    except ValueError:
        return "this machine" if host == "localhost" else "a named host"
    return "this machine" if parsed.is_loopback else "a private network" if parsed.is_private else "a public address"


def _read_served(call: ModelCall, ledger: Ledger) -> str:
    """Return the version of the model as its server named it; empty where it did not.

    Older records have it in the reply, which may be gone.
    """
    if call.served:
        return call.served
    try:
        return str(json.loads(ledger.objects.get(call.reply)).get("served", ""))
    except (LedgerError, OSError, ValueError, AttributeError):
        return ""


def list_prompts(ledger: Ledger, run: Run, results: Results | None) -> list[dict[str, Any]]:
    """Return each prompt by digest: the page that it is, where it is a single one, and what it asked for how often."""
    pages = {page.digest: (name, page.whose) for name, page in (results.own.prompts if results else {}).items()}
    uses: dict[str, dict[str, int]] = {}
    for call in ledger.calls.of(run.id):
        counts = uses.setdefault(call.prompt, {})
        work = f"{call.role}/{call.intent}"
        counts[work] = counts.get(work, 0) + 1
    rows = []
    for digest, counts in sorted(uses.items()):
        name, whose = pages.get(digest, (None, None))
        rows.append({"digest": digest, "page": name, "whose": whose, "calls": dict(sorted(counts.items()))})
    return rows
