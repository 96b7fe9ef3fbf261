"""Static credentials of a server: templates that name variables, never a secret. Pure.

Source: DESIGN 3 (Credentials), DESIGN 5 (`registrySettings.credentials`). Stored is `{"Authorization": "Bearer
${SLUICEGATE_CREDENTIAL_GITHUB}"}`; the value comes from the environment of the process that sends it. Only variables
with that prefix can be named, so that no template reaches our own settings.
"""

import re
from collections.abc import Iterable, Mapping

Templates = tuple[tuple[str, str], ...]
"""Header field name and template, by name."""

PREFIX = "SLUICEGATE_CREDENTIAL_"

_REFERENCE = re.compile(r"\$\{(" + PREFIX + r"[A-Z0-9_]+)\}")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^`|~-]{1,100}")
_LITERAL = re.compile(r"[ -~]*")
_RESERVED = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "last-event-id",
        "origin",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
    }
)
"""Fields that the transport sets, with `Mcp-*`, `Proxy-*`, `X-Forwarded-*` and `X-Sluicegate-*`."""


class Unset(Exception):
    """A variable that a template names has no value. The message names the variable."""


def fault(templates: Mapping[str, str]) -> str | None:
    """Why these cannot be a server's credentials, None when they can."""
    names = [name.lower() for name in templates]
    if len(set(names)) < len(names):
        return "a header field is named twice"
    for name, template in templates.items():
        if _NAME.fullmatch(name) is None or _is_reserved(name.lower()):
            return f"{name} is no header field that a credential can be sent in"
        if not _REFERENCE.search(template):
            return f"the value of {name} must name a variable, like ${{{PREFIX}EXAMPLE}}"
        if _LITERAL.fullmatch(template) is None or "${" in _REFERENCE.sub("", template):
            return f"the value of {name} is visible ASCII, and names variables as ${{{PREFIX}EXAMPLE}}"
    return None


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or name.startswith(("mcp-", "proxy-", "x-forwarded-", "x-sluicegate-"))


def variables(templates: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The variables that are named."""
    return frozenset(name for _, template in templates for name in _REFERENCE.findall(template))


def filled(templates: Iterable[tuple[str, str]], values: Mapping[str, str]) -> Templates:
    """Field name and value, to be sent. Raises Unset."""
    return tuple((name, _REFERENCE.sub(lambda match: _value(match[1], values), text)) for name, text in templates)


def _value(variable: str, values: Mapping[str, str]) -> str:
    value = values.get(variable, "")
    if not value or not value.isprintable() or not value.isascii():
        raise Unset(f"{variable} is not set, or holds what no header field can")
    return value
