"""`sluicegate mirror`: how the copies in Weaviate are, and what can be done about them."""

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from registry.cli.api import Api, fail

mirror = typer.Typer(help="The copies of the tools in Weaviate.", no_args_is_help=True)

Url = Annotated[str, typer.Option(envvar="SLUICEGATE_URL", help="Address of the service.")]
Key = Annotated[str, typer.Option(envvar="SLUICEGATE_KEY", help="Key with the scope admin.", show_envvar=True)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's answer, for programs.")]

_NOBODY = "No replica mirrors now: SLUICEGATE_WEAVIATE_URL is not set where it runs, or it has just been started."

_HERE = "http://127.0.0.1:8470"


@mirror.command()
def status(url: Url = _HERE, key: Key = "", as_json: AsJson = False) -> None:
    """Show state, drift and lag of each mirror; exit code 1 while one is not up."""
    answer = _api(url, key).ask("GET", "/mirror")
    _show(answer, as_json=as_json)
    if any(found["state"] != "up" for found in answer["mirrors"]):
        raise typer.Exit(1)


@mirror.command()
def reconcile(url: Url = _HERE, key: Key = "", as_json: AsJson = False) -> None:
    """Compare everything with MongoDB soon, and mend what differs."""
    _ordered(_api(url, key).ask("POST", "/mirror/reconcile"), as_json=as_json)


@mirror.command()
def rebuild(
    url: Url = _HERE,
    key: Key = "",
    as_json: AsJson = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove our collection in Weaviate and write it anew; search uses the fallback meanwhile."""
    api = _api(url, key)
    if not yes and not sys.stdin.isatty():
        fail("This removes the collection and writes it anew; say --yes.", 2)
    if not yes:
        typer.confirm("Remove the collection and write it anew?", abort=True)
    _ordered(api.ask("POST", "/mirror/rebuild"), as_json=as_json)


@mirror.command()
def prepare(url: Url = _HERE, key: Key = "", as_json: AsJson = False) -> None:
    """Add the property tool_enabled to the collection of another registry (mode `existing`)."""
    _show(_api(url, key).ask("POST", "/mirror/prepare"), as_json=as_json)


def _api(url: str, key: str) -> Api:
    if not key:
        fail("A key is needed: set SLUICEGATE_KEY, or give --key.", 2)
    return Api(url, key)


def _show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer))
        return
    mirrors = (*answer["mirrors"], answer["local"])
    table = Table("mirror", "state", "objects", "drift", "waiting", "lag s", "missing", "compared")
    for row in map(_row, mirrors):
        table.add_row(*row)
    Console().print(table)
    for found in mirrors:
        if found["error"]:
            typer.echo(f"{found['name']}: {found['error']}")
    typer.echo(f"mirrored by {answer['holder']}" if answer["holder"] else _NOBODY)


def _ordered(answer: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer))
    else:
        typer.echo("It begins within a second; `sluicegate mirror status` shows how it goes.")


def _row(found: Mapping[str, Any]) -> tuple[str, ...]:
    lag = max(found["lagS"], found["lastLagS"])
    counts = (str(found[name]) for name in ("objects", "drift", "pending"))
    compared = found["reconciledAt"]
    at = datetime.fromisoformat(compared).strftime("%H:%M:%SZ") if compared else "never"
    return found["name"], found["state"], *counts, f"{lag:.3f}", str(found["missing"]), at
