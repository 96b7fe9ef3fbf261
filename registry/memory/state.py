"""All that the in-memory twin stores."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from registry.downstreams import TAKEN, normal_form
from registry.entries import Server
from registry.errors import Conflict
from registry.model import AccessEntry, ApiKey, Asked, Facts, Switch
from registry.paths import SHARED_PATH
from registry.rows import Activity


@dataclass(slots=True)
class State:
    """All that is stored; values are immutable, so a shallow copy is a snapshot."""

    servers: dict[str, Server] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    entries: list[AccessEntry] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)
    activity: list[Activity] = field(default_factory=list)

    def copied(self) -> "State":
        """A snapshot, to be changed."""
        return State(dict(self.servers), dict(self.keys), list(self.entries), list(self.switches), list(self.activity))

    def server(self, ref: str | None) -> Server | None:
        """One server by id, or by path."""
        if ref is None or not ref.startswith("/"):
            return self.servers.get(ref or "")
        found = [server for server in self.servers.values() if server.path == ref]
        if len(found) > 1:
            return replace(found[0], policy=replace(found[0].policy, fault=SHARED_PATH))
        return found[0] if found else None

    def check_url(self, url: str, but: str = "") -> None:
        """Raises Conflict when a server other than `but` has this downstream."""
        taken = {normal_form(server.url) for server in self.servers.values() if server.id != but}
        if normal_form(url) in taken:
            raise Conflict(TAKEN)

    def facts(self, asked: Asked, now: datetime) -> Facts:
        """As PolicyReader.read answers one."""
        server = self.server(asked.server)
        return Facts(
            now=now,
            key=next((key for key in self.keys.values() if key.hash == asked.key_hash), None),
            server=server.policy if server else None,
            entries=tuple(entry for entry in self.entries if server and entry.server_id == server.id),
            switches=tuple(self.switches),
        )
