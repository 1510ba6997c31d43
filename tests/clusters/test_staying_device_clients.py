"""MQTT and STOMP clients of a follower keep their connections when the leader changes: nothing is lost or reordered."""

from collections import Counter
from collections.abc import Callable

import pytest
from paho.mqtt.client import MQTTv5, MQTTv311

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.clusters.staying_clients import StayingClients
from tests.clusters.staying_mqtt_clients import PahoClients
from tests.clusters.staying_stomp_clients import StompClients
from tests.clusters.test_staying_clients import _drain, _finish, _kill, _repair, _transfer, _wait_for_progress


@pytest.mark.timeout(200 + 120 * ROUNDS)
@pytest.mark.parametrize("change", [_kill, _drain, _transfer], ids=["killed", "drained", "transferred"])
def test_mqtt_and_stomp_clients_of_a_follower_stay_connected(
    cluster: GatewayCluster, change: Callable[[GatewayCluster, ClusterNode], None]
) -> None:
    for at in range(ROUNDS):
        leader, follower = cluster.leader(), cluster.follower()
        name = f"{change.__name__}-{at}"
        with AmqpLink(leader.addresses["amqp"]) as link:
            link.declare(f"stomp-{name}")
        exactly_once = PahoClients(follower, f"five/{name}", MQTTv5, 2)
        lasting: list[StayingClients] = [
            exactly_once,
            PahoClients(follower, f"four/{name}", MQTTv311, 1),
            StompClients(follower, f"stomp-{name}"),
        ]
        clean: StayingClients = PahoClients(follower, f"clean/{name}", MQTTv311, 1, lasts=False)
        clients = [each.start() for each in (*lasting, clean)]
        _wait_for_progress(cluster, clients)
        epoch = leader.led_epoch
        change(cluster, leader)
        cluster.leader(after=epoch)
        _wait_for_progress(cluster, clients)
        for each in lasting:
            _finish(cluster, each)
        assert max(Counter(exactly_once.taken).values()) == 1, "a message of QoS 2 came twice"
        clean.end()
        clean.join()
        _repair(cluster, leader)
