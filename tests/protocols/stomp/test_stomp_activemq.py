"""The extensions of ActiveMQ's clients, when the settings enable them."""

import pytest

from gateway.kernel.messages.message import Properties
from tests.protocols.stomp.dialogue import Client, Gateway
from tests.protocols.stomp.test_stomp_connecting import refusal


def client(**headers: str) -> tuple[Gateway, Client]:
    gateway = Gateway(activemq=True)
    return gateway, gateway.client(**headers)


def test_the_host_header_is_the_brokers_host_name() -> None:
    assert client(host="broker.example.org")[1].vhost_name == "/"


def test_prefetch_has_activemqs_header() -> None:
    gateway, worker = client()
    told = {"id": "0", "destination": "/queue/q", "ack": "client", "activemq.prefetchSize": "1"}
    worker.command("SUBSCRIBE", told)
    gateway.publish("", "q")
    gateway.publish("", "q")
    assert len(worker.receive_frames()) == 1


@pytest.mark.parametrize(
    ("destination", "sent", "comes"),
    [
        ("/topic/A.>", "/topic/A.B.C", True),
        ("/topic/A.>", "/topic/B.A", False),
        ("/topic/A.*", "/topic/A.B", True),
        ("/topic/A.*", "/topic/A.B.C", False),
        ("/topic/>", "/topic/A", True),
    ],
)
def test_topic_wildcards_match_as_in_activemq(destination: str, sent: str, comes: bool) -> None:
    _, reader = client()
    reader.subscribe(destination)
    assert len(reader.publish(sent)) == comes


def test_a_queue_may_have_dots_in_its_name() -> None:
    gateway, worker = client()
    worker.publish("/queue/A.B")
    assert list(gateway.vhost.queue_by_name) == ["A.B"]


@pytest.mark.parametrize(
    ("selector", "comes"),
    [
        ("colour = 'red'", True),
        ("colour = 'blue'", False),
        ("size > 5", True),
        ("size BETWEEN 1 AND 3", False),
        ("colour IN ('red', 'green') AND missing IS NULL", True),
        ("missing = 'x'", False),
        ("", True),
    ],
)
@pytest.mark.parametrize("ack", ["auto", "client"])
def test_a_selector_chooses_among_the_messages_of_a_topic(selector: str, comes: bool, ack: str) -> None:
    gateway, reader = client()
    reader.subscribe("/topic/t", selector=selector, ack=ack, prefetch_count="1")
    received = reader.publish("/topic/t", b"hi", {"colour": "red", "size": "7"})
    assert [message.body for message in received] == [b"hi"] * comes
    (queue,) = gateway.vhost.queue_by_name.values()
    assert (len(queue), queue.unsettled) == (0, 1 if comes and ack == "client" else 0)


def test_messages_that_do_not_match_use_no_credit() -> None:
    gateway, reader = client()
    reader.subscribe("/topic/t", selector="wanted = 'yes'", ack="client", prefetch_count="1")
    for wanted in ("no", "no", "yes", "no", "yes"):
        gateway.client().publish("/topic/t", wanted.encode(), {"wanted": wanted})
    (first,) = reader.receive_frames()
    (second,) = reader.settle("ACK", first)
    assert (first.body, second.body) == (b"yes", b"yes")


def test_an_invalid_selector_is_refused() -> None:
    assert refusal(client()[1].subscribe("/topic/t", selector="colour =")) == "Invalid selector"


@pytest.mark.parametrize("destination", ["/queue/q", "/amq/queue/q", "/reply-queue/q"])
@pytest.mark.parametrize("ack", ["auto", "client"])
def test_messages_that_do_not_match_stay_in_a_shared_queue(destination: str, ack: str) -> None:
    gateway, reader = client()
    reader.publish("/queue/q", b"blue, waiting", {"colour": "blue"})
    reader.publish("/queue/q", b"red, waiting", {"colour": "red"})
    received = reader.subscribe(destination, selector="colour = 'red'", ack=ack)
    assert [message.body for message in received] == [b"red, waiting"]
    assert reader.publish("/queue/q", b"blue", {"colour": "blue"}) == []
    (message,) = reader.publish("/queue/q", b"red", {"colour": "red"})
    assert message.body == b"red"
    assert len(gateway.vhost.queue("q")) == 2
    left = gateway.client().subscribe("/queue/q")
    assert [message.body for message in left] == [b"blue, waiting", b"blue"]


def test_consumers_share_a_queue_by_their_selectors() -> None:
    gateway, small = client()
    large, both = gateway.client(), gateway.client()
    small.subscribe("/queue/q", selector="size < 10")
    large.subscribe("/queue/q", selector="size >= 10")
    both.subscribe("/queue/q", selector="size BETWEEN 8 AND 12")
    sender = gateway.client()
    for size in ("1", "20", "9", "9", "11", "11"):
        sender.publish("/queue/q", size.encode(), {"size": size})
    assert (small.bodies(), large.bodies(), both.bodies()) == ([b"1", b"9"], [b"20", b"11"], [b"9", b"11"])


