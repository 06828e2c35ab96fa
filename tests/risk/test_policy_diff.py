"""Two policies beside each other, and a unit for every rule and limit."""

from datetime import date

from hypothesis import given, strategies as st

from alphaloom.risk import ALL_RULES, LIMIT_UNITS, RULE_UNITS, Policy, PolicyException, RiskLimits, compare_policies

from .test_laws import policies

OPPOSITE = {"tighter": "looser", "looser": "tighter", "added": "gone", "gone": "added", "both": "both"}
LISTS: st.SearchStrategy[dict[str, object]] = st.builds(
    dict,
    restricted=st.sampled_from([(), ("AAA",), ("BBB", "AAA"), ("AAA", "BBB")]),
    admitted=st.sampled_from([("accepted",), ("member", "accepted"), ("accepted", "member"), ("by_hand",)]),
    sector_cap_bp=st.sampled_from([None, 100, 200]),
)


def test_every_rule_and_every_limit_has_a_unit() -> None:
    assert list(RULE_UNITS) == list(ALL_RULES)
    assert LIMIT_UNITS.keys() == RiskLimits.model_fields.keys()


@given(policies(), policies(), LISTS, LISTS)
def test_the_other_way_round_the_changes_are_opposite(
    first: Policy, second: Policy, lists: dict[str, object], others: dict[str, object]
) -> None:
    first, second = first.model_copy(update=lists), second.model_copy(update=others)
    found = {one.name: one.change for one in compare_policies(first, second)}
    assert {one.name: OPPOSITE[one.change] for one in compare_policies(second, first)} == found
    assert compare_policies(first, first) == ()
    if found and {*found.values()} <= {"tighter", "added"}:
        limits = RiskLimits.model_validate({name: getattr(second, name) for name in RiskLimits.model_fields})
        assert compare_policies(first.tightened(limits)[0], first) == (), "nothing of the other is tighter"


def test_exceptions_are_added_gone_and_hold_longer() -> None:
    def excepted(until: int, reason: str = "textbook") -> Policy:
        one = PolicyException(evidence="f1", rule="proven", reason=reason, owner="Ada", until=date(2027, 1, until))
        return Policy(exceptions=(one,))

    changes = [
        compare_policies(own, other)[0].change
        for own, other in (
            (excepted(1), Policy()),
            (Policy(), excepted(1)),
            (excepted(2), excepted(1)),
            (excepted(1), excepted(2)),
            (excepted(1), excepted(1, "other")),
        )
    ]
    assert changes == ["added", "gone", "looser", "tighter", "changed"]
