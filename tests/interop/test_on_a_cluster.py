"""Stock clients against a follower of a cluster of three: the tests of this folder, unchanged, with its addresses."""

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.clusters.gateway_cluster import ClusterNode, running_cluster
from tests.clusters.rounds import ROUNDS
from tests.interop.broker import PROJECT

#: With one round, a test or two of each client; with more (``make test-cluster ROUNDS=2``) all that take any server.
SELECTED: Final = (
    "amqp_clients/test_pika_blocking.py",
    "amqp_clients/test_aio_pika.py",
    "amqp_clients/test_celery.py",
    "mqtt_clients/test_paho_five.py",
    "mqtt_clients/test_node_mqtt.py",
    "stomp_clients/test_stomp_py.py",
    "operators/test_rabbitmqadmin.py",
)
ALL: Final = ("amqp_clients", "mqtt_clients", "stomp_clients", "operators", "test_refusals.py")

TIME_LIMIT_S: Final = 480 if ROUNDS == 1 else 3000

_MOST_RUNS: Final = 3


def addresses(node: ClusterNode) -> dict[str, str]:
    """Return the environment in which the tests use a node."""
    places = {name: f"{host}:{port}" for name, (host, port) in node.addresses.items()}
    return {
        "GATEWAY_TEST_AMQP_URL": f"amqp://guest:guest@{places['amqp']}/%2F",
        "GATEWAY_TEST_MQTT_URL": f"mqtt://guest:guest@{places['mqtt']}",
        "GATEWAY_TEST_STOMP_URL": f"stomp://guest:guest@{places['stomp']}",
        "GATEWAY_TEST_MANAGEMENT_URL": f"http://guest:guest@{places['management']}",
    }


def run_tests(environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run the selected tests in a process of their own."""
    names = SELECTED if ROUNDS == 1 else ALL
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/interop/{name}" for name in names)],
        cwd=PROJECT,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )


@pytest.mark.timeout(_MOST_RUNS * TIME_LIMIT_S + 120)
def test_stock_clients_work_on_a_follower() -> None:
    with running_cluster() as cluster:
        for _ in range(_MOST_RUNS):  # a busy machine may move the leader, which closes the connections of all clients
            epoch = cluster.leader().led_epoch
            done = run_tests(addresses(cluster.follower()))
            if cluster.leader().led_epoch == epoch:
                assert done.returncode == 0, done.stdout.decode()[-20_000:]
                return
        pytest.fail(f"the leader changed in each of {_MOST_RUNS} runs:\n{cluster.logs()}")
