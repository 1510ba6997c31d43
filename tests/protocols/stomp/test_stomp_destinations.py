"""Destinations in requests of clients and in messages for consumers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_stomp.destinations import Destination, DestinationKind, parse, shown, with_wildcards
from gateway_stomp.errors import StompError

TOPICS = "amq.topic"


@pytest.mark.parametrize(
    ("written", "kind", "exchange", "name"),
    [
        ("orders", DestinationKind.QUEUE, "", "orders"),
        ("/queue/orders", DestinationKind.QUEUE, "", "orders"),
        ("/queue/a%2Fb", DestinationKind.QUEUE, "", "a/b"),
        ("/queue/a%2fb%20", DestinationKind.QUEUE, "", "a%2fb%20"),
        ("/amq/queue/orders", DestinationKind.AMQ_QUEUE, "", "orders"),
        ("/reply-queue/a/b%2F", DestinationKind.REPLY_QUEUE, "", "a/b%2F"),
        ("/temp-queue/x", DestinationKind.TEMP_QUEUE, "", "x"),
        ("/topic/a.*.#", DestinationKind.TOPIC, TOPICS, "a.*.#"),
        ("/exchange/x", DestinationKind.EXCHANGE, "x", ""),
        ("/exchange/x/", DestinationKind.EXCHANGE, "x", ""),
        ("/exchange/x/a.b", DestinationKind.EXCHANGE, "x", "a.b"),
        ("/exchange/a%2Fb/c%2Fd", DestinationKind.EXCHANGE, "a/b", "c/d"),
    ],
)
def test_a_destination_is_parsed(written: str, kind: DestinationKind, exchange: str, name: str) -> None:
    assert parse(written, TOPICS) == Destination(kind, name, exchange, written)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "Invalid destination"),
        ("/", "Unknown destination"),
        ("/nowhere/a", "Unknown destination"),
        ("a/b", "Unknown destination"),
        ("/queues/a", "Unknown destination"),
        ("/queue", "Invalid destination"),
        ("/queue/", "Invalid destination"),
        ("/queue/a/b", "Invalid destination"),
        ("/topic/", "Invalid destination"),
        ("/topic/a/b", "Invalid destination"),
        ("/amq/queue/", "Invalid destination"),
        ("/reply-queue", "Unknown destination"),
        ("/reply-queue/", "Invalid destination"),
        ("/exchange", "Invalid destination"),
        ("/exchange/", "Invalid destination"),
        ("/exchange//k", "Invalid destination"),
        ("/exchange/x/a/b", "Invalid destination"),
    ],
)
def test_an_invalid_destination_is_refused(written: str, message: str) -> None:
    with pytest.raises(StompError) as caught:
        parse(written, TOPICS)
    assert caught.value.message == message


PREFIXES = ["/queue/", "/topic/", "/exchange/", "/exchange/x/", "/amq/queue/", "/reply-queue/", ""]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_name_or_key_is_limited_to_the_length_in_amqp(prefix: str) -> None:
    parse(prefix + "ö" * 127 + "n", TOPICS)
    with pytest.raises(StompError, match="A name or routing key of 256 bytes; the limit is 255"):
        parse(prefix + "ö" * 128, TOPICS)


@pytest.mark.parametrize(
    ("exchange", "routing_key", "destination"),
    [
        ("", "orders", "/queue/orders"),
        ("", "a/b", "/queue/a%2Fb"),
        ("amq.topic", "a.b", "/topic/a.b"),
        ("amq.direct", "k", "/exchange/amq.direct/k"),
        ("amq.fanout", "", "/exchange/amq.fanout"),
        ("a/b", "50%", "/exchange/a%2Fb/50%25"),
        ("", "\x01ö", "/queue/%01%C3%B6"),
    ],
)
def test_a_consumer_gets_the_destination_of_the_message(exchange: str, routing_key: str, destination: str) -> None:
    assert shown(exchange, routing_key, TOPICS) == destination


def test_the_exchange_of_topics_can_be_set() -> None:
    assert parse("/topic/a", "events").exchange == "events"
    assert shown("events", "a", "events") == "/topic/a"
    assert shown("amq.topic", "a", "events") == "/exchange/amq.topic/a"


@given(
    name=st.text(st.characters(codec="ascii", exclude_characters="%", min_codepoint=32, max_codepoint=126), min_size=1)
)
def test_a_reply_destination_is_parsed_to_its_queue(name: str) -> None:
    assert parse(shown("", name, TOPICS), TOPICS).name == name


@pytest.mark.parametrize(
    ("written", "pattern"),
    [("/topic/A.>", "A.#"), ("/topic/>", "#"), ("/topic/A.*.B", "A.*.B"), ("/topic/A.>.B", "A.>.B"), ("/queue/>", ">")],
)
def test_activemqs_wildcards_are_translated(written: str, pattern: str) -> None:
    assert with_wildcards(parse(written, TOPICS)).name == pattern
