"""`sluicegate mirror`: how the copies in Weaviate are, and what can be done about them."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from registry.cli.api import Api, fail

mirror = typer.Typer(help="The copies of the tools in Weaviate.", no_args_is_help=True)

Url = Annotated[str, typer.Option(envvar="SLUICEGATE_URL", help="Address of the service.")]
Key = Annotated[str, typer.Option(envvar="SLUICEGATE_KEY", help="Key with the scope admin.", show_envvar=True)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's answer, for programs.")]

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
    _show(_api(url, key).ask("POST", "/mirror/reconcile"), as_json=as_json)


@mirror.command()
def rebuild(
    url: Url = _HERE,
    key: Key = "",
    as_json: AsJson = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove our collection in Weaviate and write it anew; search uses the fallback meanwhile."""
    if not yes:
        typer.confirm("Remove the collection and write it anew?", abort=True)
    _show(_api(url, key).ask("POST", "/mirror/rebuild"), as_json=as_json)


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
    table = Table("mirror", "state", "objects", "drift", "waiting", "lag s", "missing", "compared at", "error")
    for row in _rows(answer):
        table.add_row(*row)
    Console().print(table)
    typer.echo(f"mirrored by {answer['holder']}" if answer["holder"] else "no replica mirrors to Weaviate now")


def _rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for found in (*answer["mirrors"], answer["local"]):
        lag = max(found["lagS"], found["lastLagS"])
        yield (
            found["name"],
            found["state"],
            str(found["objects"]),
            str(found["drift"]),
            str(found["pending"]),
            f"{lag:.3f}",
            str(found["missing"]),
            (found["reconciledAt"] or "never")[:19],
            found["error"] or "",
        )
