"""Who holds which rights on a server, and the end of one, as the API says it (DESIGN 2 and 5)."""

from typing import Any

import pytest

from registry.model import Scope
from tests.integration.test_api import OWNER, Api, api

__all__ = ["api"]

PERMISSIONS = "/servers/%2Fdemo/permissions"
ANN = {"principalType": "user", "principalId": "ann", "permBits": 15}
ENDS = "2100-01-02T03:04:05.678000Z"


async def test_what_get_answers_can_be_put_again(api: Api) -> None:
    await api.plane.server()
    ann = await api.plane.key("ann", *OWNER)
    given = [
        ANN,
        {"principalType": "user", "principalId": "bob", "role": "editor", "expiredAt": ENDS},
        {"principalType": "role", "principalId": "ops", "permBits": 9},
        {"principalType": "public", "permBits": 1},
    ]
    expected = {
        "permissions": [
            {"principalType": "public", "principalId": None, "permBits": 1, "role": "viewer", "expiredAt": None},
            {"principalType": "role", "principalId": "ops", "permBits": 9, "role": None, "expiredAt": None},
            {**ANN, "role": "owner", "expiredAt": None},
            {"principalType": "user", "principalId": "bob", "permBits": 3, "role": "editor", "expiredAt": ENDS},
        ]
    }
    assert await api(ann, "PUT", PERMISSIONS, {"permissions": given, "reason": "a team"}) == (200, expected)
    assert await api(ann, "GET", PERMISSIONS) == (200, expected)
    assert await api(ann, "PUT", PERMISSIONS, expected) == (200, expected)
    _, answer = await api(await api.plane.key("root", Scope.ADMIN), "GET", "/activity")
    [row] = answer["activity"]
    assert (row["actor"], row["action"], row["reason"]) == ("ann", "permission_set", "a team")
    assert row["before"] == [{**ANN, "expiredAt": None}]
    assert [entry["principalId"] for entry in row["after"]] == [None, "ops", "ann", "bob"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"principalType": "robot"}, "permissions.1.principalType: "),
        ({"permBits": 0}, "permissions.1.permBits: "),
        ({"permBits": 16}, "permissions.1.permBits: "),
        ({"permBits": True}, "permissions.1.permBits: "),
        ({"permBits": 2}, "permissions.1: an entry without VIEW grants nothing"),
        ({"permBits": None}, "permissions.1: give permBits or role"),
        ({"role": "viewer"}, "permissions.1: permBits and role say different things"),
        ({"role": "king"}, "permissions.1.role: "),
        ({"principalId": None}, "permissions.1: public has no id, and every other principal has one"),
        ({"principalType": "public"}, "permissions.1: public has no id, and every other principal has one"),
        ({"principalId": "ann"}, "permissions.1: an entry before it names the same principal"),
        ({"expiredAt": "2100-01-01T00:00:00"}, "permissions.1.expiredAt: "),
    ],
)
async def test_an_entry_that_makes_no_sense_is_422_and_named(api: Api, changes: dict[str, Any], sentence: str) -> None:
    await api.plane.server()
    bob = {**ANN, "principalId": "bob", **changes}
    status, answer = await api(
        await api.plane.key("ann", *OWNER), "PUT", PERMISSIONS, {"permissions": [{**ANN, "role": "owner"}, bob]}
    )
    assert (status, answer["field"]) == (422, "permissions")
    assert answer["detail"].startswith(sentence)


async def test_an_owner_who_would_lock_everybody_out_is_409(api: Api) -> None:
    await api.plane.server()
    ann = await api.plane.key("ann", *OWNER)
    status, answer = await api(ann, "PUT", PERMISSIONS, {"permissions": []})
    assert (status, answer["code"]) == (409, "conflict")
    root = await api.plane.key("root", Scope.ADMIN)
    assert await api(root, "PUT", PERMISSIONS, {"permissions": []}) == (200, {"permissions": []})


async def test_a_deleted_server_is_204_then_404_and_its_row_says_why(api: Api) -> None:
    server = await api.plane.server()
    ann = await api.plane.key("ann", *OWNER)
    assert (await api.raw(ann, "DELETE", "/servers/%2Fdemo?why=x")).status == 422
    answer = await api.raw(ann, "DELETE", "/servers/%2Fdemo?reason=not%20needed")
    assert (answer.status, await answer.read()) == (204, b"")
    for ref in (server.id, "%2Fdemo"):
        assert (await api(ann, "GET", f"/servers/{ref}"))[0] == 404
        assert (await api.raw(ann, "DELETE", f"/servers/{ref}")).status == 404
    _, answered = await api(await api.plane.key("root", Scope.ADMIN), "GET", "/activity")
    [row] = answered["activity"]
    assert (row["actor"], row["action"], row["serverId"]) == ("ann", "server_deleted", server.id)
    assert (row["reason"], row["after"], row["revision"]) == ("not needed", None, 1)
    assert row["before"]["permissions"] == [{**ANN, "expiredAt": None}]
    assert (row["before"]["path"], row["before"]["disabledTools"]) == ("/demo", [])
