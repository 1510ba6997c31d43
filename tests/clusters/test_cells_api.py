"""The HTTP API and the logins of a cluster with two cells: as with one, whichever cell has the virtual host."""

from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pika
import pytest
from pika.exceptions import AMQPConnectionError

from tests.clusters.cells import VHOSTS, cell_of, delete_vhost, leader_of, running_cells
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink, StompLink
from tests.clusters.reads import NodeReads, wait_until_copied
from tests.durability.mqtt_link import SocketLink
from tests.management_client import get, request
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[GatewayCluster]:
    with running_cells() as found:
        yield found


def _login(node: ClusterNode, vhost: str, user: str, password: str) -> None:
    """Log in, and out again. :raises AMQPConnectionError: if that is refused."""
    host, port = node.addresses["amqp"]
    credentials = pika.PlainCredentials(user, password)
    pika.BlockingConnection(pika.ConnectionParameters(host, port, vhost, credentials)).close()


def _wait_for_the_end(connection: pika.BlockingConnection) -> None:
    for _ in range(200):
        connection.process_data_events(0.1)


def _names(node: ClusterNode, path: str) -> list[tuple[str, str]]:
    return [(each["vhost"], each["name"]) for each in get(node, path)]


def _refusal(node: ClusterNode, method: str, path: str, fields: object = None) -> tuple[int, str]:
    with pytest.raises(HTTPError) as raised:
        request(node, method, path, fields)
    return raised.value.code, raised.value.read().decode()


def test_a_virtual_host_is_usable_at_once_at_every_node_by_every_protocol(cluster: GatewayCluster) -> None:
    for name in ("fresh-1", "fresh-2"):  # one in each cell
        request(cluster.nodes[0], "PUT", f"vhosts/{name}", {})
        for node in cluster.nodes:
            with AmqpLink(node.addresses["amqp"], vhost=name) as link:
                link.declare("q")
            with StompLink(node.addresses["stomp"], vhost=name) as stomp:
                assert stomp.socket.fileno() > 0
            with SocketLink(node.addresses["mqtt"]) as mqtt:
                assert mqtt.connect("c", username=f"{name}:guest", password=b"guest")[0] == "CONNACK"
    assert {cell_of(cluster, name) for name in ("fresh-1", "fresh-2")} == {1, 2}
    for name in ("fresh-1", "fresh-2"):
        delete_vhost(cluster, name)


def test_an_unknown_virtual_host_is_refused_in_the_way_of_each_protocol(cluster: GatewayCluster) -> None:
    for node in cluster.nodes:
        with pytest.raises(ConnectionResetError, match="530 NOT_ALLOWED - vhost missing not found"):
            AmqpLink(node.addresses["amqp"], vhost="missing")
        with pytest.raises(ConnectionResetError, match="ERROR Bad CONNECT"):
            StompLink(node.addresses["stomp"], vhost="missing")
        with SocketLink(node.addresses["mqtt"]) as mqtt:
            assert "BAD_USER_NAME" in mqtt.connect("c", username="missing:guest", password=b"guest")[0]


def test_a_user_can_log_in_to_the_other_cell_at_once_and_not_after_its_deletion(cluster: GatewayCluster) -> None:
    node = cluster.nodes[0]
    for at in range(3):
        name = f"user-{at}"
        request(node, "PUT", f"users/{name}", {"password": "secret", "tags": ""})
        request(node, "PUT", f"permissions/second/{name}", ALL)
        for each in cluster.nodes:
            _login(each, "second", name, "secret")
            with pytest.raises(AMQPConnectionError):
                _login(each, "/", name, "secret")
        request(node, "PUT", f"users/{name}", {"password": "other", "tags": ""})
        with pytest.raises(AMQPConnectionError):
            _login(node, "second", name, "secret")
        _login(node, "second", name, "other")
        request(node, "DELETE", f"users/{name}")
        with pytest.raises(AMQPConnectionError):
            _login(node, "second", name, "other")


def test_the_deletion_of_a_user_closes_its_connections_in_the_other_cell(cluster: GatewayCluster) -> None:
    node = cluster.nodes[0]
    request(node, "PUT", "users/leaver", {"password": "secret", "tags": ""})
    request(node, "PUT", "permissions/second/leaver", ALL)
    host, port = node.addresses["amqp"]
    credentials = pika.PlainCredentials("leaver", "secret")
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, "second", credentials))
    request(node, "DELETE", "users/leaver")
    with pytest.raises(AMQPConnectionError):
        _wait_for_the_end(connection)


