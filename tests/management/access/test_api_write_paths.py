"""All write requests: required tag and permission, maximum body, and the limit of their number."""

import pytest

from gateway.kernel.alarms import Resource
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.routes import ANY_BODY, DEFAULT_BODY, LIST_BODY, Endpoint
from gateway.management.resources.table import ROUTES
from gateway.management.web.limits import HttpLimits
from gateway.plugins.services.http_resource import MOST_BODY
from tests.management.answers.test_api_wrong_types import path_of
from tests.management.client_connection import LOGIN, ClientConnection
from tests.management.console import Console

ADMIN, POLICY, MANAGE, USER, PUBLIC = (
    AccessLevel.ADMINISTRATOR, AccessLevel.POLICYMAKER, AccessLevel.MANAGEMENT, AccessLevel.USER, AccessLevel.PUBLIC,
)  # fmt: skip

#: The request stores nothing, or only administrators may send it.
_NONE, _ADMINISTRATORS = "nothing is stored", "administrators only"

_WORKBENCH = "limits of jobs and of what can be undone"

#: (method, path): access level, permission, maximum body, limit of the number.
WRITES = {
    ("PUT", "/cluster-name"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("POST", "/login"): (PUBLIC, "", 8192, _NONE),
    ("PUT", "/feature-flags/<name>/enable"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("POST", "/definitions"): (ADMIN, "", ANY_BODY, _ADMINISTRATORS),
    ("POST", "/all-configuration"): (ADMIN, "", ANY_BODY, _ADMINISTRATORS),
    ("POST", "/definitions/<vhost>"): (ADMIN, "", ANY_BODY, _ADMINISTRATORS),
    ("POST", "/definitions-check"): (ADMIN, "", ANY_BODY, _NONE),
    ("POST", "/definitions-plan"): (ADMIN, "", ANY_BODY, _NONE),
    ("POST", "/definitions-plan/<vhost>"): (ADMIN, "", ANY_BODY, _NONE),
    ("POST", "/definitions-apply"): (ADMIN, "", ANY_BODY, _ADMINISTRATORS),
    ("POST", "/definitions-apply/<vhost>"): (ADMIN, "", ANY_BODY, _ADMINISTRATORS),
    ("POST", "/workbench/<vhost>/<name>/search"): (MANAGE, "read", DEFAULT_BODY, _NONE),
    ("POST", "/workbench/<vhost>/<name>/move"): (MANAGE, "read, write", ANY_BODY, _WORKBENCH),
    ("POST", "/workbench/<vhost>/<name>/copy"): (MANAGE, "read, write", ANY_BODY, _WORKBENCH),
    ("POST", "/workbench/<vhost>/<name>/edit"): (MANAGE, "read, write", ANY_BODY, _WORKBENCH),
    ("POST", "/workbench/<vhost>/<name>/delete"): (MANAGE, "read", DEFAULT_BODY, _WORKBENCH),
    ("POST", "/workbench/<vhost>/<name>/requeue"): (MANAGE, "read", DEFAULT_BODY, _WORKBENCH),
    ("POST", "/workbench/undo/<id>"): (MANAGE, "", DEFAULT_BODY, _WORKBENCH),
    ("PUT", "/vhosts/<name>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("POST", "/vhosts/<name>/deletion/protection"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("POST", "/vhosts/<name>/start/<node>"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/vhost-limits/<name>/<limit>"): (ADMIN, "", DEFAULT_BODY, "the names of limits"),
    ("POST", "/users/bulk-delete"): (ADMIN, "", LIST_BODY, _NONE),
    ("PUT", "/users/<name>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("PUT", "/user-limits/<name>/<limit>"): (ADMIN, "", DEFAULT_BODY, "the names of limits"),
    ("PUT", "/permissions/<vhost>/<user>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("PUT", "/topic-permissions/<vhost>/<user>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("PUT", "/exchanges/<vhost>/<name>"): (MANAGE, "configure", DEFAULT_BODY, "limits of a virtual host"),
    ("POST", "/exchanges/<vhost>/<name>/publish"): (MANAGE, "write", ANY_BODY, "alarms"),
    ("PUT", "/queues/<vhost>/<name>"): (MANAGE, "configure", DEFAULT_BODY, "limits of a virtual host"),
    ("POST", "/queues/<vhost>/<name>/get"): (MANAGE, "read", DEFAULT_BODY, "10,000 messages of 32 MiB"),
    ("POST", "/queues/<vhost>/<name>/actions"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("POST", "/bindings/<vhost>/e/<source>/<kind>/<destination>"): (
        MANAGE, "write, read", DEFAULT_BODY, "limits of a virtual host",
    ),
    ("POST", "/queues/quorum/<vhost>/<name>/replicas/add"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("POST", "/queues/quorum/replicas/on/<node>/grow"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/policies/<vhost>/<name>"): (POLICY, "", DEFAULT_BODY, "policymakers only"),
    ("PUT", "/operator-policies/<vhost>/<name>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("POST", "/policies/<vhost>/<name>/preview"): (POLICY, "", DEFAULT_BODY, _NONE),
    ("POST", "/operator-policies/<vhost>/<name>/preview"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/parameters/<component>/<vhost>/<name>"): (POLICY, "", DEFAULT_BODY, "policymakers only"),
    ("PUT", "/global-parameters/<name>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("POST", "/explain/<vhost>"): (MANAGE, "entry", DEFAULT_BODY, _NONE),
    ("PUT", "/traces/<vhost>/<name>"): (ADMIN, "", DEFAULT_BODY, "20 traces"),
    ("PUT", "/traces/node/<node>/<vhost>/<name>"): (ADMIN, "", DEFAULT_BODY, "20 traces"),
    ("PUT", "/message-traces/<vhost>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("POST", "/rebalance/queues"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/plugins/<vhost>/<name>"): (ADMIN, "", DEFAULT_BODY, _ADMINISTRATORS),
    ("POST", "/plugins/<vhost>/<name>/reload"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("POST", "/plugins/<vhost>/<name>/rollback"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/plugin-files/<name>"): (ADMIN, "", DEFAULT_BODY, "one file for each name, if uploads are allowed"),
    ("PUT", "/settings/<key>"): (ADMIN, "", DEFAULT_BODY, "one value for each setting"),
    ("POST", "/reload"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("POST", "/log/rotate"): (ADMIN, "", DEFAULT_BODY, "log.kept_files"),
    ("PUT", "/cluster/nodes/<name>/maintenance"): (ADMIN, "", DEFAULT_BODY, "the nodes of the cluster"),
    ("PUT", "/cluster/leader"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/maintenance"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/maintenance/listeners"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/recording"): (ADMIN, "", DEFAULT_BODY, "recording.max_size"),
    ("POST", "/stop"): (ADMIN, "", DEFAULT_BODY, _NONE),
    ("PUT", "/plugins/<vhost>/<name>/resources/<path:path>"): (USER, "", MOST_BODY, "what the plugin allows"),
    ("POST", "/plugins/<vhost>/<name>/resources/<path:path>"): (USER, "", MOST_BODY, "what the plugin allows"),
    ("POST", "/store/compact"): (ADMIN, "", DEFAULT_BODY, "one at a time"),
    ("PUT", "/stream/<vhost>/<name>/tracking/<consumer>"): (MANAGE, "read", DEFAULT_BODY, "consumers of a stream"),
    ("PUT", "/stream/super-streams/<vhost>/<name>"): (MANAGE, "configure", DEFAULT_BODY, "limits of a virtual host"),
    ("PUT", "/pipeline/<vhost>/progress/<consumer>"): (USER, "read", DEFAULT_BODY, "100 consumers of a user"),
    ("POST", "/pipeline/<vhost>/stage"): (USER, "entry", ANY_BODY, "pipeline.staged_size, 100,000 parts of a user"),
    ("POST", "/pipeline/<vhost>/commit"): (USER, "write", LIST_BODY, "alarms, pipeline.batch_size"),
    ("POST", "/pipeline/<vhost>/discard"): (USER, "entry", LIST_BODY, _NONE),
}  # fmt: skip

ROUTE_OF = {(route.method, route.path): route for route in ROUTES if route.method in ("PUT", "POST")}


def test_every_write_is_in_the_table() -> None:
    assert set(WRITES) == set(ROUTE_OF)


@pytest.mark.parametrize("write", WRITES, ids=" ".join)
def test_a_write_has_the_level_and_the_size_of_the_table(write: tuple[str, str]) -> None:
    route, (level, _, largest, bound) = ROUTE_OF[write], WRITES[write]
    assert (route.level, route.largest_body) == (level, largest)
    assert bound


#: Bodies that would succeed with the permission.
BODIES = {
    "/exchanges/<vhost>/<name>": {"type": "direct"},
    "/exchanges/<vhost>/<name>/publish": {
        "properties": {}, "routing_key": "q", "payload": "p", "payload_encoding": "string",
    },
    "/workbench/<vhost>/<name>/move": {"to": {"queue": "q"}},
    "/workbench/<vhost>/<name>/copy": {"to": {"queue": "q"}},
    "/workbench/<vhost>/<name>/edit": {"changes": {"body": "b"}},
    "/queues/<vhost>/<name>/get": {"ackmode": "ack_requeue_true", "count": 1, "encoding": "auto"},
    "/stream/<vhost>/<name>/tracking/<consumer>": {"offset": 0},
    "/pipeline/<vhost>/progress/<consumer>": {"offsets": {"q": {"0": 1}}},
}  # fmt: skip


@pytest.mark.parametrize("write", [write for write, row in WRITES.items() if row[1]], ids=" ".join)
def test_a_user_without_permissions_is_refused(write: tuple[str, str]) -> None:
    console, route = _with_queues(), ROUTE_OF[write]
    console.gateway.add_user("powerless", "powerless", "/", ("^$", "^$", "^$"), "management")
    console.gateway.add_user("outsider", "outsider", "other", (".*", ".*", ".*"), "management")
    path, body = _path(route), BODIES.get(route.path, {})
    answers = [console.ask(route.method, path, body, user="outsider")]
    if WRITES[write][1] != "entry" and route.path != "/pipeline/<vhost>/commit":
        answers.append(console.ask(route.method, path, body, user="powerless"))
    for answer in answers:  # as in RabbitMQ, the refusal of a publish has the text of a channel error
        assert answer.status in (401, 403) or answer.json["reason"].startswith("403 ACCESS_REFUSED")
    assert console.pipeline.progress.of("/") == []


@pytest.mark.parametrize("write", [write for write, row in WRITES.items() if row[0] is not PUBLIC], ids=" ".join)
def test_a_user_without_the_tag_is_refused(write: tuple[str, str]) -> None:
    console, route = _with_queues(), ROUTE_OF[write]
    tags = {ADMIN: ["policymaker"], POLICY: ["monitoring"], MANAGE: []}.get(WRITES[write][0])
    if tags is None:
        assert console.ask(route.method, _path(route), {}, user=None).status == 401
        return
    console.add_user("some", *tags)
    assert console.ask(route.method, _path(route), {}, user="some").status == 401


SIZED = [write for write, row in WRITES.items() if row[2] < ANY_BODY and ROUTE_OF[write].refine is None]


@pytest.mark.parametrize("write", SIZED, ids=" ".join)
def test_a_larger_body_is_refused_before_it_is_received(write: tuple[str, str]) -> None:
    client, route = ClientConnection(Console(limits=HttpLimits())), ROUTE_OF[write]
    client.ask(f"{route.method} /api{_path(route)}", LOGIN, f"Content-Length: {WRITES[write][2] + 1}")
    client.wait()
    assert client.answer.status == 413
    assert client.console.site.connections.bodies.taken == 0


def _with_queues() -> Console:
    console = Console()
    vhost = console.gateway.vhost
    vhost.declare_queue("q")
    vhost.declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
    vhost.declare_exchange("q", "direct")
    return console


def _path(route: Endpoint) -> str:
    return path_of(route, **({"place2": "q"} if "<kind>" in route.path else {})) + (
        "?attempt=a&part=0" if route.path.endswith("/stage") else ""
    )


# Progress of pipelines


def test_the_size_and_the_number_of_reports_are_limited() -> None:
    console = _with_queues()
    many = {"q": {str(number): 1 for number in range(257)}}
    assert console.ask("PUT", "/pipeline/%2F/progress/job", {"offsets": many}).status == 400
    assert console.ask("PUT", f"/pipeline/%2F/progress/{'j' * 256}", {"offsets": {"q": {"0": 1}}}).status == 400
    for number in range(150):
        assert console.ask("PUT", f"/pipeline/%2F/progress/job{number}", {"offsets": {"q": {"0": 1}}}).status == 204
    assert len(console.pipeline.progress.of("/")) == 100


def test_a_user_cannot_report_for_the_consumer_of_another() -> None:
    console = _with_queues()
    for name in ("one", "two"):
        console.add_user(name)
    assert console.ask("PUT", "/pipeline/%2F/progress/job", {"offsets": {}}, user="one").status == 204
    assert console.ask("PUT", "/pipeline/%2F/progress/job", {"offsets": {}}, user="two").status == 401
    assert console.ask("DELETE", "/pipeline/%2F/progress/job", user="two").status == 401
    assert console.ask("DELETE", "/pipeline/%2F/progress/job", user="guest").status == 204


def test_alarms_block_publishers_over_http_too() -> None:
    console = _with_queues()
    console.gateway.broker.alarms.set(Resource.MEMORY, True)
    body = BODIES["/exchanges/<vhost>/<name>/publish"]
    answer = console.ask("POST", "/exchanges/%2F/amq.default/publish", body)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.json["reason"] == "publishers are blocked: low on memory"
    assert console.ask("POST", "/pipeline/%2F/stage?attempt=a&part=0", content=b"x").status == 503
    assert console.ask("POST", "/pipeline/%2F/commit", {"attempts": []}).status == 503
    console.gateway.broker.alarms.set(Resource.MEMORY, False)
    assert console.ask("POST", "/exchanges/%2F/amq.default/publish", body).json == {"routed": True}
