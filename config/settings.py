"""Every setting once: its variable, unit and default.

Source: DESIGN 7. `config.environment` reads them.
"""

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from yarl import URL

from config.address import Address
from config.kinds import Bytes, Collection, Count, Key, Listen, Names, Networks, Seconds, Staleness, Vectorizer

PREFIX = "SLUICEGATE_"


class Settings(BaseSettings):
    """Of one process. Make them with `environment.load`: arguments of the constructor rank below the environment."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    listen: Listen = Field(
        default=Address("127.0.0.1", 8470), description="IP address and port; port 0 takes a free one"
    )
    public_url: str | None = Field(default=None, description="how clients reach us; default http(s)://LISTEN")
    admin_listen: Listen | None = Field(
        default=None, description="IP address and port for API and console alone; default: they are on `listen`"
    )
    tls_cert_file: Path | None = Field(default=None, description="PEM file: our certificate, then its chain")
    tls_key_file: Path | None = Field(default=None, description="PEM file: its key, without a password")
    trusted_proxies: Networks = Field(
        default=frozenset(), description="addresses and networks whose X-Forwarded-* fields count, comma separated"
    )
    mongodb_url: SecretStr | None = Field(default=None, description="a replica set; default: the embedded store (`up`)")
    data_dir: Path = Field(default=Path(".sluicegate"), description="folder of the embedded store and of `up`")
    bootstrap_admin_key: Key | None = Field(
        default=None, description="text of the first admin key; default: one is made and printed once"
    )
    policy_timeout_s: Seconds = Field(
        default=2, description="how long a decision waits for the store before it is a 503"
    )
    max_staleness_s: Staleness = Field(
        default=0, description="how old the policy behind a decision may be; 0: read after the request's last byte"
    )
    anonymous: Literal["off", "read", "write"] = Field(
        default="off", description="what callers without a key may do on /proxy and /mcp, as the principal `public`"
    )
    refusal_style: Literal["unknown", "explain", "legacy"] = Field(
        default="unknown", description="how a refused call is answered: as an unknown tool, in words, or with -32003"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least level that is logged"
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto: console on a terminal, else json"
    )
    allowed_hosts: Names = Field(default=frozenset(), description="further Host values, comma separated")
    allowed_origins: Names = Field(default=frozenset(), description="further Origin values, comma separated")
    max_head_bytes: Bytes = Field(default=128 << 10, description="largest head of a request, all its lines together")
    max_fields: Count = Field(default=100, description="most header lines of a request")
    head_timeout_s: Seconds = Field(default=20, description="how long a new connection's first request head may take")
    idle_timeout_s: Seconds = Field(default=120, description="how long a connection may wait for its next request")
    max_connections: Count = Field(default=8_000, description="most connections to each listener")
    max_streams_per_key: Count = Field(default=1_000, description="most streams that one key may hold open")
    max_body_bytes: Bytes = Field(default=4 << 20, description="largest request body")
    body_timeout_s: Seconds = Field(default=30, description="how long a request body may take to arrive")
    max_event_bytes: Bytes = Field(
        default=16 << 20, description="largest SSE event or JSON answer that is held to be filtered"
    )
    connect_timeout_s: Seconds = Field(default=5, description="how long connecting to a downstream may take")
    egress_allow: Names = Field(
        default=frozenset(), description="hosts, *.suffixes and networks of downstreams; none: all that are not refused"
    )
    egress_deny: Names = Field(default=frozenset(), description="the same for those that are refused; wins over allow")
    ca_file: Path | None = Field(
        default=None, description="PEM certificates that downstreams may be signed by, besides the system's"
    )
    downstream_timeout_s: Seconds = Field(default=300, description="how long the first byte of an answer may take")
    list_ttl_ms: int = Field(default=0, ge=0, description="longest time to live of a tool list, in milliseconds")
    weaviate_url: str | None = Field(default=None, description="http or https address of Weaviate; default: none")
    weaviate_grpc: str | None = Field(default=None, description="its gRPC address; default: the same host, port 50051")
    weaviate_api_key: SecretStr | None = Field(default=None, description="key for it")
    weaviate_collection: Collection = Field(default="SluicegateTool", description="the collection that we make")
    weaviate_vectorizer: Vectorizer | None = Field(
        default=None, description="a module of Weaviate's that makes the vectors"
    )
    weaviate_existing_collection: Collection | None = Field(
        default=None, description="collection of another registry, whose `tool_enabled` is kept up to date"
    )
    weaviate_existing_server_property: str = Field(default="server_id", description="its property with the server")
    weaviate_existing_server_by: Literal["id", "path"] = Field(default="id", description="what that property holds")
    weaviate_existing_tool_property: str = Field(default="tool", description="its property with the tool's name")
    embeddings: Literal["auto", "minilm", "none"] = Field(
        default="auto", description="what makes vectors for search; auto: minilm where it is installed"
    )
    search_timeout_s: Seconds = Field(default=1, description="how long Weaviate may take before the fallback answers")
    mirror_reconcile_s: Seconds = Field(default=60, description="after which mirrors are compared whole")
    grace_s: Seconds = Field(default=10, description="how long calls may go on after SIGTERM")
    registration: Literal["admin", "manage"] = Field(default="admin", description="scope that may register a server")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment first, then the file, which `load` hands in."""
        return env_settings, dotenv_settings, init_settings

    @field_validator(
        "log_level", "log_format", "registration", "embeddings", "anonymous", "refusal_style", mode="before"
    )
    @classmethod
    def _lower_case(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("public_url")
    @classmethod
    def _bare_url(cls, value: str | None) -> str | None:
        url = URL(value or "http://localhost")
        if url.scheme not in ("http", "https") or not url.host or url.query_string or url.fragment or url.user:
            raise ValueError("must be an http or https address without query, like https://mcp.example.com")
        return value.rstrip("/") if value else None

    @field_validator("mongodb_url")
    @classmethod
    def _mongodb_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not value.get_secret_value().startswith(("mongodb://", "mongodb+srv://")):
            raise ValueError("must begin with mongodb:// or mongodb+srv://")
        return value

    @field_validator("weaviate_url")
    @classmethod
    def _weaviate_url(cls, value: str | None) -> str | None:
        url = URL(value or "http://localhost")
        if url.scheme not in ("http", "https") or not url.host or url.path not in ("", "/") or url.user or url.query:
            raise ValueError("must be an http or https address without path, like http://weaviate:8080")
        return value.rstrip("/") if value else None

    @field_validator("weaviate_grpc")
    @classmethod
    def _weaviate_grpc(cls, value: str | None) -> str | None:
        if value and not re.fullmatch(r"[^\s/]+:[0-9]{1,5}", value):
            raise ValueError("must be HOST:PORT, like weaviate:50051")
        return value

    @model_validator(mode="after")
    def _weaviate_as_a_whole(self) -> "Settings":
        given = ("weaviate_grpc", "weaviate_api_key", "weaviate_vectorizer", "weaviate_existing_collection")
        alone = [name for name in given if getattr(self, name) is not None]
        if alone and self.weaviate_url is None:
            raise ValueError(f"{PREFIX}{alone[0].upper()}: needs {PREFIX}WEAVIATE_URL too")
        if self.weaviate_existing_collection == self.weaviate_collection:
            raise ValueError(f"{PREFIX}WEAVIATE_EXISTING_COLLECTION: must be another one than that which we make")
        return self

    @model_validator(mode="after")
    def _certificate_with_key(self) -> "Settings":
        names = ("tls_cert_file", "tls_key_file")
        missing = [name for name in names if getattr(self, name) is None]
        if len(missing) == 1:
            raise ValueError(f"{PREFIX}{missing[0].upper()}: must be set too; a certificate and its key go together")
        return self

    @property
    def weaviate_grpc_address(self) -> str:
        """HOST:PORT of Weaviate's gRPC."""
        return self.weaviate_grpc or f"{_host_of(self.weaviate_url or 'http://localhost')}:50051"

    @property
    def base_url(self) -> str:
        """How clients reach us, without a trailing slash."""
        return self.public_url or self._url_of(self.listen)

    @property
    def api_url(self) -> str:
        """How owners and operators reach the API, without a trailing slash."""
        return self._url_of(self.admin_listen) if self.admin_listen else self.base_url

    def _url_of(self, address: Address) -> str:
        return f"{'https' if self.tls_cert_file else 'http'}://{address}"

    @property
    def hosts(self) -> frozenset[str]:
        """Host names that a request may name, without a port, lower case; IPv6 in brackets."""
        return self._hosts_of(self.listen, self.base_url)

    @property
    def admin_hosts(self) -> frozenset[str]:
        """The same on the admin listener."""
        return self._hosts_of(self.admin_listen or self.listen, self.api_url)

    def _hosts_of(self, address: Address, url: str) -> frozenset[str]:
        own = {"localhost", "127.0.0.1", "[::1]", address.url_host, _host_of(url)}
        return frozenset(own | {name.lower() for name in self.allowed_hosts})

    @property
    def origins(self) -> frozenset[str]:
        """Origins that a browser may come from: our own, and those allowed by name."""
        return frozenset({str(URL(self.base_url).origin()), *self.allowed_origins})

    @property
    def admin_origins(self) -> frozenset[str]:
        """The same on the admin listener."""
        return frozenset({str(URL(self.api_url).origin()), *self.allowed_origins})


def _host_of(url: str) -> str:
    host = URL(url).raw_host or ""
    return f"[{host}]" if ":" in host else host
