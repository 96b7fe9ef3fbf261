"""A server's credentials are templates that name variables of one prefix, and nothing else (DESIGN 3, DESIGN 5)."""

import pytest

from registry.references import PREFIX, Unset, fault, filled, variables

REFERENCE = f"${{{PREFIX}HUB}}"
OTHER = f"${{{PREFIX}OTHER_2}}"


@pytest.mark.parametrize(
    "templates",
    [
        {},
        {"Authorization": f"Bearer {REFERENCE}"},
        {"X-Api-Key": REFERENCE},
        {"X-Both": f"{REFERENCE}:{OTHER}", "X-One": OTHER},
        {"X-Dollar": f"$5 {{}} {REFERENCE}"},
        {"!#$%&'*+.^`|~-09azAZ": REFERENCE},
        {"x" * 100: REFERENCE},
        {"Xmcp-Session": REFERENCE, "Te-St": REFERENCE},
    ],
)
def test_templates_that_name_variables_can_be_credentials(templates: dict[str, str]) -> None:
    assert fault(templates) is None


def test_a_field_cannot_be_named_twice_in_any_case() -> None:
    assert fault({"X-Key": REFERENCE, "x-kEY": REFERENCE}) == "a header field is named twice"


@pytest.mark.parametrize("name", ["", "a b", "X-Key:", "X-K\u00e9y", "X-Key\r\nX-Other", "x" * 101, "(x)"])
def test_a_name_that_is_no_field_name_is_refused(name: str) -> None:
    assert fault({name: REFERENCE}) == f"{name} is no header field that a credential can be sent in"


@pytest.mark.parametrize(
    "name",
    [
        *("Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect"),
        *("Host", "HOST", "Last-Event-ID", "Origin", "Range", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Via"),
        *("Mcp-Session-Id", "MCP-Protocol-Version", "Proxy-Authorization", "X-Forwarded-For", "X-Sluicegate-Key"),
    ],
)
def test_a_field_that_the_transport_sets_is_refused(name: str) -> None:
    assert fault({"Authorization": REFERENCE, name: REFERENCE}) == (
        f"{name} is no header field that a credential can be sent in"
    )


@pytest.mark.parametrize(
    "template", ["", "sg_secret", "$HUB", f"{PREFIX}HUB", "${HOME}", "${SLUICEGATE_ADMIN_KEY}", f"${{{PREFIX}}}"]
)
def test_a_value_that_names_no_variable_may_be_a_secret_and_is_refused(template: str) -> None:
    assert fault({"X-Key": template}) == f"the value of X-Key must name a variable, like ${{{PREFIX}EXAMPLE}}"


@pytest.mark.parametrize(
    "rest", ["${HOME}", "${SLUICEGATE_MONGO_URL}", f"${{{PREFIX}lower}}", "${", "\r\n", "\n", "\t", "\x7f", "\u00e9"]
)
def test_besides_its_variables_a_value_is_visible_ascii(rest: str) -> None:
    assert fault({"X-Key": REFERENCE + rest}) == (
        f"the value of X-Key is visible ASCII, and names variables as ${{{PREFIX}EXAMPLE}}"
    )


def test_the_variables_are_those_of_all_templates() -> None:
    templates = [("A", f"x {REFERENCE} {OTHER}"), ("B", OTHER), ("C", "${HOME}")]

    assert variables(templates) == {f"{PREFIX}HUB", f"{PREFIX}OTHER_2"}
    assert variables([]) == frozenset()


def test_every_variable_is_filled_in_and_the_rest_stays() -> None:
    templates = [("A", f"Bearer {REFERENCE}, {OTHER}"), ("B", f"{OTHER} {OTHER}")]
    values = {f"{PREFIX}HUB": "one", f"{PREFIX}OTHER_2": "two", "HOME": "never"}

    assert filled(templates, values) == (("A", "Bearer one, two"), ("B", "two two"))


def test_a_value_is_not_filled_in_again() -> None:
    assert filled([("A", REFERENCE)], {f"{PREFIX}HUB": OTHER, f"{PREFIX}OTHER_2": "two"}) == (("A", OTHER),)


@pytest.mark.parametrize("values", [{}, {f"{PREFIX}HUB": ""}])
def test_a_variable_without_a_value_is_told_by_its_name(values: dict[str, str]) -> None:
    with pytest.raises(Unset, match=f"^{PREFIX}HUB "):
        filled([("A", REFERENCE)], values)


@pytest.mark.parametrize("value", ["sec\r\nret", "sec\tret", "s\u00e9cret", "\x00"])
def test_a_value_that_no_field_can_hold_is_not_sent_and_not_told(value: str) -> None:
    with pytest.raises(Unset) as told:
        filled([("A", f"{OTHER} {REFERENCE}")], {f"{PREFIX}HUB": value, f"{PREFIX}OTHER_2": "two"})
    assert str(told.value) == f"{PREFIX}HUB is not set, or holds what no header field can"