def test_only_matching_messages_of_a_queue_use_credit() -> None:
    gateway, reader = client()
    reader.subscribe("/queue/q", selector="wanted = 'yes'", ack="client-individual", prefetch_count="1")
    for number, wanted in enumerate(("no", "yes", "no", "yes")):
        gateway.client().publish("/queue/q", b"%d" % number, {"wanted": wanted})
    (first,) = reader.receive_frames()
    (second,) = reader.settle("ACK", first)
    assert (first.body, second.body) == (b"1", b"3")
    assert reader.settle("ACK", second) == []


@pytest.mark.parametrize(
    ("selector", "is_seen_again"),
    [
        ("JMSXDeliveryCount = 1", False),
        ("JMSXDeliveryCount <= 2", True),
        ("JMSRedelivered = FALSE", False),
        ("NOT JMSRedelivered", False),
        ("colour = 'red' OR JMSRedelivered", True),
    ],
)
@pytest.mark.parametrize("destination", ["/queue/q", "/topic/q"])
def test_a_selector_may_use_the_delivery_count(destination: str, selector: str, is_seen_again: bool) -> None:
    gateway, reader = client()
    reader.subscribe(destination, selector=selector, ack="client-individual")
    (message,) = reader.publish(destination, b"hi", {"colour": "red"})
    again = reader.settle("NACK", message)
    assert [message.body for message in again] == [b"hi"] * is_seen_again
    (queue,) = gateway.vhost.queue_by_name.values()
    assert len(queue) == (0 if is_seen_again or destination == "/topic/q" else 1)


def test_requeued_messages_are_delivered_to_another_consumer_whose_selector_matches() -> None:
    gateway, reader = client()
    reader.subscribe("/queue/q", selector="colour = 'red'", ack="client")
    reader.publish("/queue/q", b"red", {"colour": "red"})
    blue, red = gateway.client(), gateway.client()
    blue.subscribe("/queue/q", selector="colour = 'blue'")
    red.subscribe("/queue/q", selector="colour IN ('red', 'green')")
    reader.lose()
    (message,) = red.receive_frames()
    assert (message.body, message["redelivered"]) == (b"red", "true")
    assert blue.receive_frames() == []


def test_a_selector_matches_properties_of_messages_from_other_protocols() -> None:
    gateway, reader = client()
    reader.subscribe("/queue/q", selector="JMSPriority > 5 AND weight BETWEEN 2 AND 3")
    gateway.publish("", "q", b"light", Properties(priority=9, headers={"weight": 1}))
    gateway.publish("", "q", b"right", Properties(priority=9, headers={"weight": 2.5}))
    assert reader.bodies() == [b"right"]


def test_an_invalid_selector_on_a_queue_is_refused() -> None:
    gateway, reader = client()
    assert refusal(reader.subscribe("/queue/q", selector="a = ")) == "Invalid selector"
    assert not gateway.vhost.queue_by_name


NAMED = {"id": "7", "destination": "/topic/news", "activemq.subscriptionName": "mine"}


def test_a_durable_subscription_is_identified_by_client_and_subscription_name() -> None:
    gateway, reader = client(client_id="reader")
    reader.command("SUBSCRIBE", NAMED)
    reader.command("DISCONNECT")
    gateway.client().publish("/topic/news", b"missed", {"persistent": "true"})
    after = gateway.crashed()
    assert after.client(client_id="other").command("SUBSCRIBE", NAMED) == []
    (message,) = after.client(client_id="reader").command("SUBSCRIBE", {**NAMED, "id": "8"})
    assert (message["subscription"], message.body) == ("8", b"missed")


def test_a_renewed_durable_subscription_replaces_its_topic() -> None:
    _, reader = client(client_id="reader")
    reader.command("SUBSCRIBE", NAMED)
    reader.command("UNSUBSCRIBE", id="7")
    reader.command("SUBSCRIBE", {**NAMED, "destination": "/topic/sport"})
    assert reader.publish("/topic/news", b"old") == []
    assert [message.body for message in reader.publish("/topic/sport", b"new")] == [b"new"]


def test_unsubscribe_by_name_deletes_the_durable_subscription() -> None:
    gateway, reader = client(client_id="reader")
    reader.command("SUBSCRIBE", NAMED)
    reader.command("UNSUBSCRIBE", {"id": "7"})
    assert len(gateway.vhost.queue_by_name) == 1
    assert reader.command("UNSUBSCRIBE", NAMED) == []
    assert not gateway.vhost.queue_by_name


@pytest.mark.parametrize(
    "headers",
    [{"selector": "no selector at all ("}, {"activemq.prefetchSize": "x"}, {"activemq.subscriptionName": "mine"}],
)
def test_activemqs_headers_are_ignored_without_the_setting(headers: dict[str, str]) -> None:
    gateway = Gateway()
    reader = gateway.client(client_id="reader")
    assert reader.command("SUBSCRIBE", {"id": "0", "destination": "/topic/A.>", **headers}) == []
    assert reader.publish("/topic/A.B") == []
    (queue,) = gateway.vhost.queue_by_name.values()
    assert not queue.is_durable
