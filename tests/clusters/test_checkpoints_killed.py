"""The leader is killed while it writes checkpoints: nothing is lost, nothing comes back, and the log is purged."""

import pytest
from pamqp import commands

from tests.clusters.accounting import Accounting
from tests.clusters.gateway_cluster import GatewayCluster, running_cluster
from tests.clusters.links import AmqpLink
from tests.clusters.rounds import ROUNDS
from tests.waiting import wait_until

KILLS = ROUNDS

#: Messages that stay in a queue and in a stream, so that each checkpoint has many pieces.
KEPT = 200

_ATTEMPTS = 5

#: The time in which the next leader has covered everything, in seconds.
PURGED_S = 90.0


def _bodies() -> list[bytes]:
    return [b"%d" % number + b"k" * 100 for number in range(KEPT)]


def _keep(cluster: GatewayCluster) -> str:
    """Fill the queue and a stream; return the name of the stream. A busy machine may move the leader meanwhile."""
    for attempt in range(_ATTEMPTS):
        try:
            _fill(cluster, stream := f"kept-stream-{attempt}")
        except OSError:
            continue
        return stream
    raise AssertionError(f"nothing can be stored:\n{cluster.logs()}")


def _fill(cluster: GatewayCluster, stream: str) -> None:
    with AmqpLink(cluster.leader().addresses["amqp"]) as link:
        link.declare("kept")
        link.take_all("kept")
        link.declare(stream, x_queue_type="stream")
        link.call(commands.Confirm.Select())
        confirmed = 0
        for content in _bodies():
            link.publish("kept", content)
            link.publish(stream, content)
        while confirmed < 2 * KEPT:
            answer = link.next_method()
            confirmed = answer.delivery_tag if answer.multiple else confirmed + 1


@pytest.mark.timeout(120 + 60 * KILLS)
def test_kills_during_checkpoints_lose_nothing_and_bring_nothing_back() -> None:
    with running_cluster("tests.clusters.frequent_checkpoints") as cluster:
        stream = _keep(cluster)
        accounting = Accounting(cluster, "checkpoints").start()
        for _ in range(KILLS):
            leader = cluster.leader()
            epoch = leader.led_epoch
            leader.kill()
            cluster.leader(after=epoch)
            accounting.goes_on(100)
            cluster.start()
            killed_at = cluster.log_span()[1]
            wait_until(
                lambda killed_at=killed_at: cluster.log_span()[0] > killed_at,  # type: ignore[misc]
                lambda: f"the log is not purged: {cluster.log_span()}",
                timeout_s=PURGED_S,
            )
        accounting.finish()
        with AmqpLink(cluster.leader().addresses["amqp"]) as link:
            for queue in ("checkpoints-amqp", "checkpoints-stomp"):
                wait_until(lambda queue=queue: link.declare(queue) == 0, "acknowledged messages came back")  # type: ignore[misc]
            assert link.take_all("kept") == _bodies()
            assert link.declare(stream, x_queue_type="stream") == KEPT
