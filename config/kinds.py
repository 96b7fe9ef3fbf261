"""The kinds of values that settings have, each with its one sentence for a value that makes no sense."""

import ipaddress
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from config.address import Address


def _names(value: Any) -> Any:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


def _well_formed_key(key: SecretStr) -> SecretStr:
    if not re.fullmatch(r"sg_[A-Za-z0-9_-]{43}", key.get_secret_value()):
        raise ValueError("must be sg_ and 43 base64url characters (256 random bits)")
    return key


def _network(name: str) -> "Network":
    try:
        return ipaddress.ip_network(name)
    except ValueError:
        raise ValueError(f"must be IP addresses or networks, like 10.0.0.0/8; {name!r} is neither") from None


def _networks(value: Any) -> Any:
    return [_network(str(name)) for name in _names(value)]


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Names = Annotated[frozenset[str], NoDecode, BeforeValidator(_names)]
Networks = Annotated[frozenset[Network], NoDecode, BeforeValidator(_networks)]


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
Staleness = Annotated[float, Field(ge=0, le=3_600, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=1_024, le=1 << 30)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Key = Annotated[SecretStr, AfterValidator(_well_formed_key)]
