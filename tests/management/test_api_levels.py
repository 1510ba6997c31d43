"""Which user tags open which part of the API."""

import pytest

from tests.management.console import Console

USERS = ("manager", "policymaker", "watcher", "guest")

#: path: who may, as M, P, W, A for the users above in this order
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
def open_house() -> Console:
    console = Console()
    console.add_user("manager", "management")
    console.add_user("policymaker", "policymaker")
    console.add_user("watcher", "monitoring")
    console.gateway.broker.declare_vhost("closed")
    return console


@pytest.mark.parametrize("path", OPEN_TO)
def test_tags_open_paths(open_house: Console, path: str) -> None:
    let_in = "".join(letter for letter, user in zip("MPWA", USERS, strict=True)
                     if open_house.ask("GET", path, user=user).status == 200)  # fmt: skip
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
def test_tags_open_changes(open_house: Console, path: str, fields: object, open_to: str) -> None:
    statuses = [open_house.ask("PUT", path, fields, user=user).status for user in USERS]
    assert "".join(letter for letter, status in zip("MPWA", statuses, strict=True) if status < 400) == open_to


def test_those_who_may_not_enter_see_nothing_of_a_virtual_host(open_house: Console) -> None:
    assert [vhost["name"] for vhost in open_house.get("/vhosts", user="manager")] == ["/"]
    assert [vhost["name"] for vhost in open_house.get("/vhosts", user="watcher")] == ["/", "closed"]
    assert open_house.ask("GET", "/queues/closed", user="manager").said == (
        401,
        {"error": "not_authorised", "reason": "User not authorised to access virtual host"},
    )


def test_to_change_a_virtual_host_one_has_to_enter_it(open_house: Console) -> None:
    assert open_house.ask("PUT", "/queues/closed/q", {}, user="watcher").status == 401


def test_permissions_hold_as_they_do_over_amqp(open_house: Console) -> None:
    open_house.gateway.add_user("careful", "careful", "/", ("^mine", "", ""), "management")
    assert open_house.ask("PUT", "/queues/%2F/mine", {}, user="careful").status == 201
    assert open_house.ask("PUT", "/queues/%2F/yours", {}, user="careful").said == (
        401,
        {"error": "not_authorised", "reason": "Access refused."},
    )
    assert open_house.ask("DELETE", "/queues/%2F/mine/contents", user="careful").status == 401