def test_the_limit_of_a_users_connections_holds_over_both_cells(cluster: GatewayCluster) -> None:
    node = cluster.nodes[1]
    request(node, "PUT", "users/limited", {"password": "secret", "tags": ""})
    for vhost in ("%2F", "second"):
        request(node, "PUT", f"permissions/{vhost}/limited", ALL)
    request(node, "PUT", "user-limits/limited/max-connections", {"value": 2})
    host, port = node.addresses["amqp"]
    login = pika.PlainCredentials("limited", "secret")

    def is_refused(vhost: str) -> bool:
        try:
            _login(node, vhost, "limited", "secret")
        except AMQPConnectionError:
            return True
        return False

    places = [pika.ConnectionParameters(host, port, vhost, login, heartbeat=600) for vhost in ("/", "second")]
    connections = [pika.BlockingConnection(place) for place in places]
    for vhost in ("/", "second"):
        wait_until(lambda vhost=vhost: is_refused(vhost), cluster.logs, interval_s=0.3)  # type: ignore[misc]
    connections[1].close()
    for vhost in ("/", "second"):
        wait_until(lambda vhost=vhost: not is_refused(vhost), cluster.logs, interval_s=0.3)  # type: ignore[misc]
    connections[0].close()
    request(node, "DELETE", "users/limited")


def test_queues_of_both_cells_are_made_listed_and_deleted_through_every_node(cluster: GatewayCluster) -> None:
    for node in cluster.nodes:
        for vhost in ("%2F", "second"):
            request(node, "PUT", f"queues/{vhost}/listed", {"durable": True})
            request(node, "POST", f"exchanges/{vhost}/amq.default/publish", {
                "properties": {}, "routing_key": "listed", "payload": "hello", "payload_encoding": "string",
            })  # fmt: skip
        assert {("/", "listed"), ("second", "listed")} <= set(_names(node, "queues"))
        page = get(node, "queues?page=1&page_size=1&name=listed&sort=name")
        assert (page["filtered_count"], len(page["items"])) == (2, 1)
        assert {each["node"] for each in get(node, "queues") if each["name"] == "listed"} <= set("abc")
        totals = get(node, "overview")["object_totals"]
        assert totals["queues"] == len(get(node, "queues"))
        for vhost in ("%2F", "second"):
            got = request(node, "POST", f"queues/{vhost}/listed/get", {
                "count": 5, "ackmode": "ack_requeue_false", "encoding": "auto",
            })  # fmt: skip
            assert [each["payload"] for each in got] == ["hello"]
            request(node, "DELETE", f"queues/{vhost}/listed")
        assert not {("/", "listed"), ("second", "listed")} & set(_names(node, "queues"))


def test_connections_of_both_cells_are_listed_and_closed(cluster: GatewayCluster) -> None:
    node = cluster.nodes[2]
    with AmqpLink(node.addresses["amqp"]) as first, AmqpLink(node.addresses["amqp"], vhost="second") as second:
        found = wait_until(lambda: [each for each in get(node, "connections") if each["vhost"] == "second"])
        assert {each["vhost"] for each in get(node, "connections")} == {"/", "second"}
        path = f"connections/{quote(found[0]['name'])}"
        assert get(node, path)["vhost"] == "second"
        request(node, "DELETE", path)
        with pytest.raises(ConnectionResetError, match="320"):
            second.next_method()
        first.declare("still-here")


def test_a_deleted_virtual_host_is_gone_with_its_permissions_and_can_be_made_again(cluster: GatewayCluster) -> None:
    node = cluster.nodes[1]
    for at in range(2):
        for name in ("gone-1", "gone-2"):
            request(node, "PUT", f"vhosts/{name}", {})
            with AmqpLink(node.addresses["amqp"], vhost=name) as link:
                assert link.declare("q") == 0, at
                link.publish("q", b"x")
        request(node, "POST", "vhosts/gone-1/deletion/protection", {})
        assert _refusal(node, "DELETE", "vhosts/gone-1")[0] == 412
        request(node, "DELETE", "vhosts/gone-1/deletion/protection")
        for name in ("gone-1", "gone-2"):
            delete_vhost(cluster, name)
            assert name not in [each["vhost"] for each in get(node, "permissions")]
            with pytest.raises(ConnectionResetError, match="530"):
                AmqpLink(node.addresses["amqp"], vhost=name)


def test_a_refused_virtual_host_leaves_nothing(cluster: GatewayCluster) -> None:
    node = cluster.nodes[0]
    for name in ("odd-1", "odd-2"):
        assert _refusal(node, "PUT", f"vhosts/{name}", {"tags": 7})[0] == 400
    assert not {"odd-1", "odd-2"} & {each["name"] for each in get(node, "vhosts")}
    for name in ("odd-1", "odd-2"):
        with pytest.raises(ConnectionResetError, match="530"):
            AmqpLink(node.addresses["amqp"], vhost=name)


