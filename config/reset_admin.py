"""`sluicegate keys reset-admin`: a new admin key, made in the store itself.

Source: DESIGN 5 (Keys). For whoever has lost the last one, and has the store. Existing keys are left alone.
"""

import asyncio
import contextlib
from pathlib import Path

from config import logs
from config.embedded import EmbeddedStore, is_kept_in
from config.environment import load
from config.errors import StartFailed
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
        url = settings.mongodb_url.get_secret_value() if settings.mongodb_url else await _embedded(stack, settings)
        store = await stack.enter_async_context(opened(url, settings.policy_timeout_s))
        freshness = Freshness(store.policies, timeout_s=settings.policy_timeout_s)
        return await Keys(store.ledger, store.keys, freshness).reset_admin()


async def _embedded(stack: contextlib.AsyncExitStack, settings: Settings) -> str:
    """The store of `up`, which must be there: a key in a new one would open nothing."""
    if not is_kept_in(settings.data_dir):
        raise StartFailed(
            f"There is no store in {settings.data_dir}; set SLUICEGATE_MONGODB_URL as for `serve`, or "
            "SLUICEGATE_DATA_DIR as for `up`."
        )
    return await (await stack.enter_async_context(EmbeddedStore(settings.data_dir))).start()
