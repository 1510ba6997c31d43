"""A server is killed with -9 while nodes append: nothing acknowledged is lost, and the order stays."""

from gateway.cluster.queue_log import UNCLAIMED
from tests.jetstream.appending import Appender
from tests.jetstream.nats_servers import NatsServers
from tests.jetstream.places import JetStreamPlace


def test_nothing_acknowledged_is_lost_when_leaders_are_killed(place: JetStreamPlace, servers: NatsServers) -> None:
    cluster = place.cluster()
    queues = [place.new_queue() for _ in range(4)]
    appenders = [Appender(cluster.logs, place.clock) for _ in queues]
    for appender, queue in zip(appenders, queues, strict=True):
        place.run(appender.begin(queue, "one", UNCLAIMED))
    for _ in range(2):
        goal = [len(appender.acknowledged) + 200 for appender in appenders]
        place.until(lambda goal=goal: all(len(a.acknowledged) >= g for a, g in zip(appenders, goal, strict=True)))
        victim = servers.named(place.leader_of(cluster.layout.stream(queues[0])))
        victim.kill()
        after = [len(appender.acknowledged) + 200 for appender in appenders]
        place.until(lambda after=after: all(len(a.acknowledged) >= g for a, g in zip(appenders, after, strict=True)))
        victim.start()
        servers.wait_until_ready()
    for appender in appenders:
        appender.finish()
    place.until(lambda: all(appender.is_idle for appender in appenders))
    assert sum(appender.stalls for appender in appenders) > 0, "no append was in flight when a leader was killed"
    for appender, queue in zip(appenders, queues, strict=True):
        assert appender.claim is not None
        assert not appender.is_deposed
        later = Appender(place.logs(), place.clock)
        later.finish()
        place.run(later.begin(queue, "two", appender.claim.epoch))
        stored = [record.payload for record in later.read]
        assert stored == appender.acknowledged, "records were lost, doubled or reordered"
        assert [record.index for record in later.read] == list(range(1, len(stored) + 1))
