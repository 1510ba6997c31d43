"""Streams over STOMP: declared and read with headers."""

from datetime import UTC, datetime

import pytest

from gateway.kernel.messages.message import Properties
from gateway_stomp.stream_headers import stream_arguments
from tests.protocols.stomp.dialogue import Client, Gateway
from tests.protocols.stomp.frame_reader import ReceivedFrame

READER = {"ack": "client-individual", "prefetch_count": "100"}
OFFSET = "x-stream-offset"


@pytest.fixture
def gateway() -> Gateway:
    """Return a broker with a stream ``s`` of three messages."""
    gateway = Gateway()
    gateway.vhost.declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
    for body, region in ((b"0", "eu"), (b"1", "us"), (b"2", None)):
        headers = {} if region is None else {"x-stream-filter-value": region}
        gateway.publish("", "s", body, Properties(headers=headers))
    gateway.settle()
    return gateway


def read(client: Client, **headers: str) -> list[ReceivedFrame]:
    """Subscribe to the stream; return all received frames."""
    received = client.subscribe("/amq/queue/s", **{**READER, **{f"x_stream_{name}": headers[name] for name in headers}})
    return received + more(client)


def more(client: Client) -> list[ReceivedFrame]:
    client.gateway.advance(0)
    return client.receive_frames()


def seen(messages: list[ReceivedFrame]) -> list[tuple[bytes, str]]:
    return [(message.body, message[OFFSET]) for message in messages]


STARTS = [
    ({}, []),
    ({"offset": "first"}, [(b"0", "0"), (b"1", "1"), (b"2", "2")]),
    ({"offset": "last"}, [(b"2", "2")]),
    ({"offset": "next"}, []),
    ({"offset": "offset=1"}, [(b"1", "1"), (b"2", "2")]),
    ({"offset": "timestamp=1"}, [(b"0", "0"), (b"1", "1"), (b"2", "2")]),
    ({"offset": "timestamp=99999999999"}, []),
    ({"offset": "5m"}, [(b"0", "0"), (b"1", "1"), (b"2", "2")]),
    ({"offset": "first", "filter": "us"}, [(b"1", "1")]),
    ({"offset": "first", "filter": "us, eu"}, [(b"0", "0"), (b"1", "1")]),
    ({"offset": "first", "filter": "us", "match_unfiltered": "true"}, [(b"1", "1"), (b"2", "2")]),
]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(("headers", "messages"), STARTS)
def test_a_subscription_starts_at_its_offset(
    gateway: Gateway, version: str, headers: dict[str, str], messages: list[tuple[bytes, str]]
) -> None:
    assert seen(read(gateway.client(version), **headers)) == messages


REFUSED = [
    ({"offset": "offset=x"}, "header 'x-stream-offset' must be a whole number, not 'x'"),
    ({"offset": "bogus"}, "invalid arg 'x-stream-offset' for queue 's' in vhost '/'"),
    ({"offset": "5"}, "invalid arg 'x-stream-offset' for queue 's' in vhost '/'"),
]


@pytest.mark.parametrize(("headers", "words"), REFUSED)
def test_an_invalid_offset_is_refused(gateway: Gateway, headers: dict[str, str], words: str) -> None:
    error = read(gateway.client(), **headers)[0]
    assert (error.verb, error["message"]) == ("ERROR", "precondition_failed")
    assert words in error.body.decode()


@pytest.mark.parametrize("headers", [{"ack": "client"}, {"ack": "auto"}, {}])
def test_a_prefetch_count_is_required(gateway: Gateway, headers: dict[str, str]) -> None:
    error = gateway.client().subscribe("/amq/queue/s", **headers)[0]
    assert "consumer prefetch count is not set for 'queue 's' in vhost '/''" in error.body.decode()


def test_acknowledgements_are_required(gateway: Gateway) -> None:
    error = gateway.client().subscribe("/amq/queue/s", ack="auto", prefetch_count="5")[0]
    assert (error.verb, error["message"]) == ("ERROR", "not_implemented")
    assert "automatic acknowledgement not supported by stream queues queue 's' in vhost '/'" in error.body.decode()


