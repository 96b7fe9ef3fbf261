"""The `sluicegate` command.

Exit codes: 0 after SIGINT or SIGTERM; 1 when it cannot start or cannot go on; 2 for settings and options that make no
sense. Why, in one sentence, is the last thing on standard error.
"""

import asyncio
import contextlib
import importlib.metadata
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from config import banner, collector, demo, descriptors, logs
from config.address import Address
from config.connections import Limits
from config.embedded import EmbeddedStore
from config.environment import load
from config.errors import SettingsInvalid, StartFailed
from config.opening import opened
from config.outbound import network
from config.reset_admin import reset_admin
from config.serve import first_of, listen, serving, until_signalled
from config.settings import Settings
from config.tls import for_listeners
from config.wiring import App, build
from registry.cli import mirror
from registry.errors import RegistryError

cli = typer.Typer(
    help="A transparent reverse proxy in front of MCP servers: a tool its owner switched off is off on every way in.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # the pretty ones print local variables, and with them keys
)

keys = typer.Typer(help="API keys.", no_args_is_help=True)

cli.add_typer(mirror, name="mirror")
cli.add_typer(keys, name="keys")

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="TOML or env file with settings; the environment wins over it.")
]


@cli.command()
def serve(config: ConfigFile = None) -> None:
    """Serve in front of your own MongoDB (SLUICEGATE_MONGODB_URL)."""
    _run(config, embedded=False, with_demo=False)


@cli.command()
def up(
    config: ConfigFile = None,
    with_demo: Annotated[bool, typer.Option("--demo", help="Add a demonstration server as /demo.")] = False,
) -> None:
    """Serve with an embedded store, unless SLUICEGATE_MONGODB_URL names one."""
    _run(config, embedded=True, with_demo=with_demo)


@keys.command("reset-admin")
def reset_admin_key(config: ConfigFile = None) -> None:
    """Make a new admin key in the store itself, and print it once; existing keys are left alone.

    Needs the settings of `serve`; with the embedded store of `up`, end the running Sluicegate first.
    """
    with _giving_up("The store failed"):
        made = reset_admin(config)
        typer.echo("A new admin key, shown this once:", err=True)
        typer.echo(made)


@cli.command()
def version() -> None:
    """Print the version."""
    typer.echo(importlib.metadata.version("sluicegate"))


def main() -> None:
    """Entry point of the `sluicegate` script."""
    cli()


def _run(config: Path | None, *, embedded: bool, with_demo: bool) -> None:
    with _giving_up("The store failed during the start"):
        settings = load(config)
        if settings.mongodb_url is None and not embedded:
            raise SettingsInvalid(
                "SLUICEGATE_MONGODB_URL: must be set for `serve`; `sluicegate up` brings a store of its own"
            )
        network(settings)  # what is wrong with it is said before anything is started
        logs.configure(settings.log_level, settings.log_format)
        descriptors.allow(2 * settings.max_connections + descriptors.OWN)
        asyncio.run(until_signalled(_serve(settings, with_demo=with_demo)))


@contextlib.contextmanager
def _giving_up(failure: str) -> Iterator[None]:
    """Ends the process with one sentence for what goes wrong inside."""
    try:
        yield
    except RegistryError as exc:
        _give_up(f"{failure}: {exc}; try again.", StartFailed.exit_code)
    except StartFailed as exc:
        _give_up(str(exc), exc.exit_code)


def _give_up(sentence: str, exit_code: int) -> NoReturn:
    print(sentence, file=sys.stderr)
    raise typer.Exit(exit_code)


async def _serve(settings: Settings, *, with_demo: bool) -> None:
    watched: list[Callable[[], Awaitable[None]]] = [_for_ever]
    async with contextlib.AsyncExitStack() as stack:
        tls = for_listeners(settings)
        listener, admin_listener, settings = _listening(stack, settings)
        url = settings.mongodb_url.get_secret_value() if settings.mongodb_url else None
        if url is None:
            embedded = await stack.enter_async_context(EmbeddedStore(settings.data_dir))
            url = await embedded.start()
            watched.append(embedded.exited)
        app = build(settings, await stack.enter_async_context(opened(url, settings.policy_timeout_s)))
        demonstration = await stack.enter_async_context(demo.running(app, settings.data_dir)) if with_demo else None
        # late, since a start that fails after it never shows the key; before any other key, or it is not the first
        admin_key = await _first_key(app, settings)
        if demonstration is not None:
            await demo.introduce(app, demonstration)
            watched.append(demonstration.child.exited)
        more = [(app.admin, admin_listener)] if app.admin and admin_listener else []
        limits = Limits.of(settings)
        await stack.enter_async_context(
            serving(app.web, listener, *more, grace_s=settings.grace_s, limits=limits, tls=tls)
        )
        agent_key = demonstration.agent_key if demonstration else None
        print(banner.greeting(settings, admin_key, agent_key), flush=True)
        collector.settle()
        await first_of(*(wait() for wait in watched))


def _listening(
    stack: contextlib.AsyncExitStack, settings: Settings
) -> tuple[socket.socket, socket.socket | None, Settings]:
    """The listeners, that for clients first, and the settings with the ports that they really took."""
    listener = stack.enter_context(listen(settings.listen))
    settings = settings.model_copy(update={"listen": _taken(settings.listen, listener)})
    if settings.admin_listen is None:
        return listener, None, settings
    admin = stack.enter_context(listen(settings.admin_listen, "SLUICEGATE_ADMIN_LISTEN"))
    return listener, admin, settings.model_copy(update={"admin_listen": _taken(settings.admin_listen, admin)})


def _taken(address: Address, listener: socket.socket) -> Address:
    return Address(address.host, listener.getsockname()[1])


async def _first_key(app: App, settings: Settings) -> str | None:
    given = settings.bootstrap_admin_key
    return await app.keys.bootstrap(given.get_secret_value() if given else None)


async def _for_ever() -> None:
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
