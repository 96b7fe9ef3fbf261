"""`sluicegate keys reset-admin`: a new admin key, made in the store itself.

Source: DESIGN 5 (Keys). For whoever has lost the last one, and has the store. Existing keys are left alone.
"""

import asyncio
import contextlib
from pathlib import Path

from config import logs
from config.embedded import EmbeddedStore
from config.environment import load
from config.opening import opened
from config.settings import Settings
from registry.freshness import Freshness
from registry.keys import Keys


def reset_admin(config: Path | None) -> str:
    """Make the key and return its text. Raises SettingsInvalid, StartFailed and RegistryError."""
    settings = load(config)
    logs.configure(settings.log_level, settings.log_format)
    return asyncio.run(_made(settings))


async def _made(settings: Settings) -> str:
    async with contextlib.AsyncExitStack() as stack:
        url = settings.mongodb_url.get_secret_value() if settings.mongodb_url else None
        if url is None:
            url = await (await stack.enter_async_context(EmbeddedStore(settings.data_dir))).start()
        store = await stack.enter_async_context(opened(url, settings.policy_timeout_s))
        freshness = Freshness(store.policies, timeout_s=settings.policy_timeout_s)
        return await Keys(store.ledger, store.keys, freshness).reset_admin()
