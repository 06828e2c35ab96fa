from pydantic import BaseModel, ConfigDict

from alphaloom.router.calls.replies import build_response_format


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Open(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 1


class Holder(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inner: list[Open]


def test_only_a_schema_that_leaves_nothing_open_is_called_strict() -> None:
    strict = [build_response_format(each)["json_schema"]["strict"] for each in (Closed, Open, Holder)]
    assert strict == [True, False, False]
