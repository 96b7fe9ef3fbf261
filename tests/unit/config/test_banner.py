"""What a person reads at the start."""

import json
import re

from pydantic import SecretStr

from config.banner import greeting
from config.settings import Settings

ADMIN = "sg_" + "a" * 43
AGENT = "sg_" + "b" * 43
GIVEN = Settings(bootstrap_admin_key=SecretStr(ADMIN))


def test_the_client_configuration_can_be_pasted() -> None:
    text = greeting(Settings(), ADMIN, AGENT)
    found = re.search(r"^  \{.*?^  \}", text, re.DOTALL | re.MULTILINE)

    assert found is not None
    assert json.loads(found[0]) == {
        "mcpServers": {
            "demo": {
                "type": "http",
                "url": "http://127.0.0.1:8470/proxy/demo",
                "headers": {"Authorization": f"Bearer {AGENT}"},
            }
        }
    }


def test_the_first_start_shows_the_admin_key_inside_a_command() -> None:
    assert f'-H "Authorization: Bearer {ADMIN}"' in greeting(Settings(), ADMIN, AGENT)
    assert "curl -X PATCH http://127.0.0.1:8470/api/v1/servers/%2Fdemo/tools" in greeting(Settings(), ADMIN, AGENT)


def test_a_later_start_shows_no_admin_key_and_says_where_it_was() -> None:
    text = greeting(Settings(), None, AGENT)

    assert ADMIN not in text
    assert "The admin key is that of the first start." in text


def test_a_key_that_the_operator_chose_is_not_shown() -> None:
    assert ADMIN not in greeting(GIVEN, ADMIN, AGENT)
    assert "Bearer $SLUICEGATE_BOOTSTRAP_ADMIN_KEY" in greeting(GIVEN, ADMIN, AGENT)
    assert ADMIN not in greeting(GIVEN, ADMIN, None)


def test_without_a_demonstration_there_is_the_address_and_the_key() -> None:
    text = greeting(Settings(), ADMIN, None)

    assert "http://127.0.0.1:8470" in text
    assert ADMIN in text
    assert "demo" not in text


def test_the_command_for_the_owner_goes_to_the_admin_listener() -> None:
    settings = Settings.model_validate({"admin_listen": "127.0.0.1:8471", "public_url": "https://mcp.example.com"})

    text = greeting(settings, ADMIN, AGENT)

    assert (
        "Sluicegate is ready on https://mcp.example.com\n\nOwners and operators reach it on http://127.0.0.1:8471"
        in text
    )
    assert "curl -X PATCH http://127.0.0.1:8471/api/v1/servers/%2Fdemo/tools" in text
