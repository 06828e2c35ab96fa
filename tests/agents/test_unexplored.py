"""What nobody wrote yet: the offline researcher surveys where it lies, and tries it first."""

from __future__ import annotations

import json
import re
from typing import Any

from alphaloom.agents.offline import answer_offline
from alphaloom.factors import parse

FIELDS = ["amount", "close", "high", "low", "open", "returns", "volume", "vwap"]
TOLD = ["ts_kurt(ts_std(volume, 55), 33)", "ts_corr(vwap, ts_skew(low, 19), 40)", "ts_mad(ts_rsquare(open, 30), 34)"]
ROWS = [{"text": text, "rank_ic": 0.01, "beside": 0.01, "known": 0.2} for text in TOLD]


def replied(
    task: str, record: dict[str, Any], hypothesis: dict[str, Any], count: int, seed: int = 3, **more: Any
) -> list[Any]:
    context = {
        "task": task,
        "language": {"operators": [], "fields": FIELDS, "groups": []},
        "market": {"horizon_days": 5},
        "hypothesis": hypothesis,
        "record": record,
        "branch": {},
        "request": {"count": count, "step": 0, "spent": 0.0, "survey_share": 0.85} | more,
    }
    (rows,) = json.loads(answer_offline([{"role": "user", "content": json.dumps(context)}], seed)).values()
    return list(rows)


def test_while_the_search_surveys_nothing_is_followed_up() -> None:
    leader = {
        "id": "f0123456789abcdef",
        "text": "ts_kurt(volume, 40)",
        "t": 9.0,
        "rank_ic": 0.03,
        "beside": 0.03,
        "kin": [],
    }
    record = {"unexplored": ROWS, "leaders": [{**leader, "mechanism": "survey_open"}]}
    followed = {
        surveying: sum("Follow-up" in idea["statement"] for idea in replied("idea", record, {}, 12, spent=0.3, **told))
        for surveying, told in ((False, {}), (True, {"surveying": True}))
    }
    assert followed[False] > 0
    assert followed[True] == 0


def surveys(record: dict[str, Any]) -> list[dict[str, Any]]:
    said = replied("idea", record, {}, 12)
    return [idea for idea in said if idea["mechanism"] == "survey_open"]


def test_surveys_read_the_fields_and_operators_of_what_nobody_wrote() -> None:
    found = surveys({"unexplored": ROWS})
    assert len(found) > len(TOLD), "the others are drawn"
    for text, survey in zip(TOLD, found, strict=False):
        read = parse(text)
        assert read.fields <= set(survey["fields"])
        assert set(re.findall(r"ts_\w+", text)) <= set(re.findall(r"ts_\w+", survey["statement"]))
    assert len({survey["statement"] for survey in found}) == len(found)
    assert len(surveys({})) > len(TOLD), "without such formulas all are drawn"


def test_a_survey_tries_first_what_it_is_about_and_half_of_its_drafts_are_its_own() -> None:
    survey = surveys({"unexplored": ROWS})[1]
    drafts = [candidate["text"] for candidate in replied("factor", {"unexplored": ROWS * 9}, survey, 4)]
    assert TOLD[1] in drafts
    assert len(drafts) == 4
    assert len(set(drafts) - set(TOLD)) >= 2
    later = {candidate["text"] for candidate in replied("factor", {"unexplored": ROWS * 9}, survey, 4, step=1)}
    assert later
    assert not set(TOLD) & later
    other = survey | {"mechanism": "trend_quality"}
    assert not set(TOLD) & {candidate["text"] for candidate in replied("factor", {"unexplored": ROWS}, other, 4)}
