"""The account of all messages: what was confirmed has come, in order, and once where that is promised."""

from tests.clusters.clients import (
    MOST_AHEAD,
    WINDOW,
    AmqpPublisher,
    AmqpTaker,
    MqttPublisher,
    MqttTaker,
    Publisher,
    StompPublisher,
    Taker,
)
from tests.clusters.gateway_cluster import GatewayCluster
from tests.clusters.links import AmqpLink
from tests.waiting import wait_until

#: The time in which clients go on after a fault, in seconds, beyond that of the takeover.
GOES_ON_S = 120.0

#: A message may come again if it was one of so many latest of its publisher: its acknowledgement was lost. While the
#: log takes nothing, because the disk is slow or there is no majority, a leader still gives out what it has, and that
#: is what its publishers are ahead.
_LATEST = MOST_AHEAD + WINDOW


class Accounting:
    """Publishers of all protocols in one virtual host, and those who take their messages."""

    def __init__(self, cluster: GatewayCluster, run: str, vhost: str = "/") -> None:
        self.cluster = cluster
        amqp, stomp = f"{run}-amqp", f"{run}-stomp"
        node = wait_until(cluster.answering, "no node answers")
        with AmqpLink(node.addresses["amqp"], vhost=vhost) as link:
            for queue in (amqp, stomp):
                link.declare(queue)
        self.amqp = [AmqpPublisher(cluster, f"{run}-a{number}", amqp) for number in (1, 2)]
        self.mqtt = [MqttPublisher(cluster, f"{run}-m{qos}", qos) for qos in (1, 2)]
        self.publishers: list[Publisher] = [*self.amqp, StompPublisher(cluster, f"{run}-s", stomp), *self.mqtt]
        self.taker = AmqpTaker(cluster, f"{run}-taker", amqp, stomp)
        self.subscriber = MqttTaker(cluster, f"{run}-subscriber")
        self.takers: list[Taker] = [self.taker, self.subscriber]
        for client in (*self.publishers, *self.takers):
            client.vhost = vhost
        for publisher in self.publishers:
            numbers = self._taker_of(publisher).first[publisher.name]
            publisher.come = lambda numbers=numbers: len(numbers)  # type: ignore[misc]

    def start(self) -> "Accounting":
        """Start everything, and wait until it works."""
        for taker in self.takers:
            taker.start()
        wait_until(self.subscriber.is_subscribed.is_set, "the subscriber does not subscribe")
        for publisher in self.publishers:
            publisher.start()
        self.goes_on(20)
        return self

    def _taker_of(self, publisher: Publisher) -> Taker:
        return self.subscriber if isinstance(publisher, MqttPublisher) else self.taker

    def goes_on(self, count: int = 50) -> None:
        """Wait until each publisher has so many more confirms, and its messages come."""
        goals = {publisher: len(publisher.confirmed) + count for publisher in self.publishers}
        came = {publisher: len(self._taker_of(publisher).first[publisher.name]) + count for publisher in goals}

        def is_reached() -> bool:
            self._raise()
            return all(
                len(publisher.confirmed) >= goal
                and len(self._taker_of(publisher).first[publisher.name]) >= came[publisher]
                for publisher, goal in goals.items()
            )

        wait_until(is_reached, self._report, timeout_s=GOES_ON_S)

    def _raise(self) -> None:
        for client in (*self.publishers, *self.takers):
            if client.failure is not None:
                raise client.failure

    def _report(self) -> str:
        states = [f"{each.name}: {each}" for each in (*self.publishers, *self.takers)]
        return "\n".join(("not all go on:", *states, self.cluster.logs()))

    def finish(self, *, is_ordered: bool = True) -> None:
        """End all, and close the account.

        Without ``is_ordered`` messages may come in another order, and again much later: a paused node keeps the ones
        that its takers have not acknowledged, while these connect to another node and take the next ones.
        """
        for publisher in self.publishers:
            publisher.end()
        wait_until(self._has_all_come, self._missing, timeout_s=GOES_ON_S)
        for taker in self.takers:
            taker.end()
        for publisher in self.publishers:
            numbers = self._taker_of(publisher).first[publisher.name]
            assert not is_ordered or numbers == sorted(numbers), f"the messages of {publisher.name} came out of order"
            assert set(numbers) <= set(range(1, publisher.sent + 1)), "more came than was sent"
        for taker in self.takers:
            assert not is_ordered or taker.oldest_again <= _LATEST, (
                f"{taker.name} got a message again that was {taker.oldest_again} before the latest: {dict(taker.again)}"
            )
        twice = self.subscriber.again[self.mqtt[1].name]
        assert not twice, f"QoS 2 messages came twice: {twice[:10]}"

    def _has_all_come(self) -> bool:
        self._raise()
        return all(self._taker_of(each).has_all(each) for each in self.publishers)

    def _missing(self) -> str:
        lost = {
            publisher.name: sorted(publisher.confirmed - set(self._taker_of(publisher).first[publisher.name]))[:10]
            for publisher in self.publishers
        }
        return f"confirmed, but lost: {lost}\n{self.cluster.logs()}"

    @property
    def confirmed(self) -> int:
        """The number of confirmed messages."""
        return sum(len(publisher.confirmed) for publisher in self.publishers)
