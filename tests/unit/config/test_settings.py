"""Settings: defaults, sources in their order, and one clear line per bad value."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from config.address import Address
from config.environment import environment_for_children, load
from config.errors import SettingsInvalid
from config.settings import Settings

KEY = "sg_" + "a" * 43


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SLUICEGATE_{name.upper()}", raising=False)
    monkeypatch.delenv("SLUICEGATE_CONFIG_FILE", raising=False)


def test_without_any_setting_the_defaults_are_those_of_the_design() -> None:
    settings = load()

    assert settings.listen == Address("127.0.0.1", 8470)
    assert settings.base_url == "http://127.0.0.1:8470"
    assert settings.data_dir == Path(".sluicegate")
    assert (settings.policy_timeout_s, settings.connect_timeout_s, settings.downstream_timeout_s) == (2, 5, 300)
    assert (settings.max_body_bytes, settings.max_event_bytes) == (4_194_304, 16_777_216)
    assert (settings.list_ttl_ms, settings.registration, settings.log_format) == (0, "admin", "auto")
    assert settings.mongodb_url is None
    assert settings.bootstrap_admin_key is None


def test_every_setting_describes_itself() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_LISTEN", "[::1]:0")
    monkeypatch.setenv("SLUICEGATE_PUBLIC_URL", "https://mcp.example.com/")
    monkeypatch.setenv("SLUICEGATE_ALLOWED_HOSTS", "a.example, B.example")
    monkeypatch.setenv("SLUICEGATE_LOG_LEVEL", "WARNING")
    monkeypatch.setenv("SLUICEGATE_BOOTSTRAP_ADMIN_KEY", KEY)

    settings = load()

    assert settings.listen == Address("::1", 0)
    assert settings.base_url == "https://mcp.example.com"
    assert settings.hosts == {"a.example", "b.example", "mcp.example.com", "localhost", "127.0.0.1", "[::1]"}
    assert settings.origins == {"https://mcp.example.com"}
    assert settings.log_level == "warning"
    assert settings.bootstrap_admin_key is not None
    assert settings.bootstrap_admin_key.get_secret_value() == KEY


def test_who_has_no_key_may_nothing_and_a_refused_tool_is_unknown_unless_settings_say_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (load().anonymous, load().refusal_style) == ("off", "unknown")
    monkeypatch.setenv("SLUICEGATE_ANONYMOUS", "Read")
    monkeypatch.setenv("SLUICEGATE_REFUSAL_STYLE", "EXPLAIN")
    assert (load().anonymous, load().refusal_style) == ("read", "explain")


@pytest.mark.parametrize(
    ("name", "values"),
    [("SLUICEGATE_ANONYMOUS", "'off', 'read' or 'write'"), ("SLUICEGATE_REFUSAL_STYLE", "'unknown', 'explain' or")],
)
def test_a_bad_choice_is_told_what_there_is(name: str, values: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "true")
    with pytest.raises(SettingsInvalid, match=rf"{name}: .*{values}"):
        load()


def test_a_secret_is_not_shown_by_the_settings_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_BOOTSTRAP_ADMIN_KEY", KEY)
    monkeypatch.setenv("SLUICEGATE_MONGODB_URL", "mongodb://me:hunter2@127.0.0.1/")

    assert KEY not in repr(load())
    assert "hunter2" not in repr(load())


@pytest.mark.parametrize("name", ["sluicegate.toml", "sluicegate.env"])
def test_a_file_is_read_and_the_environment_wins_over_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / name
    toml = 'listen = "127.0.0.1:1"\ngrace_s = 3\nallowed_hosts = ["a.example"]\n'
    env = "SLUICEGATE_LISTEN=127.0.0.1:1\nSLUICEGATE_GRACE_S=3\nSLUICEGATE_ALLOWED_HOSTS=a.example\n"
    file.write_text(toml if name.endswith(".toml") else env)
    monkeypatch.setenv("SLUICEGATE_CONFIG_FILE", str(file))
    monkeypatch.setenv("SLUICEGATE_GRACE_S", "4")

    settings = load()

    assert (settings.listen.port, settings.grace_s, settings.allowed_hosts) == (1, 4, frozenset({"a.example"}))


def test_the_option_wins_over_the_variable_that_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text("grace_s = 1")
    (tmp_path / "b.toml").write_text("grace_s = 2")
    monkeypatch.setenv("SLUICEGATE_CONFIG_FILE", str(tmp_path / "a.toml"))

    assert load(tmp_path / "b.toml").grace_s == 2


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("LISTEN", "8470", "must be an IP address and a port, like 127.0.0.1:8470 or [::1]:8470"),
        ("LISTEN", "example.com:80", "must be an IP address and a port; 'example.com' is no IP address"),
        ("LISTEN", "127.0.0.1:65536", "must be an IP address and a port, like 127.0.0.1:8470 or [::1]:8470"),
        ("GRACE_S", "soon", "must be a valid number, unable to parse string as a number"),
        ("GRACE_S", "0", "must be greater than 0"),
        ("GRACE_S", "nan", "must be a finite number"),
        ("LIST_TTL_MS", "-1", "must be greater than or equal to 0"),
        ("LOG_FORMAT", "xml", "must be 'auto', 'console' or 'json'"),
        ("PUBLIC_URL", "ftp://a", "must be an http or https address without query, like https://mcp.example.com"),
        ("ADMIN_LISTEN", "8471", "must be an IP address and a port, like 127.0.0.1:8470 or [::1]:8470"),
        ("MAX_FIELDS", "0", "must be greater than or equal to 1"),
        ("TRUSTED_PROXIES", "::1, nginx", "must be IP addresses or networks, like 10.0.0.0/8; 'nginx' is neither"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "must be IP addresses or networks, like 10.0.0.0/8; '10.0.0.1/8' is neither"),
        ("MONGODB_URL", "http://a", "must begin with mongodb:// or mongodb+srv://"),
        ("BOOTSTRAP_ADMIN_KEY", "sg_short", "must be sg_ and 43 base64url characters (256 random bits)"),
    ],
)
def test_a_bad_value_is_one_line_that_names_its_variable(
    variable: str, value: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"SLUICEGATE_{variable}", value)

    with pytest.raises(SettingsInvalid) as caught:
        load()

    assert str(caught.value) == f"SLUICEGATE_{variable}: {line}"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("given", "missing"), [("CERT", "KEY"), ("KEY", "CERT")])
def test_a_certificate_without_its_key_is_one_line_and_so_is_the_reverse(
    given: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"SLUICEGATE_TLS_{given}_FILE", "file.pem")

    with pytest.raises(SettingsInvalid) as caught:
        load()

    assert str(caught.value) == (
        f"SLUICEGATE_TLS_{missing}_FILE: must be set too; a certificate and its key go together"
    )


def test_with_a_certificate_clients_reach_us_by_https() -> None:
    settings = Settings.model_validate({"tls_cert_file": "c.pem", "tls_key_file": "k.pem", "admin_listen": "[::1]:1"})

    assert (settings.base_url, settings.api_url) == ("https://127.0.0.1:8470", "https://[::1]:1")
    assert (settings.origins, settings.admin_origins) == ({"https://127.0.0.1:8470"}, {"https://[::1]:1"})


def test_the_admin_listener_is_known_by_its_own_names() -> None:
    given = {"public_url": "https://mcp.example.com", "admin_listen": "10.0.0.5:8471", "allowed_hosts": "ops.example"}
    settings = Settings.model_validate(given)

    assert settings.admin_hosts == {"ops.example", "10.0.0.5", "localhost", "127.0.0.1", "[::1]"}
    assert settings.hosts == {"ops.example", "mcp.example.com", "localhost", "127.0.0.1", "[::1]"}
    assert Settings().api_url == Settings().base_url


def test_trusted_proxies_are_addresses_and_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_TRUSTED_PROXIES", "10.0.0.0/8, ::1")

    assert load().trusted_proxies == {ip_network("10.0.0.0/8"), ip_network("::1")}


def test_two_bad_values_are_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_LISTEN", "x")
    monkeypatch.setenv("SLUICEGATE_GRACE_S", "x")

    with pytest.raises(SettingsInvalid) as caught:
        load()

    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "SLUICEGATE_LISTEN",
        "SLUICEGATE_GRACE_S",
    ]


def test_an_unknown_variable_is_an_error_that_names_the_likely_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_LISTN", "127.0.0.1:1")

    with pytest.raises(SettingsInvalid, match=r"^SLUICEGATE_LISTN: .* did you mean SLUICEGATE_LISTEN\?$"):
        load()


@pytest.mark.parametrize(("name", "text"), [("a.toml", "listn = 1"), ("a.env", "SLUICEGATE_LISTN=1")])
def test_an_unknown_name_in_a_file_is_an_error_too(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(SettingsInvalid, match=r"^SLUICEGATE_LISTN: .* did you mean SLUICEGATE_LISTEN\?$"):
        load(tmp_path / name)


@pytest.mark.parametrize("variable", ["SLUICEGATE_REQUIRE", "SLUICEGATE_KEY"])
def test_variables_of_other_programs_with_our_prefix_are_no_errors(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "x")

    assert load() == Settings()


@pytest.mark.parametrize(("name", "text"), [("missing.toml", None), ("missing.env", None), ("bad.toml", "= 1")])
def test_a_file_that_cannot_be_read_is_one_line(name: str, text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)

    with pytest.raises(SettingsInvalid, match=r"^SLUICEGATE_CONFIG_FILE: cannot read [^\n]+$"):
        load(tmp_path / name)


def test_children_inherit_the_environment_but_none_of_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_BOOTSTRAP_ADMIN_KEY", KEY)
    monkeypatch.setenv("ANY_OTHER", "1")

    inherited = environment_for_children()

    assert inherited["ANY_OTHER"] == "1"
    assert not [name for name in inherited if name.startswith("SLUICEGATE_")]
