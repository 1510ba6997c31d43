"""Clients of a follower with TLS and over WebSocket keep their connections when the leader changes."""

import signal
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.broker.tls.certificates import Authority
from tests.broker.tls.test_tls import BY_COMMON_NAME
from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster, running_cluster
from tests.clusters.links import AmqpLink
from tests.clusters.reads import NodeReads, wait_until_copied
from tests.clusters.rounds import ROUNDS
from tests.clusters.secure_clients import (
    USER,
    SecurePahoClients,
    SecurePikaClients,
    SecureStompClients,
    SecureWebPahoClients,
    WebPahoClients,
)
from tests.clusters.staying_clients import StayingClients
from tests.clusters.test_staying_clients import _drain, _finish, _kill, _repair, _wait_for_progress
from tests.management_client import get, put
from tests.pipeline.stream_broker import StreamBroker
from tests.waiting import wait_until

_LISTENERS = ("amqps", "mqtts", "stomps", "web_mqtt", "web_mqtts", "management_tls")
_OFF = ("prometheus_tls", "web_stomps")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure_cluster(authority: Authority) -> Iterator[GatewayCluster]:
    """Yield a cluster whose nodes take certificates of clients."""
    certificate, key = authority.sign("broker")
    settings = (
        f"tls.certificate={certificate}",
        f"tls.key={key}",
        f"tls.ca={authority.certificate}",
        "tls.verify=optional",
        BY_COMMON_NAME,
        *(f"{listener}.port=off" for listener in _OFF),
    )
    with running_cluster(listeners=_LISTENERS, settings=settings) as cluster:
        put(cluster.leader(), f"users/{USER}", {"password": "", "tags": ""})
        put(cluster.leader(), f"permissions/%2F/{USER}", {"configure": ".*", "write": ".*", "read": ".*"})
        yield cluster


@pytest.mark.timeout(200 + 120 * ROUNDS)
@pytest.mark.parametrize("change", [_kill, _drain], ids=["killed", "drained"])
def test_clients_with_tls_and_over_websocket_stay_connected(
    secure_cluster: GatewayCluster, authority: Authority, change: Callable[[GatewayCluster, ClusterNode], None]
) -> None:
    cluster = secure_cluster.start()
    leader, follower = cluster.leader(), cluster.follower()
    name = change.__name__
    with AmqpLink(leader.addresses["amqp"]) as link:
        link.declare(f"amqp-{name}")
        link.declare(f"stomp-{name}")
    exactly_once = [
        SecurePahoClients(follower, f"tls/{name}", authority),
        SecureWebPahoClients(follower, f"wss/{name}", authority),
        WebPahoClients(follower, f"ws/{name}"),
    ]
    clients: list[StayingClients] = [
        SecurePikaClients(follower, f"amqp-{name}", authority),
        SecureStompClients(follower, f"stomp-{name}", authority),
        *exactly_once,
    ]
    for each in clients:
        each.start()
    _wait_for_progress(cluster, clients)
    before = _listed(leader)
    epoch = leader.led_epoch
    change(cluster, leader)
    successor = cluster.leader(after=epoch)
    _wait_for_progress(cluster, clients)
    assert _listed(successor) == before
    for each in clients:
        _finish(cluster, each)
    for paho in exactly_once:
        assert max(Counter(paho.taken).values()) == 1, "a message of QoS 2 came twice"
    _repair(cluster, leader)


def _listed(leader: ClusterNode) -> list[tuple[Any, ...]]:
    """Return what listings show of the TLS of all connections."""
    keys = ("protocol", "user", "ssl", "ssl_protocol", "ssl_cipher", "ssl_hash", "peer_cert_subject", "auth_mechanism")
    rows = wait_until(lambda: get(leader, "connections"), "no connections")
    found = sorted({tuple(str(row[key]) for key in keys) for row in rows})
    subjects = {(row[3], row[6]) for row in found if row[1] == USER}
    assert subjects == {("tlsv1.3", f"CN={USER},O=acme")}
    assert {(row[0], row[2]) for row in found} >= {
        ("MQTT 5-0", "True"),
        ("Web MQTT 5-0", "True"),
        ("Web MQTT 5-0", "False"),
        ("STOMP 1.2", "True"),
    }
    return found


def test_a_follower_reads_its_certificate_again(secure_cluster: GatewayCluster, authority: Authority) -> None:
    follower = secure_cluster.start().follower()
    before = _certificate(follower, authority)
    authority.sign("broker")
    follower.child.send_signal(signal.SIGHUP)
    wait_until(lambda: _certificate(follower, authority) != before, lambda: follower.log)


def test_copies_are_read_over_tls(secure_cluster: GatewayCluster, authority: Authority) -> None:
    cluster = secure_cluster.start()
    broker = StreamBroker(cluster.leader())
    broker.declare_stream("secret")
    broker.publish("secret", [b"message"] * 3)
    follower = cluster.follower()
    wait_until_copied(follower, "secret", 3)
    link = NodeReads(follower, tls=ssl.create_default_context(cafile=str(authority.certificate)))
    for _ in range(2):
        reply = link.read("secret", 0, 3)
        assert (reply.rows, reply.read_at) == ([(offset, b"message") for offset in range(3)], follower.name)
    assert link.ask("GET", "whoami").fields["name"] == "guest"


def _certificate(node: ClusterNode, authority: Authority) -> str:
    """Return the certificate that a node shows its clients."""
    return ssl.get_server_certificate(node.addresses["amqps"], ca_certs=str(authority.certificate))
