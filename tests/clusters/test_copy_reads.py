"""Reads of streams at nodes that follow: from their own copies, within what the leader vouches for."""

from collections.abc import Iterator

import pytest

from tests.clusters.gateway_cluster import TAKEOVER_S, ClusterNode, GatewayCluster
from tests.clusters.reads import NodeReads, Row, answered_reads, encoding_ticks, wait_until_copied
from tests.pipeline.stream_broker import StreamBroker
from tests.waiting import wait_until

#: Messages of 1 KB: many sealed segments, and the one that is being written.
MESSAGES = 1_500
SEGMENT = 128 * 1024

pytestmark = pytest.mark.timeout(300)


def bodies(begin: int, end: int, mark: bytes = b"") -> Iterator[bytes]:
    return (b"%s%01000d" % (mark, number) for number in range(begin, end))


def rows(end: int, mark: bytes = b"") -> list[Row]:
    """Return the messages that a stream has."""
    return list(enumerate(bodies(0, end, mark)))


def declared(node: ClusterNode, name: str) -> StreamBroker:
    """Declare a stream of small segments at a node, and publish to it."""
    broker = StreamBroker(node)
    broker.declare_stream(name, stream_max_segment_size_bytes=SEGMENT)
    broker.publish(name, bodies(0, MESSAGES))
    return broker


def followers(cluster: GatewayCluster) -> list[ClusterNode]:
    leader = cluster.leader()
    return [node for node in cluster.nodes if node is not leader]


def test_followers_encode_what_they_send_and_the_leader_nothing(cluster: GatewayCluster) -> None:
    declared(cluster.leader(), "encoded")

    def is_encoded_by_followers() -> bool:
        """Read at the followers; return whether the leader, which stays the same, has encoded nothing."""
        leader = cluster.leader()
        nodes = followers(cluster)
        before, ticks = answered_reads(leader), encoding_ticks(leader)
        found = {}
        for node in nodes:
            read, found[node.name] = NodeReads(node).read_all("encoded", MESSAGES)
            assert read == rows(MESSAGES)
        if any(copies != {name} for name, copies in found.items()) or encoding_ticks(leader) != ticks:
            return False
        for node in nodes:
            wait_until(
                lambda name=node.name: answered_reads(leader)[name] - before[name] >= MESSAGES,
                "the leader does not know of the reads",
            )
        return cluster.find_leader() is leader and all(map(encoding_ticks, nodes))

    wait_until(is_encoded_by_followers, cluster.logs, timeout_s=TAKEOVER_S)


def test_one_connection_can_read_and_do_everything_else(cluster: GatewayCluster) -> None:
    declared(cluster.leader(), "mixed")
    node = followers(cluster)[0]
    wait_until_copied(node, "mixed", MESSAGES)
    link = NodeReads(node)
    assert link.read("mixed", 0, 10).read_at == node.name
    listed = link.ask("GET", 'pipeline/%2F/streams?names=["mixed"]')
    assert listed.fields["queues"][0]["partitions"]["0"]["next"] == MESSAGES
    assert link.ask("PUT", "pipeline/%2F/progress/mine", {"offsets": {"mixed": {"0": 5}}}).status == 204
    assert link.ask("GET", "pipeline/%2F/progress").fields[0]["consumer"] == "mine"
    assert link.read("mixed", 10, 20).rows[0][0] <= 10
    assert link.ask("DELETE", "pipeline/%2F/progress/mine").status == 204
    web = link.ask("GET", "pipeline/%2F/read?queue=mixed&from=0&to=1", headers={"Origin": "http://elsewhere.example"})
    assert web.status == 403
    link.close()


def test_the_leader_checks_user_permissions_and_offsets(cluster: GatewayCluster) -> None:
    broker = declared(cluster.leader(), "guarded")
    node = followers(cluster)[0]
    wait_until_copied(node, "guarded", MESSAGES)
    admin = NodeReads(cluster.leader())
    assert admin.ask("PUT", "users/reader", {"password": "secret", "tags": ""}).status in (201, 204)
    rights = {"configure": "", "write": "", "read": "^other$"}
    assert admin.ask("PUT", "permissions/%2F/reader", rights).status in (201, 204)
    reader = NodeReads(node, "reader", "secret")
    assert reader.read("guarded", 0, 1).status == 403
    assert admin.ask("PUT", "permissions/%2F/reader", rights | {"read": ".*"}).status in (201, 204)
    assert reader.read("guarded", 0, 1).read_at == node.name
    assert NodeReads(node, "reader", "wrong").read("guarded", 0, 1).status == 401
    assert reader.read("missing", 0, 1).status == 404
    assert reader.read("guarded", MESSAGES, MESSAGES + 1).status == 416
    assert admin.ask("DELETE", "users/reader").status == 204
    assert reader.read("guarded", 0, 1).status == 401
    with broker.channel() as channel:
        channel.queue_delete("guarded")
    assert NodeReads(node).read("guarded", 0, 1).status == 404


def test_nothing_of_a_deleted_stream_is_read_under_its_name(cluster: GatewayCluster) -> None:
    broker = declared(cluster.leader(), "again")
    node = followers(cluster)[0]
    wait_until_copied(node, "again", MESSAGES)
    link = NodeReads(node)
    for mark in (b"second", b"third"):
        assert link.read("again", 0, MESSAGES).status == 200
        with broker.channel() as channel:
            channel.queue_delete("again")
        broker.declare_stream("again", stream_max_segment_size_bytes=SEGMENT)
        broker.publish("again", bodies(0, 500, mark))
        found, _ = link.read_all("again", 500)
        assert found == rows(500, mark)


def test_what_retention_removes_is_gone_on_each_node(cluster: GatewayCluster) -> None:
    leader = cluster.leader()
    broker = StreamBroker(leader)
    broker.declare_stream("kept", stream_max_segment_size_bytes=SEGMENT, max_length_bytes=4 * SEGMENT)
    broker.publish("kept", bodies(0, MESSAGES))
    links = [NodeReads(node) for node in followers(cluster)]
    for link in links:
        gone = link.read("kept", 0, MESSAGES)
        assert gone.status == 410
        first = gone.fields["first"]
        found, _ = link.read_all("kept", MESSAGES, first)
        assert found == rows(MESSAGES)[first:]


def test_copies_answer_again_soon_after_another_node_leads(cluster: GatewayCluster) -> None:
    declared(cluster.leader(), "outliving")
    leader = cluster.leader()
    for node in followers(cluster):
        wait_until_copied(node, "outliving", MESSAGES)
    epoch = leader.led_epoch
    leader.kill()
    heir = cluster.leader(after=epoch)
    (node,) = [each for each in cluster.nodes if each not in (leader, heir)]
    wait_until_copied(node, "outliving", MESSAGES)  # nothing is published in this epoch
    assert NodeReads(node).read_all("outliving", MESSAGES)[0] == rows(MESSAGES)
    assert NodeReads(heir).read_all("outliving", MESSAGES)[0] == rows(MESSAGES)
    cluster.start()
