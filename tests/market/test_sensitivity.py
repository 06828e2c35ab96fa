"""Labels of fields: what bears one is told only to who bears it too."""

from __future__ import annotations

import numpy as np
import pytest

from alphaloom.market import MarketError, Panel
from alphaloom.market.panel import REQUIRED_FIELDS
from alphaloom.market.sensitivity import ALL_FIELDS, find_withheld_fields

DATES = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
PANEL = Panel.build(
    DATES, ["A"], {name: np.ones((2, 1)) for name in (*REQUIRED_FIELDS, "flow")}, groups={"sector": ["x"]}
)


def test_a_field_is_marked_for_who_lacks_one_of_its_labels() -> None:
    labels = {"flow": ["confidential", "jurisdiction:CH"], "sector": ["confidential"]}
    assert find_withheld_fields(PANEL, labels) == {"flow", "sector"}
    assert find_withheld_fields(PANEL, labels, ["confidential"]) == {"flow"}
    assert find_withheld_fields(PANEL, labels, ["confidential", "jurisdiction:CH"]) == set()
    assert find_withheld_fields(PANEL, {ALL_FIELDS: ["confidential"]}) == {ALL_FIELDS}


def test_a_label_on_what_is_not_there_is_a_mistake_and_hides_nothing_silently() -> None:
    with pytest.raises(MarketError, match="no field or group folw") as told:
        find_withheld_fields(PANEL, {"folw": ["confidential"]})
    assert "flow" in str(told.value.record()["allowed"])
