"""Streams with clients of all protocols: publishers, consumers, and the effects of consumers on each other."""

from typing import Any

from pamqp import commands

from gateway.kernel.queueing.queue import Queue
from gateway.net.outbox import HIGH_WATER
from gateway.testing import FakeClock
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frame_reader import ReceivedFrame
from tests.protocols.amqp.frames import publish
from tests.protocols.mqtt.packets import user_property
from tests.scenarios.all_protocols_broker import TOPICS, AllProtocolsBroker, own_queue, properties_of

STREAM = {"x-queue-type": "stream"}


def gateway_with_stream(*keys: str) -> AllProtocolsBroker:
    """Return a broker with a stream ``s``, bound to the topic exchange by these keys."""
    gateway = AllProtocolsBroker(clock=FakeClock())
    stream = stream_of(gateway)
    for key in keys:
        gateway.vhost.bind(gateway.vhost.exchange(TOPICS), stream, key)
    return gateway


def stream_of(gateway: AllProtocolsBroker, name: str = "s") -> Queue:
    return gateway.vhost.declare_queue(name, is_durable=True, arguments=STREAM)


def go_on(gateway: AllProtocolsBroker, times: int = 3) -> None:
    for _ in range(times):
        gateway.settle()
        assert isinstance(gateway.clock, FakeClock)
        gateway.clock.advance(0)
    gateway.settle()


def reader(gateway: AllProtocolsBroker, prefetch: int = 1000, offset: Any = "first", stream: str = "s") -> Peer:
    """Return an AMQP consumer; the first received frames are the deliveries."""
    peer = gateway.peer()
    arguments = {"x-stream-offset": offset}
    peer.send(commands.Basic.Qos(0, prefetch), commands.Basic.Consume(0, stream, "c", arguments=arguments))
    assert len(peer.receive_now()) == 2
    return peer


def bodies(received: list[ReceivedFrame]) -> list[bytes]:
    return [each.body for each in received if isinstance(each.method, commands.Basic.Deliver)]


def offsets(received: list[ReceivedFrame]) -> list[Any]:
    return [properties_of(each).headers["x-stream-offset"] for each in received]


def test_messages_of_all_protocols_are_read_in_their_order() -> None:
    gateway = gateway_with_stream("news.#")
    sensor, shop, peer = gateway.client("sensor"), gateway.stomp(), gateway.peer()
    sensor.publish("news/a", b"by MQTT", properties=user_property("region", "eu"))
    shop.publish("/topic/news.b", b"by STOMP", {"region": "us"})
    peer.send(publish(TOPICS, "news.c", b"by AMQP", headers={"region": "asia"})).receive()
    reading = reader(gateway)
    go_on(gateway)
    received = reading.receive_frames()
    assert bodies(received) == [b"by MQTT", b"by STOMP", b"by AMQP"]
    assert [dict(properties_of(each).headers) for each in received] == [
        {"region": region, "x-stream-offset": offset} for offset, region in enumerate(("eu", "us", "asia"))
    ]


def test_stomp_reads_the_same_messages() -> None:
    gateway = gateway_with_stream("news.#")
    gateway.client("sensor").publish("news/a", b"by MQTT", properties=user_property("region", "eu"))
    gateway.peer().send(publish(TOPICS, "news.c", b"by AMQP", headers={"region": "asia"})).receive()
    client = gateway.stomp()
    client.subscribe("/amq/queue/s", ack="client-individual", prefetch_count="10", x_stream_offset="first")
    go_on(gateway)
    received = client.receive_frames()
    assert [(each.body, each["x-stream-offset"], each["region"], each["destination"]) for each in received] == [
        (b"by MQTT", "0", "eu", "/topic/news.a"),
        (b"by AMQP", "1", "asia", "/topic/news.c"),
    ]


def test_subscribers_of_mqtt_receive_messages_that_a_stream_keeps() -> None:
    gateway = gateway_with_stream("news")
    listener, sensor = gateway.client("listener"), gateway.client("sensor")
    listener.subscribe("news", 1)
    sensor.publish("news", b"hi", qos=1, id=1)
    assert len(gateway.vhost.queue("s")) == 1
    assert any("hi" in line for line in map(str, listener.receive()))


