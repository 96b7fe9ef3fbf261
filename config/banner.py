"""What a person reads at the start, on standard output. Nothing of it is ever logged."""

import json
import shlex
import textwrap

from config.settings import Settings

_TRY = '{"disabledTools": ["delete_repository"]}'
_GIVEN = "$SLUICEGATE_BOOTSTRAP_ADMIN_KEY"
"""Stands for a key that the operator chose, and that therefore need not be shown."""


def greeting(settings: Settings, first_key: str | None, agent_key: str | None) -> str:
    """The text of a start, for a terminal of 80 columns.

    Args:
        settings: with the port that was really taken.
        first_key: the admin key, when this start made one.
        agent_key: the agent's key of the demonstration; None without a demonstration.
    """
    parts = [f"Sluicegate is ready on {settings.base_url}"]
    if settings.admin_listen is not None:
        parts += [f"Owners and operators reach it on {settings.api_url}"]
    if agent_key is not None:
        parts += [_client(f"{settings.base_url}/proxy/demo", agent_key)]
        parts += [f"The same key finds and runs the tools of every server that it may see at {settings.base_url}/mcp"]
    parts += [_admin(settings, first_key, demo=agent_key is not None)]
    return "\n" + "\n\n".join(parts) + "\n\nCtrl-C ends it.\n"


def _client(url: str, key: str) -> str:
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {key}"}}
    configuration = json.dumps({"mcpServers": {"demo": server}}, indent=2)
    return f"For an MCP client, straight through the proxy to the demonstration server:\n\n{_indented(configuration)}"


def _admin(settings: Settings, key: str | None, *, demo: bool) -> str:
    if key is None:
        return "The admin key is that of the first start."
    own = settings.bootstrap_admin_key is not None
    if not demo:
        return "The admin key is that of SLUICEGATE_BOOTSTRAP_ADMIN_KEY." if own else _once(_indented(key))
    command = _curl(settings.api_url, _GIVEN if own else key)
    return f"For the owner, to switch a tool off:\n\n{command}" if own else _once(command, " It switches a tool off:")


def _once(text: str, more: str = "") -> str:
    return f"The admin key, shown this once; keep it.{more}\n\n{text}"


def _curl(api_url: str, key: str) -> str:
    address = shlex.quote(f"{api_url}/api/v1/servers/%2Fdemo/tools")
    lines = (
        f"curl -X PATCH {address} \\",
        f'  -H "Authorization: Bearer {key}" \\',
        "  -H 'Content-Type: application/json' \\",
        f"  -d '{_TRY}'",
    )
    return _indented("\n".join(lines))


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")
