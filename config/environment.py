"""The one reader of the environment: settings, and what else of it is ours.

Source: DESIGN 7. A setting `x` is the variable `SLUICEGATE_X`, or `x` in a TOML file, or `SLUICEGATE_X` in an env file.
The environment wins over the file. A name that we do not know is an error: a setting that is misspelt must not be
lost silently.
"""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from config.errors import SettingsInvalid
from config.settings import PREFIX, Settings

CREDENTIAL = f"{PREFIX}CREDENTIAL_"
"""Begins the names of variables that servers' static credentials may name."""

_NOT_OURS = frozenset({"REQUIRE", "CONFIG_FILE", "KEY", "URL"})
"""Variables with our prefix that are no settings: the test suite's, the file's name, the command line's two."""


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
