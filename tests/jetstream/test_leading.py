"""The server that a new owner is connected to leads the log: an append to another one takes a hop more each way."""

from functools import partial

from gateway.cluster.queue_log import UNCLAIMED, Claim
from gateway_jetstream.ports.foundation import JetStreamCluster
from tests.jetstream.appending import Appender
from tests.jetstream.nats_servers import NatsServer, NatsServers
from tests.jetstream.places import JetStreamPlace


def is_near(place: JetStreamPlace, cluster: JetStreamCluster, claim: Claim, server: NatsServer) -> bool:
    """Ask for a move, which NATS may refuse, and return whether the server leads."""
    place.run(cluster.logs.draw_near(claim))
    return place.leader_of(cluster.layout.stream(claim.queue)) == server.name


def test_the_log_is_led_next_to_its_owner_and_nothing_is_lost_by_the_move(
    place: JetStreamPlace, servers: NatsServers
) -> None:
    queue = place.new_queue()
    former = Appender(place.logs(), place.clock)
    place.run(former.begin(queue, "one", UNCLAIMED))
    place.until(lambda: len(former.acknowledged) >= 20)
    former.finish()
    place.until(lambda: former.is_idle)
    assert former.claim is not None
    claim = former.claim
    for number, server in enumerate(servers.servers):
        cluster = place.cluster(place.client(only=number))
        claim = place.run(cluster.logs.claim(queue, f"node-{number}", claim.epoch))
        place.until(partial(is_near, place, cluster, claim, server))
    place.run(cluster.logs.draw_near(claim))
    assert place.leader_of(cluster.layout.stream(queue)) == server.name
    later = Appender(cluster.logs, place.clock)
    later.finish()
    place.run(later.begin(queue, "last", claim.epoch))
    assert [record.payload for record in later.read] == former.acknowledged
