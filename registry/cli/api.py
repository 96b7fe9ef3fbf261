"""Asks the registry API, and says in one sentence what went wrong.

Exit codes: 0 done; 1 the API refused or failed; 2 the command makes no sense as given (no key, no such option).
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, NoReturn

import aiohttp
import typer

_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Api:
    """Where the API is and with which key. `url` is the service's address, without `/api/v1`."""

    url: str
    key: str = field(repr=False)

    def ask(self, method: str, path: str) -> Any:
        """The decoded answer; ends the command with one sentence on standard error when there is none."""
        try:
            return asyncio.run(self._ask(method, path))
        except aiohttp.InvalidURL:
            fail(f"{self.url} is no address; set SLUICEGATE_URL to one like http://127.0.0.1:8470", 2)
        except aiohttp.ClientConnectionError:
            fail(f"No service answers at {self.url}; is it running, and is SLUICEGATE_URL right?")
        except TimeoutError:
            fail(f"The service at {self.url} did not answer in {_TIMEOUT_S:.0f} s.")
        except (aiohttp.ClientError, ValueError):
            fail(f"What answers at {self.url} is not Sluicegate; is SLUICEGATE_URL right?")

    async def _ask(self, method: str, path: str) -> Any:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        fields = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(headers=fields, timeout=timeout) as http,
            http.request(method, f"{self.url.rstrip('/')}/api/v1{path}", allow_redirects=False) as response,
        ):
            answer = await response.json()
        if response.status >= 300:
            fail(f"{answer.get('detail', 'refused')} (HTTP {response.status}, {answer.get('code', 'no code')})")
        return answer


def fail(sentence: str, code: int = 1) -> NoReturn:
    """End the command."""
    typer.echo(sentence, err=True)
    raise typer.Exit(code)
