"""Why a signal was refused or approved: each rule with its actual value and limit, the evidence, the policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..changes import CHANGE_EVENT
from .factor import tell_origin, tell_reviews
from .rows import RecordReader, RecordRow
from .sentences import Quoted, Telling

DECISION_EVENT, STEP_EVENT, MODE_EVENT = "risk", "book.step", "book.mode"
EQUITY_RULES = frozenset(
    {"single_name", "interval_width", "gross", "net", "turnover", "recent_turnover", "margin", "sector", "style"}
)
"""Rules whose values the record has in 1e-8 of equity."""
UNITS_PER_BP, HUNDREDTHS = 10_000, 100
RULE_WORDS: Mapping[str, str] = {
    "schema": "the signal is well formed",
    "duplicate": "no other signal names the symbol",
    "proven": "the policy admits how the evidence was proven",
    "original": "the formula shares no more with a known factor than the limit, in bp of the formula",
    "reviewed": "a person approved the evidence",
    "alive": "the policy admits the status of the evidence in the library",
    "contained": "the code of the evidence ran in the sandbox",
    "unalarmed": "no leak alarm of the evidence is open",
    "unexposed": "the evidence carries no audited attribute",
    "valid": "the signal is still valid, in days too late",
    "stale_data": "the price is recent, in trading days since the last one",
    "price_jump": "the price did not jump, in bp of the price before",
    "restricted": "the symbol is not on the restricted list",
    "borrow": "the symbol can be borrowed: it is not on the list of those that nobody lends",
    "single_name": "the exposure to one name, in bp of equity",
    "interval_width": "the distance between the bounds of the signal, in bp of equity",
    "liquidity": "the days that selling takes",
    "name_fall": "the loss of the position from its best price, in bp of that price",
    "kill_switch": "the kill switch is off",
    "trading_state": "the book trades: 0 active, 1 reducing, 2 halted",
    "trailing_drawdown": "the fall of equity from its highest value, in bp",
    "max_drawdown": "the fall of equity from its highest value that halts, in bp",
    "daily_loss": "the loss of the day, in bp of equity at its start",
    "rejects": "the orders of the day that a venue rejected",
    "gross": "long plus short exposure, in bp of equity",
    "net": "long minus short exposure, in bp of equity",
    "turnover": "bought plus sold in a day, in bp of equity",
    "recent_turnover": "bought plus sold in 20 days, in bp of equity",
    "margin": "the margin in use, in bp of equity",
    "positions": "the names held",
    "sector": "the exposure to one sector, in bp of equity",
    "style": "the exposure to one style, in bp of equity times standard deviations",
}
"""What each rule of the gate asks, with the unit of its values."""
LISTED_RULES = frozenset({"restricted", "borrow"})
MAX_SYMBOLS_NAMED = 500


@dataclass(frozen=True)
class RecordedDecision:
    """A decision of the risk gate on record.

    Attributes
    ----------
    row
        The event: of a campaign, or the step of a book.
    body
        The decision.
    policy
        The policy with which it was made, where its text is on record; else empty.
    """

    row: RecordRow
    body: Mapping[str, Any]
    policy: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.body.get("id", ""))


def list_decisions(reader: RecordReader) -> list[RecordedDecision]:
    """Return all decisions of the gate, the oldest first; policies of steps are read from their inputs."""
    found = []
    for row in reader.events(DECISION_EVENT, STEP_EVENT):
        body = row.body if row.columns["kind"] == DECISION_EVENT else row.body.get("decision")
        if isinstance(body, Mapping) and body:
            found.append(RecordedDecision(row, body, {}))
    return found


def read_policy_of(reader: RecordReader, decision: RecordedDecision) -> Mapping[str, Any]:
    """Return the policy of a decision, where its text is on record: with the step of a book, or as a version in use."""
    inputs = reader.read_object(str(decision.row.body["inputs"])) if decision.row.body.get("inputs") else None
    if isinstance(inputs, Mapping) and isinstance(inputs.get("policy"), Mapping):
        policy: Mapping[str, Any] = inputs["policy"]
        return policy
    version = find_policy_version(reader, decision)
    found = reader.read_object(str(version.body.get("after", ""))) if version else None
    return found if isinstance(found, Mapping) else {}


def find_policy_version(reader: RecordReader, decision: RecordedDecision) -> RecordRow | None:
    """Return the row of the policy that was in use at a decision; None in a record without a register of changes."""
    rows = [row for row in reader.events(CHANGE_EVENT) if row.body.get("kind") == "policy"]
    return next((row for row in reversed(rows) if row.number < decision.row.number), None)


def tell_decision(telling: Telling, decision: RecordedDecision, asset: str = "") -> None:
    """Say what the gate decided, of all signals or of one."""
    row, body = decision.row, decision.body
    rulings = [one for one in body.get("rulings") or () if not asset or one.get("asset") == asset]
    refused = [one for one in rulings if not one.get("approved")]
    approved = [one for one in rulings if one.get("approved")]
    passed = [bool(one.get("approved")) for one in body.get("rulings") or ()]
    telling.say(
        "Decision {decision} of run {run} for {day} approved {approved} signals and refused {refused}.", [row],
        ("approved", "refused"), decision=decision.id, run=row.run, day=str(body.get("day", "")),
        approved=sum(passed), refused=len(passed) - sum(passed),
    )  # fmt: skip  # a call as a sentence
    for ruling in refused:
        _tell_refusal(telling, decision, ruling)
    for ruling in approved if asset else ():
        _tell_approval(telling, decision, ruling)
    if approved and not asset:
        symbols = [str(one.get("asset", "")) for one in approved]
        telling.say("It approved the signals for {assets}.", [row], assets=symbols[:MAX_SYMBOLS_NAMED])
    for check in body.get("book") or ():
        if not check.get("passed"):
            actual, limit = show_amounts(str(check.get("rule")), check.get("actual"), check.get("limit"))
            telling.say(
                "The whole book fails the rule {rule}: actual {actual}, limit {limit}; it asks: {words}.", [row],
                (str(check.get("rule")), "fails"), rule=str(check.get("rule")), actual=actual, limit=limit,
                words=RULE_WORDS.get(str(check.get("rule")), ""),
            )  # fmt: skip  # a call as a sentence
    names = list(dict.fromkeys(str(one.get("signal", {}).get("evidence", "")) for one in rulings))
    _tell_evidence(telling, decision, names)
    _tell_policy(telling, decision, names)


def _tell_refusal(telling: Telling, decision: RecordedDecision, ruling: Mapping[str, Any]) -> None:
    """Say each rule that refused a signal."""
    asset, limits = str(ruling.get("asset", "")), _find_limits(decision.body, ruling)
    for rule, actual, limit in _list_checks(decision.body, ruling, limits):
        if rule in (ruling.get("refusals") or ()):
            about = str((ruling.get("about") or {}).get(rule, ""))
            telling.say(
                "The rule {rule} refused the signal for {asset}: actual {actual}, limit {limit}; it asks: {words}."
                + (" It concerns {about}." if about else ""),
                [decision.row], (rule, asset, "refused"), rule=rule, asset=asset, actual=actual, limit=limit,
                words=RULE_WORDS.get(rule, ""), about=about,
            )  # fmt: skip  # a call as a sentence


def _tell_approval(telling: Telling, decision: RecordedDecision, ruling: Mapping[str, Any]) -> None:
    """Say why one signal was approved: every rule that holds, with its actual value and limit."""
    asset, limits, signal = (
        str(ruling.get("asset", "")),
        _find_limits(decision.body, ruling),
        ruling.get("signal") or {},
    )
    telling.say(
        "The signal for {asset} was approved with a target of {target} bp of equity, valid until {until}.",
        [decision.row], (asset, "approved"), asset=asset, target=_to_bp(signal.get("target_e8")),
        until=str(signal.get("until", "")),
    )  # fmt: skip  # a call as a sentence
    if ruling.get("reduces"):
        telling.say(
            "The signal for {asset} only reduces an exposure, so most rules do not bind it.",
            [decision.row],
            asset=asset,
        )
    for rule, actual, limit in _list_checks(decision.body, ruling, limits):
        telling.say(
            "The rule {rule} of {asset}: actual {actual}, limit {limit}; it asks: {words}.", [decision.row],
            rule=rule, asset=asset, actual=actual, limit=limit, words=RULE_WORDS.get(rule, ""),
        )  # fmt: skip  # a call as a sentence


def _find_limits(body: Mapping[str, Any], ruling: Mapping[str, Any]) -> list[Any]:
    limits = body.get("limits") or [[], []]
    return list(limits[1 if ruling.get("reduces") else 0])


def _list_checks(
    body: Mapping[str, Any], ruling: Mapping[str, Any], limits: list[Any]
) -> Iterator[tuple[str, Any, Any]]:
    for rule, actual, limit in zip(body.get("rules") or (), ruling.get("values") or (), limits, strict=False):
        yield (str(rule), *show_amounts(str(rule), actual, limit))


def show_amounts(rule: str, actual: Any, limit: Any) -> tuple[Any, Any]:
    """Return an actual value and a limit in the unit of a rule's words."""
    unit = UNITS_PER_BP if rule in EQUITY_RULES else HUNDREDTHS if rule == "liquidity" else 1
    shown = [value / unit if isinstance(value, int) and unit > 1 else value for value in (actual, limit)]
    return shown[0], "none" if shown[1] is None else shown[1]


