"""Asks a downstream for all its tools.

Source: DESIGN 5 (Refresh). Every failure becomes one sentence without the address, a credential or anything that the
downstream wrote.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.client.session import ClientSession

from registry.downstream.failures import EXPECTED, failure
from registry.downstream.http import BoundedTransport, Credentials, http_client, no_credentials
from registry.downstream.network import Network
from registry.downstream.pages import Catalogue
from registry.downstream.session import opened, tools_page
from registry.entries import Snapshot
from registry.errors import DownstreamFailed
from registry.model import ServerPolicy


class McpCatalogue:
    """`CatalogueSource` on the official MCP client library.

    `credentials` gives the static header fields of a server, or raises DownstreamFailed. `network` None: addresses by
    the rule without lists, certificates by the system's. `timeout_s` bounds all of one listing.
    """

    def __init__(
        self, credentials: Credentials = no_credentials, network: Network | None = None, *, timeout_s: float = 30.0
    ) -> None:
        self._credentials = credentials
        self._network = network or Network()
        self._timeout_s = timeout_s

    async def snapshot(self, policy: ServerPolicy) -> Snapshot:
        """All pages of `tools/list` and the declared capabilities, within `timeout_s`. Raises DownstreamFailed."""
        transport, fields = BoundedTransport(self._network), self._credentials(policy)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._listing(policy.url, transport, fields)
        except TimeoutError as exc:
            raise DownstreamFailed(f"the downstream did not list its tools in {self._timeout_s:g} s") from exc
        except (DownstreamFailed, *EXPECTED, ExceptionGroup) as exc:
            raise failure(exc, transport.last_status) from exc

    async def _listing(self, url: str, transport: BoundedTransport, fields: Mapping[str, str]) -> Snapshot:
        async with http_client(transport, self._timeout_s, fields) as http, opened(url, http) as session:
            catalogue = Catalogue()
            catalogue.add(await tools_page(session, None))
            while catalogue.next_cursor is not None:
                catalogue.add(await tools_page(session, catalogue.next_cursor))
            return Snapshot(catalogue.tools, _capabilities(session))


def _capabilities(session: ClientSession) -> dict[str, Any]:
    declared = session.server_capabilities
    return {} if declared is None else declared.model_dump(by_alias=True, mode="json", exclude_none=True)
