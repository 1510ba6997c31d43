"""Stock clients against a follower of a cluster of three: the tests of this folder, unchanged.

With one round some tests of each client use one cluster, by its addresses, or start followers. With more, as
``make test-cluster ROUNDS=2`` has them, all tests run but those of ``one_node.py``, and each gateway that they start is
a follower of a cluster of its own.
"""

import os
import re
import subprocess
import sys
from typing import Final

import pytest

from tests.clusters.gateway_cluster import ClusterNode, running_cluster
from tests.clusters.rounds import ROUNDS
from tests.interop.broker import PROJECT
from tests.interop.one_node import REASONS

SELECTED: Final = (
    "amqp_clients/test_pika_blocking.py",
    "amqp_clients/test_aio_pika.py",
    "amqp_clients/test_celery.py",
    "mqtt_clients/test_paho_five.py",
    "mqtt_clients/test_node_mqtt.py",
    "stomp_clients/test_stomp_py.py",
    "operators/test_rabbitmqadmin.py",
)

#: With one round, clients with TLS and over WebSocket, which need listeners of their own.
SELECTED_LAYERS: Final = ("stomp_clients/test_node_stomp.py", "stomp_clients/test_stomp_tls.py")

TIME_LIMIT_S: Final = 480
ALL_LIMIT_S: Final = 3600

_MOST_RUNS: Final = 3

_DESELECTED: Final = re.compile(rb"(\d+) deselected")


def addresses(node: ClusterNode) -> dict[str, str]:
    """Return the environment in which the tests use a node."""
    places = {name: f"{host}:{port}" for name, (host, port) in node.addresses.items()}
    return {
        "GATEWAY_TEST_AMQP_URL": f"amqp://guest:guest@{places['amqp']}/%2F",
        "GATEWAY_TEST_MQTT_URL": f"mqtt://guest:guest@{places['mqtt']}",
        "GATEWAY_TEST_STOMP_URL": f"stomp://guest:guest@{places['stomp']}",
        "GATEWAY_TEST_MANAGEMENT_URL": f"http://guest:guest@{places['management']}",
    }


def run_tests(
    environment: dict[str, str], names: tuple[str, ...], *options: str, limit_s: float = TIME_LIMIT_S
) -> subprocess.CompletedProcess[bytes]:
    """Run tests of this folder in a process of their own."""
    paths = (f"tests/interop/{name}" for name in names)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths, *options],
        cwd=PROJECT,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=limit_s,
        check=False,
    )


@pytest.mark.timeout(_MOST_RUNS * TIME_LIMIT_S + 120)
def test_stock_clients_work_on_a_follower() -> None:
    with running_cluster() as cluster:
        for _ in range(_MOST_RUNS):  # a busy machine may move the leader, which closes the connections of all clients
            epoch = cluster.leader().led_epoch
            done = run_tests(addresses(cluster.follower()), SELECTED)
            if cluster.leader().led_epoch == epoch:
                assert done.returncode == 0, done.stdout.decode()[-20_000:]
                return
        pytest.fail(f"the leader changed in each of {_MOST_RUNS} runs:\n{cluster.logs()}")


@pytest.mark.timeout(ALL_LIMIT_S + 60)
def test_each_client_works_if_each_gateway_is_a_follower() -> None:
    names = SELECTED_LAYERS if ROUNDS == 1 else ("",)
    options = ("--ignore=tests/interop/test_on_a_cluster.py",)
    done = run_tests({"GATEWAY_TEST_ON_A_CLUSTER": "1"}, names, *options, limit_s=ALL_LIMIT_S)
    assert done.returncode == 0, done.stdout.decode()[-20_000:]
    if ROUNDS > 1:
        found = _DESELECTED.search(done.stdout)
        assert found is not None
        assert int(found[1]) >= len(REASONS), "a test about one node does not exist any more"
