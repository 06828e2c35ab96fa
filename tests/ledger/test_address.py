"""An address may be shown and kept, so there is no way to write a secret into it, nor to have one repeated."""

from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from alphaloom.ledger.errors import AddressError
from alphaloom.ledger.postgres.server import check_address, database_name

GOOD = [
    "postgresql://localhost/alphaloom",
    "postgres://ann@db.example:5433/alphaloom?sslmode=verify-full",
    "postgresql://ann@/alphaloom?host=/var/run/postgresql&port=5433",
    "postgresql://one:5432,two:5433/alphaloom?target_session_attrs=read-write",
    "postgresql://ann@[::1]:5432/alphaloom",
]


@pytest.mark.parametrize("address", GOOD)
def test_what_libpq_reads_without_a_secret_is_taken_as_it_is(address: str) -> None:
    assert check_address(address) == address
    assert database_name(address) == "alphaloom"


SECRET = st.text("78:/?#@&=%+ ", min_size=5).filter(lambda text: {"7", "8"} & set(text))
"""What is told by itself has none of these digits in it, so that even a piece of a secret would be seen."""
FORMS = [
    "postgresql://ann:{}@host/alphaloom",
    "postgresql://ann:{}@host:5432/alphaloom?sslmode=require",
    "postgresql://ann:{}@/alphaloom",
    "postgresql://host/alphaloom?password={}",
    "postgresql://host/alphaloom?user=ann&password={}",
    "postgresql://host/alphaloom?sslpassword={}",
    "postgresql://host/alphaloom?p%61ssword={}",
    "host=host dbname=alphaloom password={}",
    "mysql://ann:{}@host/alphaloom",
    "{}",
]


@given(form=st.sampled_from(FORMS), secret=SECRET, quoted=st.booleans())
def test_a_password_is_refused_wherever_it_stands_and_never_repeated(form: str, secret: str, quoted: bool) -> None:
    address = form.format(quote(secret, safe="") if quoted else secret)
    with pytest.raises(AddressError) as caught:
        check_address(address)
    assert not {"7", "8"} & set(f"{caught.value} {caught.value.record()}")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "address", ["", "postgresql://host", "postgresql://host/", "postgresql:host/a", "x.sqlite", "/a"]
)
def test_what_is_no_address_is_told_with_the_form_of_one(address: str) -> None:
    with pytest.raises(AddressError) as caught:
        check_address(address)
    assert "postgresql://USER@HOST:PORT/DATABASE" in str(caught.value)


def test_an_option_that_changes_the_session_is_refused_by_name() -> None:
    with pytest.raises(AddressError, match="options that are not known") as caught:
        check_address("postgresql://host/alphaloom?options=-csearch_path%3Dpublic")
    assert caught.value.got == ["options"]
