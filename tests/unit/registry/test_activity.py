"""The activity log is for operators."""

import pytest

from registry.errors import Forbidden, Unauthenticated
from registry.model import Scope
from tests.control_plane import ControlPlane, caller_of


async def test_the_newest_rows_come_first_and_at_most_a_hundred() -> None:
    plane = ControlPlane()
    server = await plane.server(tools=["a"])
    ann = await plane.caller("ann", Scope.MANAGE)
    for turn in range(102):
        await plane.tools.switch(ann, server.id, "a", enabled=turn % 2 == 1)
    rows = await plane.activity.newest(await plane.caller("root", Scope.ADMIN), limit=1000)
    last = server.policy.revision + 102
    assert [row.revision for row in rows] == list(range(last, last - 100, -1))


async def test_activity_takes_admin() -> None:
    plane = ControlPlane()
    with pytest.raises(Unauthenticated):
        await plane.activity.newest(caller_of(None))
    owner = await plane.caller("ann", Scope.MCP, Scope.READ, Scope.WRITE, Scope.MANAGE)
    with pytest.raises(Forbidden) as refused:
        await plane.activity.newest(owner)
    assert refused.value.required_scope == Scope.ADMIN