def test_sessions_have_classic_queues_when_the_default_type_is_stream() -> None:
    gateway = AllProtocolsBroker(clock=FakeClock())
    gateway.broker.describe_vhost("/", default_queue_type="stream")
    keeper, sensor = gateway.client("keeper", version=4, is_clean=False), gateway.client("sensor")
    keeper.subscribe("news", 1)
    sensor.publish("news", b"hi", qos=1, id=1)
    assert any("hi" in line for line in map(str, keeper.receive()))
    assert gateway.vhost.queue(own_queue("keeper")).arguments["x-queue-type"] == "classic"


def test_a_peer_that_does_not_read_is_skipped_until_it_does() -> None:
    gateway = gateway_with_stream()
    writer = gateway.peer()
    for number in range(40):
        writer.send(publish("", "s", bytes([number]) * (HIGH_WATER // 10)))
    writer.receive()
    slow, quick = reader(gateway), reader(gateway)
    slow.is_reading = False
    go_on(gateway, times=20)
    assert len(bodies(quick.receive_frames())) == 40
    assert slow.machine.outbox.size < 3 * HIGH_WATER
    slow.is_reading = True
    slow.machine.outbox.wake()
    received: list[ReceivedFrame] = []
    for _ in range(20):
        go_on(gateway)
        received += slow.receive_frames()
    assert offsets(received) == list(range(40))


def test_consumers_of_one_channel_read_independently() -> None:
    gateway = gateway_with_stream()
    gateway.peer().send(*(publish("", "s", b"%d" % number) for number in range(4))).receive()
    peer = gateway.peer()
    peer.send(commands.Basic.Qos(0, 2))
    for tag, offset in (("a", 0), ("b", 2)):
        peer.send(commands.Basic.Consume(0, "s", tag, arguments={"x-stream-offset": offset}))
    peer.receive_now()
    go_on(gateway)
    received = peer.receive_frames()
    tags = [str(getattr(each.method, "consumer_tag", "")) for each in received]
    assert list(zip(tags, bodies(received), strict=True)) == [("a", b"0"), ("a", b"1"), ("b", b"2"), ("b", b"3")]
    peer.send(commands.Basic.Ack(2, True))
    go_on(gateway)
    assert bodies(peer.receive_frames()) == [b"2", b"3"]


def test_other_clients_are_served_during_a_long_replay() -> None:
    gateway = gateway_with_stream()
    stream_of(gateway, "other")
    writer = gateway.peer()
    writer.send(*(publish("", "s", bytes(1000)) for _ in range(5000))).receive()
    long = reader(gateway, prefetch=0xFFFF)
    short = reader(gateway, offset="next", stream="other")
    gateway.settle()
    writer.send(publish("", "other", b"now")).receive()
    go_on(gateway, times=2)
    assert bodies(short.receive_frames()) == [b"now"]
    assert 0 < len(bodies(long.receive_frames())) < 5000
    go_on(gateway, times=10)
    assert len(bodies(long.receive_frames())) > 0


def test_a_stream_may_be_deleted_while_it_is_read() -> None:
    gateway = gateway_with_stream()
    gateway.peer().send(*(publish("", "s", bytes(1000)) for _ in range(5000))).receive()
    peer = reader(gateway, prefetch=0xFFFF)
    go_on(gateway, times=1)
    gateway.vhost.delete_queue(gateway.vhost.queue("s"))
    go_on(gateway)
    received = [str(each) for each in peer.receive_frames()]
    assert received[-1] == "Basic.Cancel(consumer_tag='c', nowait=True)"
    assert len(received) < 5001
    peer.send(commands.Basic.Ack(0, True), commands.Queue.Declare(0, "s", durable=True, arguments=STREAM))
    assert peer.receive() == ["Queue.DeclareOk(queue='s', message_count=0, consumer_count=0)"]


def test_a_consumer_that_disconnects_does_not_change_the_stream() -> None:
    gateway = gateway_with_stream()
    gateway.peer().send(*(publish("", "s", b"x") for _ in range(10))).receive()
    peer = reader(gateway, prefetch=5)
    go_on(gateway)
    peer.lose()
    go_on(gateway)
    stream = gateway.vhost.queue("s")
    assert (len(stream), len(stream.consumers), stream.unsettled) == (10, 0, 0)
