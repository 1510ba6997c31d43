"""Access to the parts of the API by user tags."""

import pytest

from tests.management.console import Console

USERS = ("manager", "policymaker", "watcher", "guest")

#: Path and the users with access, as M, P, W, A for the users above in this order.
OPEN_TO = {
    "/overview": "MPWA", "/whoami": "MPWA", "/version": "MPWA", "/cluster-name": "MPWA", "/extensions": "MPWA",
    "/vhosts": "MPWA", "/queues": "MPWA", "/queues/%2F": "MPWA", "/exchanges/%2F": "MPWA", "/bindings": "MPWA",
    "/connections": "MPWA", "/channels": "MPWA", "/consumers": "MPWA", "/policies": "MPWA",
    "/operator-policies": "MPWA", "/vhost-limits": "MPWA", "/user-limits": "MPWA", "/aliveness-test/%2F": "MPWA",
    "/health/checks/alarms": "MPWA", "/parameters": "PA", "/global-parameters": "PA", "/nodes": "WA",
    "/queues/closed": "WA", "/exchanges/closed": "WA", "/users": "A", "/permissions": "A", "/topic-permissions": "A",
    "/definitions": "A", "/definitions/%2F": "A", "/vhosts/%2F": "A", "/vhosts/%2F/permissions": "A",
    "/users/guest": "A", "/users/guest/permissions": "A", "/feature-flags": "A",
}  # fmt: skip


@pytest.fixture
def console_with_users() -> Console:
    console = Console()
    console.add_user("manager", "management")
    console.add_user("policymaker", "policymaker")
    console.add_user("watcher", "monitoring")
    console.gateway.broker.declare_vhost("closed")
    return console


@pytest.mark.parametrize("path", OPEN_TO)
def test_tags_grant_access_to_paths(console_with_users: Console, path: str) -> None:
    let_in = "".join(letter for letter, user in zip("MPWA", USERS, strict=True)
                     if console_with_users.ask("GET", path, user=user).status == 200)  # fmt: skip
    assert let_in == OPEN_TO[path]


CHANGES = [
    ("/vhosts/new", {}, "A"),
    ("/users/new", {"tags": ""}, "A"),
    ("/permissions/%2F/manager", {"configure": "", "write": "", "read": ""}, "A"),
    ("/policies/%2F/p", {"pattern": "x", "definition": {"max-length": 1}}, "PA"),
    ("/operator-policies/%2F/p", {"pattern": "x", "definition": {"max-length": 1}}, "A"),
    ("/parameters/vhost-limits/%2F/limits", {"value": {}}, "A"),
    ("/global-parameters/g", {"value": 1}, "A"),
    ("/vhost-limits/%2F/max-queues", {"value": 100}, "A"),
    ("/user-limits/manager/max-channels", {"value": 100}, "A"),
    ("/cluster-name", {"name": "x"}, "A"),
    ("/queues/%2F/q", {}, "MPWA"),
]


@pytest.mark.parametrize(("path", "fields", "open_to"), CHANGES)
def test_tags_grant_changes(console_with_users: Console, path: str, fields: object, open_to: str) -> None:
    statuses = [console_with_users.ask("PUT", path, fields, user=user).status for user in USERS]
    assert "".join(letter for letter, status in zip("MPWA", statuses, strict=True) if status < 400) == open_to


def test_a_virtual_host_is_visible_only_with_permissions(console_with_users: Console) -> None:
    assert [vhost["name"] for vhost in console_with_users.get("/vhosts", user="manager")] == ["/"]
    assert [vhost["name"] for vhost in console_with_users.get("/vhosts", user="watcher")] == ["/", "closed"]
    assert console_with_users.ask("GET", "/queues/closed", user="manager").result == (
        401,
        {"error": "not_authorised", "reason": "User not authorised to access virtual host"},
    )


def test_changes_in_a_virtual_host_need_permissions(console_with_users: Console) -> None:
    assert console_with_users.ask("PUT", "/queues/closed/q", {}, user="watcher").status == 401


def test_permissions_are_checked_as_over_amqp(console_with_users: Console) -> None:
    console_with_users.gateway.add_user("careful", "careful", "/", ("^mine", "", ""), "management")
    assert console_with_users.ask("PUT", "/queues/%2F/mine", {}, user="careful").status == 201
    assert console_with_users.ask("PUT", "/queues/%2F/yours", {}, user="careful").result == (
        401,
        {"error": "not_authorised", "reason": "Access refused."},
    )
    assert console_with_users.ask("DELETE", "/queues/%2F/mine/contents", user="careful").status == 401