def _to_bp(value: Any) -> Any:
    return value / UNITS_PER_BP if isinstance(value, int) else value


def _tell_evidence(telling: Telling, decision: RecordedDecision, names: list[str]) -> None:
    """Say what the record said of the evidence when the gate decided, and where the verdict is."""
    reader, row = telling.reader, decision.row
    for name, standing in (decision.body.get("standings") or {}).items():
        if names and not any(name in one for one in names):
            continue
        verdicts = [one for one in reader.rows("verdicts") if one.columns["factor_id"] == name]
        library = [one for one in reader.rows("library") if one.columns["factor_id"] == name]
        telling.say(
            "The record said of the evidence {evidence}: proof {proof}, status {status}.",
            [row, *verdicts[-1:], *library], evidence=name, proof=str(standing.get("verdict", "")).replace("_", " "),
            status=str(standing.get("status", "")) or "none",
        )  # fmt: skip  # a call as a sentence
        if standing.get("review"):
            telling.say("A person {review} the evidence {evidence}.", [row], review=standing["review"], evidence=name)
        if standing.get("leak_alarm"):
            telling.say("A leak alarm of the evidence {evidence} was open.", [row], ("alarm", name), evidence=name)
        for held in library:
            if run := str(held.body.get("run", "")):
                tell_origin(telling, name, run)
                tell_reviews(telling, name, run)
            else:
                telling.say("A person put the evidence {evidence} into the library by hand.", [held], evidence=name)
        for exposure in standing.get("exposures") or ():
            found = "carries" if exposure.get("found") else "was not found to carry"
            telling.say(
                "By exposure audit {number} the evidence {evidence} {found} {attribute}.", [row],
                number=exposure.get("number"), evidence=name, found=found, attribute=str(exposure.get("attribute", "")),
            )  # fmt: skip  # a call as a sentence


