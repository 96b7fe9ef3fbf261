"""The real store, whole."""

from registry.mongo import deployment
from registry.mongo.client import Connection
from registry.mongo.lease import MongoLeases
from registry.mongo.ledger import MongoLedger
from registry.mongo.policies import MongoPolicies
from registry.mongo.schema import prepare
from registry.mongo.sightings import MongoSightings
from registry.mongo.stores import MongoAccess, MongoActivity, MongoHealth, MongoKeys, MongoServers
from registry.mongo.watch import MongoChangeFeed


class MongoStore:
    """Every port of the registry on one MongoDB. Make it inside a running event loop.

    Args:
        url: a connection string.
        database: its name; None takes the one in `url`, and without that `sluicegate`.
        timeout_s: for every call.

    Raises:
        StoreUnusable: the connection string makes no sense.
    """

    def __init__(self, url: str, *, database: str | None = None, timeout_s: float = 2.0) -> None:
        self._connection = Connection(url, database, timeout_s)
        self.policies = MongoPolicies(self._connection)
        self.ledger = MongoLedger(self._connection)
        self.servers = MongoServers(self._connection)
        self.access = MongoAccess(self._connection)
        self.keys = MongoKeys(self._connection)
        self.activity = MongoActivity(self._connection)
        self.health = MongoHealth(self._connection)
        self.leases = MongoLeases(self._connection)
        self.sightings = MongoSightings(self._connection)
        self.feed = MongoChangeFeed(url, database)
        self._deployment_id: str | None = None

    async def prepare(self) -> None:
        """Check the store, create collections and indexes. Raises StoreUnusable and StoreUnavailable."""
        await prepare(self._connection)
        self._deployment_id = await deployment.identify(self._connection)

    @property
    def deployment_id(self) -> str:
        """The same for all who use this database, and for nobody else. Known once it is prepared."""
        if self._deployment_id is None:
            raise RuntimeError("not prepared")
        return self._deployment_id

    async def close(self) -> None:
        """End running changes by their deadlines, then the connections."""
        await self.feed.close()
        await self._connection.close()
