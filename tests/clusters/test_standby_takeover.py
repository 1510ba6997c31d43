"""A follower keeps a copy of the data: a leader that dies with a long queue is replaced without reading its log."""

import re
import time

import pytest
from pamqp import commands

from tests.clusters.gateway_cluster import ClusterNode, GatewayCluster
from tests.clusters.links import AmqpLink
from tests.waiting import wait_until

_MESSAGES = 20_000
_WINDOW = 1_000

#: The time in which the queue must be served again: 7 s on an idle machine, of which 5 s until the leader is missed.
_SERVED_S = 45.0

_BUILT = re.compile(r"copy built records=(\d+)")


def fill(node: ClusterNode, queue: str, count: int) -> None:
    """Publish messages of 1 KiB, and wait for their confirms."""
    body = b"x" * 1024
    with AmqpLink(node.addresses["amqp"], 60.0) as link:
        link.call(commands.Queue.Declare(queue=queue, durable=True))
        link.call(commands.Confirm.Select())
        sent = confirmed = 0
        while confirmed < count:
            while sent < count and sent - confirmed < _WINDOW:
                link.publish(queue, body)
                sent += 1
            answer = link._next()
            if isinstance(answer, commands.Basic.Ack):
                confirmed = answer.delivery_tag if answer.multiple else confirmed + 1


def count_in(node: ClusterNode, queue: str) -> int:
    """Return the messages in a queue."""
    with AmqpLink(node.addresses["amqp"], 30.0) as link:
        answer = link.call(commands.Queue.Declare(queue=queue, durable=True, passive=True))
        assert isinstance(answer, commands.Queue.DeclareOk)
        return answer.message_count


@pytest.mark.timeout(300)
def test_a_new_leader_reads_only_the_rest_of_the_log(cluster: GatewayCluster) -> None:
    leader = cluster.leader()
    fill(leader, "standby", _MESSAGES)
    died_s = time.monotonic()
    epoch = leader.led_epoch
    leader.kill()
    heir = cluster.leader(after=epoch)
    assert count_in(heir, "standby") == _MESSAGES
    assert time.monotonic() - died_s < _SERVED_S
    built = _BUILT.search(heir.log_of_run)
    assert built is not None  # it followed the log for five seconds more, until it missed the leader
    assert int(built.group(1)) < 50, f"the new leader read {built.group(1)} records"

    leader.start()
    wait_until(lambda: "the copy has caught up" in leader.log_of_run, lambda: leader.log, timeout_s=60)
    heir.kill()
    again = cluster.leader(after=heir.led_epoch)
    assert count_in(again, "standby") == _MESSAGES
