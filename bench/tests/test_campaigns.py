"""The exam on the recorded labels, and the campaigns that they come from."""

from __future__ import annotations

import json
from pathlib import Path

from bench.router.campaigns.exam import EXAM, LEAST_EASY_KEPT, MOST_ECE, Exam
from bench.router.campaigns.settings import CAMPAIGNS, build_settings, write_documents


def test_no_hard_question_of_the_exam_is_answered_by_the_small_model_and_the_probability_is_calibrated() -> None:
    _, *rows = [json.loads(line) for line in EXAM.read_text("utf-8").splitlines()]
    exam = Exam.take(rows, (0.1, 0.4), (3.0, 15.0))
    assert not exam.down[exam.hard & ~exam.checked].any()
    assert exam.down[exam.checked & ~exam.hard].mean() >= LEAST_EASY_KEPT
    assert exam.calibration_error() <= MOST_ECE
    assert sum(count for _, count, _, _ in exam.reliability()) == len(exam.rows)


def test_the_sets_share_no_campaign_and_no_document(tmp_path: Path) -> None:
    texts = {}
    for name, plans in CAMPAIGNS.items():
        paths = [path for place in range(len(plans)) for path in write_documents(name, place, tmp_path)]
        texts[name] = {path.read_text("utf-8") for path in paths}
        assert build_settings(plans[0], paths[:2]).context.summaries == "model"
    assert not texts["training"] & texts["exam"]
    assert not {plan.seed for plan in CAMPAIGNS["training"]} & {plan.seed for plan in CAMPAIGNS["exam"]}
