"""Every setting once: its variable, unit and default. The one reader of the environment.

Source: DESIGN 7. A setting `x` is the variable `SLUICEGATE_X`, or `x` in a TOML file, or `SLUICEGATE_X` in an env file.
The environment wins over the file. A name that we do not know is an error: a setting that is misspelt must not be
lost silently.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from yarl import URL

from config.address import Address
from config.errors import SettingsInvalid

PREFIX = "SLUICEGATE_"

CREDENTIAL = f"{PREFIX}CREDENTIAL_"
"""Begins the names of variables that servers' static credentials may name."""

_NOT_OURS = frozenset({"REQUIRE", "CONFIG_FILE", "KEY", "URL"})
"""Variables with our prefix that are no settings: the test suite's, the file's name, the command line's two."""


def _names(value: Any) -> Any:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


def _well_formed_key(key: SecretStr) -> SecretStr:
    if not re.fullmatch(r"sg_[A-Za-z0-9_-]{43}", key.get_secret_value()):
        raise ValueError("must be sg_ and 43 base64url characters (256 random bits)")
    return key


Names = Annotated[frozenset[str], NoDecode, BeforeValidator(_names)]


def _matching(pattern: str, sentence: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(sentence)
        return value

    return AfterValidator(check)


Collection = Annotated[
    str, _matching(r"[A-Z][A-Za-z0-9_]{0,230}", "must be a capital letter and then letters, digits or _")
]
Vectorizer = Annotated[
    str, _matching(r"text2vec-[a-z0-9-]+", "must be a module of Weaviate's that makes vectors, like text2vec-openai")
]
Listen = Annotated[Address, NoDecode, BeforeValidator(Address.parse)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=1_024, le=1 << 30)]


class Settings(BaseSettings):
    """The settings of one process. Make them with `load`: arguments of the constructor rank below the environment."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    listen: Listen = Field(
        default=Address("127.0.0.1", 8470), description="IP address and port; port 0 takes a free one"
    )
    public_url: str | None = Field(default=None, description="how clients reach us; default http://LISTEN")
    mongodb_url: SecretStr | None = Field(default=None, description="a replica set; default: the embedded store (`up`)")
    data_dir: Path = Field(default=Path(".sluicegate"), description="folder of the embedded store and of `up`")
    bootstrap_admin_key: Annotated[SecretStr, AfterValidator(_well_formed_key)] | None = Field(
        default=None, description="text of the first admin key; default: one is made and printed once"
    )
    policy_timeout_s: Seconds = Field(
        default=2, description="how long a decision waits for the store before it is a 503"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least level that is logged"
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto: console on a terminal, else json"
    )
    allowed_hosts: Names = Field(default=frozenset(), description="further Host values, comma separated")
    allowed_origins: Names = Field(default=frozenset(), description="further Origin values, comma separated")
    max_body_bytes: Bytes = Field(default=4 << 20, description="largest request body")
    body_timeout_s: Seconds = Field(default=30, description="how long a request body may take to arrive")
    max_event_bytes: Bytes = Field(
        default=16 << 20, description="largest SSE event or JSON answer that is held to be filtered"
    )
    connect_timeout_s: Seconds = Field(default=5, description="how long connecting to a downstream may take")
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

    @field_validator("log_level", "log_format", "registration", "embeddings", mode="before")
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

    @property
    def weaviate_grpc_address(self) -> str:
        """HOST:PORT of Weaviate's gRPC."""
        return self.weaviate_grpc or f"{_host_of(self.weaviate_url or 'http://localhost')}:50051"

    @property
    def base_url(self) -> str:
        """How clients reach us, without a trailing slash."""
        return self.public_url or f"http://{self.listen}"

    @property
    def hosts(self) -> frozenset[str]:
        """Host names that a request may name, without a port, lower case; IPv6 in brackets."""
        own = {"localhost", "127.0.0.1", "[::1]", self.listen.url_host, _host_of(self.base_url)}
        return frozenset(own | {name.lower() for name in self.allowed_hosts})

    @property
    def origins(self) -> frozenset[str]:
        """Origins that a browser may come from: our own, and those allowed by name."""
        return frozenset({str(URL(self.base_url).origin()), *self.allowed_origins})


def _host_of(url: str) -> str:
    host = URL(url).raw_host or ""
    return f"[{host}]" if ":" in host else host


def load(config_file: Path | None = None) -> Settings:
    """Read the settings of this process.

    Args:
        config_file: a `.toml` file, else an env file; None takes `SLUICEGATE_CONFIG_FILE`, and without it no file.

    Raises:
        SettingsInvalid: one line for each value or name that cannot be used.
    """
    named = os.environ.get(f"{PREFIX}CONFIG_FILE")  # noqa: TID251  the one reader
    path = config_file or (Path(named) if named else None)
    if unknown := list(_unknown(os.environ)):  # noqa: TID251  the one reader
        raise SettingsInvalid("\n".join(unknown))
    try:
        return _read(path)
    except ValidationError as exc:
        raise SettingsInvalid("\n".join(_lines(exc))) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsInvalid(f"{PREFIX}CONFIG_FILE: cannot read {path}: {exc}") from None


def credential_values() -> dict[str, str]:
    """The variables that servers' static credentials may name, with their values."""
    return {name: value for name, value in os.environ.items() if name.startswith(CREDENTIAL)}  # noqa: TID251  the one reader


def environment_for_children() -> dict[str, str]:
    """Our environment less our settings: a child has no use for our keys."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}  # noqa: TID251  the one reader


def _read(path: Path | None) -> Settings:
    if path is None:
        return Settings()
    text = path.read_text(encoding="utf-8")  # here, since a missing env file would pass for an empty one
    if path.suffix == ".toml":
        return Settings(**{name.removeprefix(PREFIX).lower(): value for name, value in tomllib.loads(text).items()})
    return Settings(_env_file=path, _env_file_encoding="utf-8")  # type: ignore[call-arg]  # the library's own keyword


def _unknown(environ: Mapping[str, str]) -> Iterator[str]:
    known = {name.upper() for name in Settings.model_fields} | _NOT_OURS
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX)
        if variable.startswith(PREFIX) and not variable.startswith(CREDENTIAL) and name not in known:
            yield f"{variable}: there is no such setting{_suggestion(name, known)}"


def _suggestion(name: str, known: set[str] | frozenset[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {PREFIX}{close[0]}?" if close else ""


def _lines(exc: ValidationError) -> Iterator[str]:
    known = {name.upper() for name in Settings.model_fields}
    for error in exc.errors():
        name = str(error["loc"][0]).upper().removeprefix(PREFIX) if error["loc"] else ""
        if not name:
            yield _plain(error["msg"])  # about several, which it names
        elif error["type"] == "extra_forbidden":
            yield f"{PREFIX}{name}: there is no such setting{_suggestion(name, known)}"
        else:
            yield f"{PREFIX}{name}: {_plain(error['msg'])}"


def _plain(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return "must" + text.removeprefix("Input should") if text.startswith("Input should ") else text
