"""The credentials that a caller gives for downstreams."""

import pytest

from proxy.errors import BadFields
from proxy.gateway.asking import Asking, downstream_credentials
from proxy.ports import Fields


def lines(*values: str) -> Fields:
    return (("Accept", "*/*"), *(("X-Sluicegate-Downstream-Authorization", value) for value in values))


def test_each_server_has_its_own() -> None:
    given = lines("/github Bearer abc", "/team/jira \t Basic a:b, c")

    assert downstream_credentials(given) == {"/github": "Bearer abc", "/team/jira": "Basic a:b, c"}


def test_without_the_field_there_are_none() -> None:
    assert downstream_credentials(lines()) == {}


def test_the_same_credential_twice_is_no_contradiction() -> None:
    assert downstream_credentials(lines("/lab x", " /lab  x\t")) == {"/lab": "x"}


@pytest.mark.parametrize(
    "value",
    ["", "/github", "/github ", "Bearer abc", "github Bearer abc", "/ x", "/GitHub x", "/lab/mcp x", "/lab, /other x"],
)
def test_what_names_no_server_or_no_credential_is_refused(value: str) -> None:
    with pytest.raises(BadFields) as caught:
        downstream_credentials(lines(value))
    assert value == "" or value not in str(caught.value)  # it may be a secret


def test_two_credentials_for_one_server_are_refused() -> None:
    with pytest.raises(BadFields):
        downstream_credentials(lines("/lab x", "/lab y"))


def test_a_credential_does_not_show_where_an_asking_is_printed() -> None:
    assert "secret" not in repr(Asking("hash", "2025-11-25", "s", {"/lab": "secret"}))