def _tell_policy(telling: Telling, decision: RecordedDecision, names: list[str]) -> None:
    """Say which policy was applied, who set it, and which exceptions concern the evidence."""
    reader, row, day = telling.reader, decision.row, str(decision.body.get("day", ""))
    telling.say("It applied the policy {policy}.", [row], policy=str(decision.body.get("policy", "")))
    version = find_policy_version(reader, decision)
    if version is not None and version.body.get("account"):
        telling.say(
            "The policy came into use on {at} under the account {account} of the machine.", [version],
            at=version.at[:10], account=str(version.body["account"]),
        )  # fmt: skip  # a call as a sentence
    else:
        telling.say("The record does not name the person who set this policy.", [row])
    policy = read_policy_of(reader, decision)
    if not policy:
        telling.say(
            "The record has the digest of this policy and not its text, so its exceptions are not known.", [row]
        )
        return
    concerned = [
        one for one in policy.get("exceptions") or () if any(str(one.get("evidence")) in name for name in names)
    ]
    for one in concerned:
        owner, until = str(one.get("owner", "")), str(one.get("until", ""))
        telling.approver.append(owner)
        state = "held" if until >= day else "had expired"
        telling.say(
            "An exception of {owner} excuses {evidence} from the rule {rule} until {until}; on the day of the decision "
            "it {state}. The reason given is {reason}.", [row], (owner, str(one.get("rule", ""))),
            owner=owner, evidence=str(one.get("evidence", "")), rule=str(one.get("rule", "")), until=until, state=state,
            reason=Quoted(str(one.get("reason", ""))),
        )  # fmt: skip  # a call as a sentence
    if not concerned:
        telling.say("The policy has no exception for this evidence.", [row])


def tell_step(telling: Telling, row: RecordRow, asset: str = "") -> None:
    """Say what a step of a book took in, and what the gate decided in it."""
    body = row.body
    telling.say(
        "The step of {day} of the book {book} decided the positions for {decided_for}, with trading {mode}.", [row],
        (str(body.get("mode", "")),), day=str(body.get("day", "")), book=row.run,
        decided_for=str(body.get("decided_for", "")), mode=str(body.get("mode", "")),
    )  # fmt: skip  # a call as a sentence
    if body.get("late"):
        telling.say("It was recorded on {at}, after the day for which it decided had begun.", [row], at=row.at[:10])
    orders = {one.key: one for one in telling.reader.events(MODE_EVENT) if one.run == row.run}
    for order in body.get("orders") or ():
        if found := orders.get(str(order[0])):
            tell_order(telling, found)
    for flow in body.get("flows") or ():
        telling.say("It took in a payment of {amount}.", [row], amount=flow[1])
    decision = body.get("decision")
    if isinstance(decision, Mapping) and decision:
        tell_decision(telling, RecordedDecision(row, decision, {}), asset)
    else:
        telling.say("The gate was asked for nothing in this step.", [row])


def tell_order(telling: Telling, row: RecordRow) -> None:
    """Say who halted, limited or resumed a book."""
    body, by, second = row.body, str(row.body.get("by", "")), str(row.body.get("second", ""))
    mode = str(body.get("mode", ""))
    telling.approver += [by, *([second] if second else [])]
    telling.say(
        "{by} ordered on {day} that the book {book} is {mode}: {reason}.", [row], (by, mode),
        by=by, day=str(body.get("at", row.at))[:10], book=row.run, mode=mode,
        reason=Quoted(str(body.get("reason", ""))),
    )  # fmt: skip  # a call as a sentence
    if second:
        telling.say("{second} agreed to the order.", [row], (second, "agreed"), second=second)
    else:
        telling.say("No second person agreed to the order.", [row])
