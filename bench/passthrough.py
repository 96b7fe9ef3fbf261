"""What a proxy on aiohttp costs that looks at nothing: `python -m bench.passthrough PORT DOWNSTREAM`."""

import asyncio
import sys
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

_PER_HOP = {"host", "content-length", "connection", "transfer-encoding"}


def application(downstream: str) -> web.Application:
    """Sends everything to `downstream`, `scheme://host:port`, and streams back what comes."""
    session = web.AppKey("session", aiohttp.ClientSession)

    async def passed(request: web.Request) -> web.StreamResponse:
        fields = {name: value for name, value in request.headers.items() if name.lower() not in _PER_HOP}
        async with request.app[session].request(
            request.method,
            downstream + request.rel_url.raw_path_qs,
            data=await request.read(),
            headers=fields,
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            response.headers.extend((n, v) for n, v in answer.headers.items() if n.lower() not in _PER_HOP)
            response.content_length = answer.content_length
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    async def opened(app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as app[session]:
            yield

    app = web.Application(client_max_size=1 << 30)
    app.cleanup_ctx.append(opened)
    app.router.add_route("*", "/{path:.*}", passed)
    return app


async def _serve(port: int, downstream: str) -> None:
    runner = web.AppRunner(application(downstream), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=2_048).start()
    print("listening", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2]))