@pytest.mark.parametrize("verb", ["ACK", "NACK"])
def test_settling_delivers_the_next_message_and_requeues_nothing(gateway: Gateway, verb: str) -> None:
    client = gateway.client()
    client.subscribe("/amq/queue/s", ack="client-individual", prefetch_count="2", x_stream_offset="first")
    first, second = more(client)
    client.settle(verb, first)
    assert seen(more(client)) == [(b"2", "2")]
    client.settle(verb, second)
    assert more(client) == []


def test_a_named_consumer_continues_after_its_last_acknowledgement(gateway: Gateway) -> None:
    client = gateway.client()
    first, *_ = read(client, offset="first", consumer="me")
    client.settle("ACK", first)
    client.lose()
    assert seen(read(gateway.client(), consumer="me")) == [(b"1", "1"), (b"2", "2")]


def test_a_named_consumers_position_survives_a_crash(gateway: Gateway) -> None:
    client = gateway.client()
    messages = read(client, offset="first", consumer="me")
    client.settle("ACK", messages[0])
    gateway.advance(1)
    assert seen(read(gateway.crashed().client(), consumer="me")) == [(b"1", "1"), (b"2", "2")]


def test_a_consumer_priority_is_ignored(gateway: Gateway) -> None:
    client = gateway.client()
    client.subscribe("/amq/queue/s", **READER, x_stream_offset="last", x_priority="3")
    assert seen(more(client)) == [(b"2", "2")]


def test_send_declares_a_stream() -> None:
    gateway = Gateway()
    client = gateway.client()
    made = {"x-queue-type": "stream", "x-max-age": "1D", "x-stream-max-segment-size-bytes": "1000000"}
    client.publish("/queue/new", b"hello", made)
    assert gateway.vhost.queue("new").arguments == {**made, "x-stream-max-segment-size-bytes": 1_000_000}
    headers = {name.replace("-", "_"): value for name, value in made.items()}
    client.subscribe("/queue/new", **READER, **headers, x_stream_offset="first")
    assert seen(more(client)) == [(b"hello", "0")]


def test_a_group_has_one_reader(gateway: Gateway) -> None:
    """The second one goes on after what the first one has acknowledged."""
    group = {**READER, "x_stream_consumer": "g", "x_single_active_consumer": "true", "x_stream_offset": "first"}
    first, second = gateway.client(), gateway.client()
    received = [client.subscribe("/amq/queue/s", **group) + more(client) for client in (first, second)]
    assert [len(each) for each in received] == [3, 0]
    first.command("ACK", id=received[0][0]["ack"])
    first.command("UNSUBSCRIBE", id="0")
    assert seen(more(second)) == [(b"1", "1"), (b"2", "2")]


def test_a_subscription_to_a_topic_may_use_a_stream() -> None:
    gateway = Gateway()
    client = gateway.client()
    options = {**READER, "durable": "true", "auto_delete": "false", "x_queue_type": "stream"}
    client.subscribe("/topic/news", **options)
    client.command("UNSUBSCRIBE", id="0")
    client.publish("/topic/news", b"kept")
    client.subscribe("/topic/news", **options, x_stream_offset="first")
    (message,) = more(client)
    assert (message.body, message[OFFSET], message["destination"]) == (b"kept", "0", "/topic/news")


def test_the_brokers_offset_replaces_a_published_one() -> None:
    gateway = Gateway()
    client = gateway.client()
    client.publish("/queue/new", b"hello", {"x-queue-type": "stream", OFFSET: "77"})
    client.subscribe("/queue/new", **READER, x_queue_type="stream", x_stream_offset="first")
    assert seen(more(client)) == [(b"hello", "0")]


def test_an_offset_for_a_queue_that_is_not_a_stream_is_refused(gateway: Gateway) -> None:
    error = gateway.client().subscribe("/queue/q", x_stream_offset="first")[0]
    words = "invalid arg 'x-stream-offset' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
    assert words in error.body.decode()


def test_stream_headers_are_translated_to_arguments() -> None:
    assert stream_arguments({}) == {}
    assert stream_arguments({OFFSET: " timestamp=60 "}) == {OFFSET: datetime(1970, 1, 1, 0, 1, tzinfo=UTC)}
    assert stream_arguments({OFFSET: "timestamp=-60"}) == {OFFSET: datetime(1970, 1, 1, tzinfo=UTC)}
    assert stream_arguments({OFFSET: "offset=-3", "x-stream-filter": "a"}) == {OFFSET: -3, "x-stream-filter": ["a"]}
