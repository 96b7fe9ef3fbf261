"""One connection to Weaviate, through which every request goes.

Source: WEAVIATE (traps of the client). A search of a server that is down is tried again for 63 seconds by the client,
and one of a frozen server waits for ever: each request has a deadline here. The start-up checks are left out, since
they ask a package registry.

States:

    CLOSED --ask--> OPEN --a request fails--> SUSPECT --REST answers--> OPEN
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from weaviate import WeaviateAsyncClient
from weaviate.auth import AuthApiKey
from weaviate.config import AdditionalConfig, GrpcConfig, Timeout
from weaviate.connect import ConnectionParams
from weaviate.exceptions import ResponseCannotBeDecodedError

from registry.errors import IndexUnavailable, IndexUnusable
from registry.weaviate.address import Address
from registry.weaviate.faults import FAULTS, translated

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

logging.getLogger("weaviate-client").setLevel(logging.CRITICAL)  # it logs whole objects; what it raises we translate

_CHANNEL = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),  # as the REST half of the client: no proxy of the machine
]
"""By default the pauses grow so long that searches fail for seconds after the server is back."""


class Link:
    """A connection that opens when first used, and is looked at again after each failure.

    After a failure the next request asks REST first, which fails at once while the server is down; gRPC would try
    again until its deadline.
    """

    def __init__(self, address: Address) -> None:
        self.url = address.url
        self._address = address
        self._client: WeaviateAsyncClient | None = None
        self._is_suspect = False
        self._opening = asyncio.Lock()

    async def ask(
        self,
        question: Callable[Concatenate[WeaviateAsyncClient, Arguments], Awaitable[Answer]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """What `question` answers to the client and the arguments, within the deadline.

        Raises IndexUnavailable and IndexUnusable.
        """
        has_answer = False
        try:
            async with asyncio.timeout(self._address.timeout_s):
                answer = await question(await self._open(), *args, **kwargs)
            has_answer = True
            return answer
        except TimeoutError as exc:
            raise IndexUnavailable(self._silence()) from exc
        except FAULTS as exc:
            raise translated(exc, self.url) from exc
        finally:
            self._is_suspect = not has_answer

    def _silence(self) -> str:
        where = f"{self.url} (gRPC at {self._address.grpc})"
        return f"Weaviate at {where} did not answer within {self._address.timeout_s:g} s"

    async def close(self) -> None:
        """End it; a later request opens it again."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _open(self) -> WeaviateAsyncClient:
        async with self._opening:
            if self._client is None:
                self._client = await self._connected()
            elif self._is_suspect:
                await self._client.get_meta()
            return self._client

    async def _connected(self) -> WeaviateAsyncClient:
        client = _client(self._address)
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(client.close)
            try:
                await client.connect()
            except (KeyError, ValueError, ResponseCannotBeDecodedError) as exc:
                raise IndexUnusable(f"what answers at {self.url} is no Weaviate: see SLUICEGATE_WEAVIATE_URL") from exc
            undo.pop_all()
        return client


def _client(address: Address) -> WeaviateAsyncClient:
    return WeaviateAsyncClient(
        connection_params=_parameters(address),
        auth_client_secret=None if address.api_key is None else AuthApiKey(_checked(address.api_key)),
        additional_config=AdditionalConfig(
            # ours comes first, and names the place
            timeout=Timeout(query=address.timeout_s * 2, insert=address.timeout_s * 2, init=address.timeout_s * 2),
            grpc_config=GrpcConfig(channel_options=_CHANNEL),
        ),
        skip_init_checks=True,
    )


def _parameters(address: Address) -> ConnectionParams:
    try:
        return _split(address)
    except ValueError as exc:
        raise IndexUnusable(f"no addresses of Weaviate: {address.url} and, for gRPC, {address.grpc}") from exc


def _split(address: Address) -> ConnectionParams:
    http, rpc = urlsplit(address.url), urlsplit(f"//{address.grpc}")
    is_secure = http.scheme == "https"
    return ConnectionParams.from_params(
        http_host=http.hostname or "",
        http_port=http.port or (443 if is_secure else 80),
        http_secure=is_secure,
        grpc_host=rpc.hostname or "",
        grpc_port=rpc.port or 50051,
        grpc_secure=is_secure,
    )


def _checked(key: str) -> str:
    if not (key.isascii() and key.isprintable()):  # the libraries would quote it whole in their complaint
        raise IndexUnusable("SLUICEGATE_WEAVIATE_API_KEY holds characters that no header can carry")
    return key