def test_definitions_are_imported_to_both_cells_and_exported_as_one(cluster: GatewayCluster) -> None:
    node = cluster.nodes[0]
    names = ("imported-1", "imported-2", "imported-3")
    definitions = {
        "users": [{"name": "importer", "password": "secret", "tags": ""}],
        "vhosts": [{"name": name} for name in names],
        "permissions": [{"user": "importer", "vhost": name, **ALL} for name in names],
        "queues": [_queue(name) for name in names],
        "policies": [_policy(name) for name in names],
    }
    request(node, "POST", "definitions", definitions)
    request(node, "POST", "definitions", definitions)
    assert {cell_of(cluster, name) for name in names} == {1, 2}
    for name in names:
        _login(cluster.nodes[1], name, "importer", "secret")
        assert get(node, f"queues/{name}/imported")["policy"] == "limit"
    exported = get(node, "definitions")
    assert set(names) <= {each["name"] for each in exported["vhosts"]}
    for category in ("queues", "policies"):
        assert set(names) <= {each["vhost"] for each in exported[category]}
    assert len([each for each in exported["users"] if each["name"] == "importer"]) == 1
    for name in names:
        delete_vhost(cluster, name)
    request(node, "POST", "definitions", exported)
    for name in names:
        assert ("imported" in [each["name"] for each in get(node, f"queues/{name}")]) is True
        delete_vhost(cluster, name)


def test_refused_definitions_change_nothing(cluster: GatewayCluster) -> None:
    node = cluster.nodes[0]
    refused = {"vhosts": [{"name": "refused-1"}, {"name": "refused-2"}], "queues": [_queue("missing")]}
    status, reason = _refusal(node, "POST", "definitions", refused)
    assert (status, "vhost missing not found" in reason) == (400, True)
    assert not {"refused-1", "refused-2"} & {each["name"] for each in get(node, "vhosts")}


def test_a_virtual_host_is_made_in_the_cell_that_is_wanted_and_stays_there(cluster: GatewayCluster) -> None:
    node = cluster.nodes[1]
    for cell in (1, 2):
        request(node, "PUT", f"vhosts/wanted-{cell}", {"cell": cell})
        assert cell_of(cluster, f"wanted-{cell}") == cell
        request(node, "PUT", f"queues/wanted-{cell}/q", {"durable": True})
        leaders = {each["cell"]: each["leader"] for each in get(node, "cluster")["cells"]}
        assert get(node, f"queues/wanted-{cell}/q")["leader"] == leaders[cell]
        status, reason = _refusal(node, "PUT", f"vhosts/wanted-{cell}", {"cell": 3 - cell})
        assert (status, "cannot be moved" in reason) == (400, True)
        delete_vhost(cluster, f"wanted-{cell}")
    assert _refusal(node, "PUT", "vhosts/nowhere", {"cell": 3})[0] == 400
    assert "several cells" in _refusal(node, "POST", "definitions-plan", {})[1]


def test_the_state_of_the_cluster_has_both_cells(cluster: GatewayCluster) -> None:
    cells = get(cluster.nodes[2], "cluster")["cells"]
    assert [each["cell"] for each in cells] == [1, 2]
    assert {each["leader"] for each in cells} <= set("abc")
    assert sum(each["vhosts"] for each in cells) == len(get(cluster.nodes[2], "vhosts"))


def _metrics(node: ClusterNode, query: str) -> str:
    host, port = node.addresses["prometheus"]
    with urlopen(f"http://{host}:{port}/metrics{query}", timeout=30) as answer:
        return str(answer.read().decode())


def test_the_metrics_of_each_cell_are_scraped_at_any_node(cluster: GatewayCluster) -> None:
    node = cluster.nodes[2]
    epochs = {each["cell"]: each["epoch"] for each in get(node, "cluster")["cells"]}
    for cell in (1, 2):
        metrics = _metrics(node, f"?cell={cell}")
        assert f'gateway_cluster_cell_has_leader{{cell="{cell}"}} 1.0' in metrics
        assert f"gateway_cluster_epoch {epochs[cell]}.0" in metrics
    assert f"gateway_cluster_epoch {epochs[1]}.0" in _metrics(node, "")
    with pytest.raises(HTTPError, match="400"):
        _metrics(node, "?cell=9")


def test_streams_are_read_from_the_copy_of_the_cell_of_their_virtual_host(cluster: GatewayCluster) -> None:
    fields = {"durable": True, "arguments": {"x-queue-type": "stream"}}
    message = {"properties": {}, "routing_key": "read", "payload": "hello", "payload_encoding": "string"}
    for cell, vhost in VHOSTS.items():
        path = quote(vhost, safe="")
        request(cluster.nodes[0], "PUT", f"queues/{path}/read", fields)
        for _ in range(3):
            request(cluster.nodes[0], "POST", f"exchanges/{path}/amq.default/publish", message)
        leader = leader_of(cluster, cell)
        for node in cluster.nodes:
            if node is not leader:
                wait_until_copied(node, "read", 3, vhost)
        reply = NodeReads(leader, vhost=vhost).read("read", 0, 3)
        assert (reply.rows, reply.read_at) == ([(offset, b"hello") for offset in range(3)], "")


def _queue(vhost: str) -> dict[str, object]:
    return {"name": "imported", "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}}


def _policy(vhost: str) -> dict[str, object]:
    definition = {"max-length": 5}
    return {
        "vhost": vhost, "name": "limit", "pattern": ".*", "definition": definition, "priority": 0, "apply-to": "queues",
    }  # fmt: skip
